package servecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/settings"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/live"
)

// An Own says where an agent has its models and its limits: it condenses by itself, too.
type Own struct {
	Files   []Settings // besides [Point.Settings]
	List    []string   // arguments with which its program prints the models as JSON, if no file has them
	Within  []string   // the providers whose requests come through the gateway; nil: all. Where they stand side by side, the others are of no interest
	ID      string     // the name of a model in it, if that is not the member's
	Context [][]string // the path of its window from there, in JSON: the first that is there; all but the last are for the input alone
	First   string     // of the models, the agent starts with the one with the smallest

	Profile agents.Source // the name, for * in its path, of a file that wins over the others
	Layer   Settings

	Model    agents.Source // the model that it starts with; with Within, its provider can be before it
	Provider agents.Source // the provider of the model
}

// setting returns the value that the user has set; empty for none.
func setting(s *agents.Source, files [][]*settings.File, args []string) string {
	value := ""
	for i, arg := range args {
		arg = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(arg, "-c"), "--config"), "=") // Codex's, attached
		for _, f := range s.Flags {
			rest, ok := strings.CutPrefix(arg, f)
			v, set := strings.CutPrefix(strings.TrimSpace(rest), "=")
			if ok && (set || rest != "" && len(f) == len("-m")) {
				value = strings.TrimSpace(v)
			} else if ok && rest == "" && i+1 < len(args) {
				value = args[i+1]
			}
		}
	}
	if value == "" && s.Env != "" {
		value = os.Getenv(s.Env)
	}
	for _, file := range slices.Concat(files...) {
		if value == "" && s.Key != nil {
			value, _, _ = file.Get(s.Key...) // the agent reports its faults
		}
	}
	return strings.Trim(value, `"'`)
}

// A knowing is what an agent knows about its models.
type knowing struct {
	agent     *agents.Agent // its row, with what its catalogue and settings say
	starts    string        // the model that it starts with; empty if it does not say
	elsewhere string        // the provider of that model, if its requests do not come through the gateway
	unread    []string      // notes about settings that were not read
	limit     int           // the size at which it condenses by itself, if that is below its usual one; 0 otherwise
	source    string
	raised    string
	set       bool // the user has set when it condenses by itself
}

// readOwn returns what an agent knows about its models.
func readOwn(ctx context.Context, agent *agents.Agent, program string, args []string) *knowing {
	p, own := pointOf(agent), *agent
	k := &knowing{agent: &own}
	if p.Own == nil || !talks(agent, args) {
		return k
	}
	o, set := new(*p.Own), &own.Set
	files := k.open(slices.Concat(p.Settings, o.Files))
	if name := setting(&o.Profile, nil, args); name != "" && name == filepath.Base(name) {
		o.Layer.Path = strings.Replace(o.Layer.Path, "*", name, 1)
		files = slices.Concat(k.open([]Settings{o.Layer}), files)
	}
	if at, text := flagSettings(p, args); at >= 0 {
		files = slices.Insert(files, 0, []*settings.File{settings.Parse(settings.JSON, text)})
	}
	if p.Merge != "" && os.Getenv(p.Merge) != "" {
		files = slices.Insert(files, 0, []*settings.File{settings.Parse(settings.JSON, []byte(os.Getenv(p.Merge)))})
	}
	number := func(s *agents.Source, least, most float64) float64 { // -1 if there is none
		n, err := strconv.ParseFloat(strings.ReplaceAll(setting(s, files, args), "_", ""), 64)
		if err != nil || n < least || n > most || most > 1 && n != math.Trunc(n) {
			return -1
		}
		return n
	}
	k.choose(o, files, args)
	chosen := k.starts
	var listed []agents.Window
	for _, file := range catalogs(ctx, o, files, program) {
		var v any
		if json.Unmarshal(file.Text, &v) == nil {
			listed = append(k.read(o, v, "", new(float64)), listed...)
		}
	}
	slices.SortStableFunc(listed, func(a, b agents.Window) int { return len(b.Model) - len(a.Model) }) // the names are beginnings
	own.Windows = append(listed, own.Windows...)
	k.starts = cmp.Or(chosen, k.starts)
	if window := int(number(&set.Window, minWindow, maxTokens)); window > 0 {
		own.Windows, k.source = []agents.Window{{Tokens: window}}, "its settings"
	} else if slices.ContainsFunc(listed, func(w agents.Window) bool { return w.Model == k.starts }) {
		k.source = "its catalogue"
	}
	switch share, spare := number(&set.Share, 0, 1), int(number(&set.Spare, 0, maxTokens)); {
	case setting(&set.Off, files, args) == "false":
		own.Share, own.Reserve = 0, 0
	case share > 0:
		own.Share = share
	case spare >= 0 && own.Input > 0:
		own.Input = max(1, spare)
	case spare >= 0:
		own.Reserve = max(1, spare)
	}
	if k.limit = max(0, int(number(&set.Limit, minWindow, maxTokens))); k.limit > 0 {
		k.source = "its settings"
	}
	for _, s := range append([]agents.Source{set.Limit, set.Share, set.Spare, set.Off}, set.More...) {
		has := func(f *settings.File) bool { return s.Key != nil && f.Has(s.Key...) }
		k.set = k.set || setting(&s, nil, args) != "" || slices.ContainsFunc(slices.Concat(files...), has)
	}
	return k
}

