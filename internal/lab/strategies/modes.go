package strategies

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/size"
)

// Modes returns the best strategy of all sessions and that of every mode of r as a part of condense.yaml that loads by itself. Where
// there is no best strategy, a comment has the reason. Chains are from a [Set].
func Modes(r *lab.Report, chains map[string][]config.Provider) string {
	f := fragment{declared: map[string]string{}}
	var whole, modes strings.Builder
	if chain := f.chain(&whole, r, "", chains); chain != "" {
		printf(&whole, "chain: [%s]\n", chain)
	}
	winners := false
	for _, mode := range r.Modes {
		if chain := f.chain(&modes, r, mode, chains); chain != "" {
			printf(&modes, "  %s: {chain: [%s]}\n", YAMLName(mode), chain)
			winners = true
		}
	}
	var b strings.Builder
	printf(&b, "# Written by condense: the strategy that keeps most of what was needed later, of all sessions and by mode.\n"+
		"# %s, budgets %s. This loads as it is. To use it, merge it into condense.yaml.\n",
		size.Plural(len(r.Sessions), "session"), strings.Join(r.Budgets, ", "))
	b.WriteString(whole.String())
	if len(f.order) > 0 {
		b.WriteString("providers:\n")
		for _, name := range f.order {
			printf(&b, "  %s: %s\n", YAMLName(name), f.declared[name])
		}
	}
	switch {
	case winners:
		b.WriteString("modes:\n")
	case modes.Len() == 0:
		b.WriteString("# No session has a mode: --mode-of RULE gives them one.\n")
	}
	return b.String() + modes.String()
}

// chain writes comments on the best strategy of a mode, "" for all sessions, and returns its providers' names; "" if there is none that a
// configuration names.
func (f *fragment) chain(b *strings.Builder, r *lab.Report, mode string, chains map[string][]config.Provider) string {
	indent, of := "  ", YAMLName(mode)
	if mode == "" {
		indent, of = "", "all sessions"
	}
	winner, why := r.Winner(mode)
	switch {
	case winner == "":
		printf(b, indent+"# %s: %s\n", of, why)
		return ""
	case len(chains[winner]) == 0:
		printf(b, indent+"# %s: %s, a baseline that no configuration names\n", of, why)
		return ""
	}
	names := plain.Each(chains[winner], func(p config.Provider) string { return YAMLName(f.name(&p, cmp.Or(mode, "all"))) })
	for _, line := range append([]string{why}, lossesOf(r, mode)...) {
		printf(b, indent+"# %s\n", line)
	}
	return strings.Join(names, ", ")
}

// lossesOf returns the losses of the best strategies of a mode, by budget.
func lossesOf(r *lab.Report, mode string) []string {
	var out []string
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; v.Mode == mode && v.WorseIn() != "" {
			out = append(out, "budget "+v.Budget+": "+v.WorseIn())
		}
	}
	return out
}

// A fragment collects the providers of the configuration to be written.
type fragment struct {
	declared map[string]string // name to JSON
	order    []string
}

// name returns the name of p in the fragment. It declares p unless p is a strategy with its default settings.
func (f *fragment) name(p *config.Provider, mode string) string {
	settings := p.Settings
	if string(settings) == "{}" {
		settings = nil
	}
	if p.Name == p.Strategy && settings == nil {
		return p.Name
	}
	v := config.ProviderValues{Strategy: p.Strategy, Plugin: p.Plugin, SHA256: p.SHA256, Folder: p.Folder, Env: p.Env, Settings: settings}
	if p.Origin.Kind != config.FromDefault {
		v.Timeout = p.Timeout.String()
	}
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte("{}") // cannot happen: strings and valid JSON
	}
	name := p.Name
	if name == p.Strategy {
		name = p.Strategy + "-" + mode // the name alone has other settings
	}
	for n := 2; f.declared[name] != "" && f.declared[name] != rawjson.Visible(string(text)); n++ {
		name = fmt.Sprintf("%s-%s-%d", p.Name, mode, n)
	}
	if f.declared[name] == "" {
		f.declared[name] = rawjson.Visible(string(text))
		f.order = append(f.order, name)
	}
	return name
}

var plainName = plain.Pattern(`^\.?[A-Za-z][A-Za-z0-9_./-]*$`)

// yamlWords must be quoted in YAML.
var yamlWords = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan"}

// YAMLName returns s as a key or a value of YAML.
func YAMLName(s string) string {
	if plainName().MatchString(s) && !slices.Contains(yamlWords, strings.ToLower(s)) {
		return s
	}
	text, _ := json.Marshal(s) //nolint:errchkjson // a string, and a JSON string is one of YAML
	return rawjson.Visible(string(text))
}

// printf writes to b. Arguments cannot begin a line: names of files, modes and strategies come from outside.
func printf(b *strings.Builder, format string, args ...any) {
	for i := range args {
		if s, ok := args[i].(string); ok {
			args[i] = plain.Line(s)
		}
	}
	fmt.Fprintf(b, format, args...)
}