// later returns how the agent is made to condense by itself later than condense; nil if condense does not.
func (f *gatewayFlags) later(g *gateway, talks bool) *agents.Later {
	if due, _, _ := live.Due(g.Gateway, f.knows.agent.Name, f.knows.starts); due <= 0 || f.keepLimit || g.settings.Observe || !talks {
		return nil
	}
	return f.knows.later()
}

// later returns how the agent condenses by itself later, which is what is known of it then; nil if it cannot, or the user has set when.
func (k *knowing) later() *agents.Later {
	l := k.agent.Later
	if l == nil || k.set {
		return nil
	}
	if a := k.agent; l.Share != a.Share || l.Reserve != a.Reserve || l.Input != a.Input {
		a.Share, a.Reserve, a.Input, k.raised = l.Share, l.Reserve, l.Input, ", raised for this run"
	}
	return l
}

// The windows that a model can have, in tokens.
const minWindow, maxTokens = 1000, 1e8

// choose finds the model that the agent starts with, and its provider, whose windows count too.
func (k *knowing) choose(o *Own, files [][]*settings.File, args []string) {
	k.starts = setting(&o.Model, files, args)
	if setting(&o.Model, nil, args) != "" { // the provider of the settings is that of their own model
		files = nil
	}
	provider, name, found := strings.Cut(k.starts, "/")
	if p := setting(&o.Provider, files, args); p != "" {
		provider, name = p, strings.TrimPrefix(k.starts, p+"/")
	} else if o.Within == nil || !found {
		provider, name = "", k.starts[strings.LastIndex(k.starts, "/")+1:]
	}
	k.starts = name
	if provider != "" && !slices.Contains(o.Within, provider) {
		k.elsewhere, o.Within = provider, slices.Concat([]string{provider}, o.Within)
	}
}

// open reads settings files, in the order in which they win, in a group for each of all. It notes those that cannot be read.
func (k *knowing) open(all []Settings) [][]*settings.File {
	groups := make([][]*settings.File, len(all))
	for i := range slices.Backward(all) {
		for _, file := range paths(&all[i]) {
			switch text, err := readSettings(file); {
			case err == nil:
				groups[i] = append(groups[i], settings.Parse(all[i].Format, text))
			case !errors.Is(err, fs.ErrNotExist):
				k.unread = append(k.unread, fmt.Sprintf("%s: %v; its settings are not known", cli.FromHome(file), err))
			}
		}
	}
	return groups
}

// catalogs returns the files with the agent's models, the most special last.
func catalogs(ctx context.Context, o *Own, files [][]*settings.File, program string) (found []*settings.File) {
	for _, group := range slices.Backward(files) {
		found = append(found, plain.Only(group, func(file *settings.File) bool { return o.Context != nil && file.Format == settings.JSON })...)
	}
	if len(found) > 0 || o.List == nil {
		return found
	}
	const patience = 3 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, o.List...) //nolint:gosec // the agent, which the user starts
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return nil
	}
	defer context.AfterFunc(ctx, func() { _ = out.Close() })() // a child of its may hold it
	text, _ := io.ReadAll(io.LimitReader(out, maxSettings))
	if cmd.Wait() != nil { // an older version, which does not know the command
		return nil
	}
	return []*settings.File{settings.Parse(settings.JSON, text)}
}

// read returns the models below v, which is a member of this name; of a list, it has none.
func (k *knowing) read(o *Own, v any, name string, first *float64) []agents.Window {
	if list, ok := v.([]any); ok {
		return slices.Concat(plain.Each(list, func(v any) []agents.Window { return k.read(o, v, "", first) })...)
	}
	m, _ := v.(map[string]any)
	var at any
	last := 0
	for i := 0; i < len(o.Context) && at == nil; i++ {
		at, last = v, i+1
		for _, part := range o.Context[i] {
			inner, _ := at.(map[string]any)
			at = inner[part]
		}
	}
	if window, ok := at.(float64); ok && window >= minWindow && window <= maxTokens && window == math.Trunc(window) {
		id, _ := m[o.ID].(string)
		if id = cmp.Or(id, name); id == "" {
			return nil
		}
		if n, ok := m[o.First].(float64); ok && (*first == 0 || n < *first) {
			*first, k.starts = n, id
		}
		return []agents.Window{{Model: id, Tokens: int(window), Input: last < len(o.Context)}}
	}
	names := slices.DeleteFunc(slices.Clone(o.Within), func(name string) bool { return m[name] == nil })
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(m))
	}
	return slices.Concat(plain.Each(names, func(name string) []agents.Window { return k.read(o, m[name], name, first) })...)
}

// of returns what the agent knows about a model, whose window is known otherwise, or 0.
func (k *knowing) of(model string, window int) live.AgentLimit {
	l := k.agent.Limit(model, window)
	if k.limit > 0 {
		l.Compacts = min(cmp.Or(l.Compacts, k.limit), k.limit)
	}
	return live.AgentLimit(l)
}

// first says which of the two condenses first, at what size, and why, and what was not read; not the former if the agent does not condense
// by itself.
func (k *knowing) first(g *live.Gateway) []string {
	row := agents.Find(k.agent.Name)
	if off := k.alone() && row.Share+float64(row.Reserve) > 0; row == agents.Any() || off && k.elsewhere == "" {
		return k.unread
	}
	return append(k.unread, k.said(live.Due(g, k.agent.Name, k.starts)))
}

// alone reports whether the agent is not known to condense by itself.
func (k *knowing) alone() bool { return k.agent.Share == 0 && k.agent.Reserve == 0 }

func (k *knowing) said(due, window int, known bool) string {
	own, who := k.of(k.starts, window), k.agent.Title
	which, rest := cmp.Or(plain.Clip(k.starts), "the model"), ""
	switch {
	case k.elsewhere != "":
		return fmt.Sprintf("requests to %s do not come through condense", plain.Clip(k.elsewhere))
	case k.alone() && due > 0:
		return fmt.Sprintf("conversations are condensed at about %d %% of the window of the model, unless %s does it by itself before: when is not known",
			100*due/max(1, window), who)
	case due <= 0:
		return fmt.Sprintf("%s condenses by itself before condense, which only does what the vendor would refuse (auto: false)", who)
	case !known: // its requests will say
		if at := k.of("", window).Compacts; at > 0 {
			due = min(due, int(live.BeforeAgent*float64(at)))
		}
		return fmt.Sprintf("conversations are condensed before %s does it by itself, at about %d %% of the window of the model", who, 100*due/max(1, window))
	case own.Compacts > 0:
		rest = fmt.Sprintf(", before %s does at %s of %s", who, size.Group(own.Compacts), size.Group(cmp.Or(own.Window, window))) + k.raised
	}
	why := k.source
	if why == "" && own.Window > 0 {
		why = "its usual windows"
	}
	return fmt.Sprintf("%s is condensed at %s tokens%s, by %s", which, size.Group(due), rest, cmp.Or(why, "the table of models"))
}
