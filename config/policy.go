package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/tree"
)

// PolicyValues are the content of a policy, which an administrator gives. No other source of values can lift what it says.
type PolicyValues struct {
	Vendors      []string      `json:"vendors" refers:"vendor" example:"[anthropic, \"https://llm.example.com\"]" doc:"Who may read conversations: anthropic and openai at their own addresses, and the scheme and host of others. It holds for the models that condense can ask and for all upstreams."`
	Models       []string      `json:"models" refers:"model" example:"[\"claude-haiku-*\"]" doc:"The models that condense may ask, as their APIs know them; * is any text without a slash."`
	Plugins      policyPlugins `json:"plugins" unit:"object" of:"policy.plugins" doc:"The plugins that may be started: names of providers, with the checksum that each must have. {} is none."`
	MaxThreshold float64       `json:"max_threshold" unit:"percent" min:"5" max:"100" example:"80" doc:"The largest threshold. It is the default if that is larger, and auto cannot be false. It is of the window, see max_window; users may still observe, and pause a conversation."`
	MaxWindow    int64         `json:"max_window" unit:"tokens" min:"1000" example:"200_000" doc:"The largest window of profiles and declared models, so that none makes max_threshold void."`
	MinTarget    float64       `json:"min_target" unit:"percent" min:"1" max:"99" example:"20" doc:"The smallest target, and its default."`
}

type policyPlugins struct {
	Any string `json:"NAME" unit:"hash" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"The checksum of the plugin's program, or of its folder."`
}

// policyVariable names a policy that holds in addition to the machine's: it can only forbid more.
const policyVariable = "CONDENSE_POLICY"

// machinePolicy is the path of the machine's policy. It depends on no variable, which a user could set.
func machinePolicy() string {
	if runtime.GOOS == "windows" {
		return `C:\ProgramData\condense\policy.yaml`
	}
	return "/etc/condense/policy.yaml"
}

// policyFiles returns the policies in force. The machine's is one unless it certainly is not there.
func policyFiles(machine string, env environment) (files []string) {
	if _, err := os.Lstat(machine); !errors.Is(err, fs.ErrNotExist) {
		files = append(files, machine)
	}
	if named := env.get(policyVariable); named != "" {
		files = append(files, named)
	}
	return files
}

// An enforced is the lines of the policies in force.
type enforced []Setting

// readPolicies reads policies. With a fault, the configuration is not used, and none of them is compared with it.
func readPolicies(files []string, opts *Options) (all enforced, errs Errors) {
	for _, file := range files {
		c, wrong := readFile(file, opts, inPolicy)
		errs = append(errs, wrong...)
		if c != nil && len(wrong) == 0 && len(c.keys) == 0 { // perhaps it is being written
			from := Origin{Kind: FromFile, File: disk.FromHere(file)}
			errs = append(errs, &Error{Origin: from, Problem: "forbids nothing", Allowed: "remove it, or name a key of a policy"})
		}
		for _, f := range fieldsAt(inPolicy) {
			if c == nil || len(wrong) > 0 {
				break
			}
			switch at, named := c.keys[f.key]; {
			case named && c.values[f.key] == nil: // lines that are all commented out would forbid nothing
				errs = append(errs, &Error{Origin: at, Key: f.key, Problem: "is empty", Allowed: "must be " + f.allowed()})
			case named:
				all = append(all, Setting{Key: f.key, Value: c.values[f.key], Origin: at})
			}
		}
	}
	for _, s := range all {
		names, _ := s.Value.([]any)
		for _, v := range names {
			name, _ := v.(string)
			if known := vendorAt(name); s.Key == "vendors" && known != name && !slices.Contains(vendorsOwn, name) {
				errs = append(errs, &Error{
					Origin: s.Origin, Key: s.Key, Problem: strconv.Quote(name) + " is no vendor",
					Allowed:    "must be " + strings.Join(vendorsOwn, ", ") + ", or a scheme and a host in lower case",
					Suggestion: cmp.Or(known, suggest.Key(name, vendorsOwn)),
				})
			}
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return all, nil
}

// Policy returns the lines of the administrator's policies, which no value can lift; none if there is no policy.
func (c *Config) Policy() []Setting { return slices.Clone(c.opts.enforced) }

// Forbids returns why a policy does not let conversations go to an address; empty if they may.
func (c *Config) Forbids(address string) string {
	return c.opts.enforced.refusal("vendors", vendorAt(address))
}

// AllowPlugin returns why the policies in force do not let a program run that need have no name in a configuration: the checksum
// is none of those that a policy lists. It is asked for only if one lists plugins, and returned then.
func AllowPlugin(name string, checksum func() (string, error)) (sum string, err error) {
	env := environment(os.Environ())
	all, errs := readPolicies(policyFiles(machinePolicy(), env), &Options{Env: env, Dir: "."})
	if len(errs) > 0 {
		return "", errs
	}
	for _, s := range all {
		pins, ok := s.Value.(map[string]any)
		if !ok {
			continue
		}
		if sum, err = checksum(); err != nil {
			return "", err
		}
		listed := func(name string) bool { return strings.EqualFold(fmt.Sprint(pins[name]), sum) }
		if !slices.ContainsFunc(sortedKeys(pins), listed) {
			return "", errors.New(s.refuses("plugin " + name + " with the checksum " + sum))
		}
	}
	return sum, nil
}

// standard returns the default of a field within the policies.
func (e enforced) standard(f field, def any) any {
	for _, s := range e {
		limit, _ := number(s.Value)
		n, _ := number(def)
		if s.Key == "max_threshold" && f.key == "threshold" && n > limit || s.Key == "min_target" && f.key == "target" && n < limit {
			def = s.Value
		}
	}
	return def
}

// refusal returns why a policy's list does not have a name; empty if it does.
func (e enforced) refusal(list, name string) string {
	for _, s := range e {
		names, _ := s.Value.([]any)
		if s.Key == list && !slices.ContainsFunc(names, func(v any) bool {
			pattern, _ := v.(string)
			ok, err := path.Match(pattern, name)
			return name == pattern || ok && err == nil
		}) {
			return s.refuses(name)
		}
	}
	return ""
}

func (s Setting) refuses(what string) string {
	return fmt.Sprintf("%s is not allowed by the policy %s: %s %s", what, s.Origin, s.Key, compact(s.Value))
}

// vendorsOwn are the APIs whose vendors' own addresses are known.
var vendorsOwn = []string{"anthropic", "openai"}

// vendorAt returns the vendor whose own address it is, or else its scheme and host; empty if it is no address.
func vendorAt(address string) string {
	u, err := url.Parse(address[len(spoken().FindString(address)):])
	if err != nil || u.Host == "" {
		return ""
	}
	host := strings.ToLower(u.Scheme + "://" + u.Host)
	for _, name := range vendorsOwn {
		if f, ok := fieldAt(inUpstreams, name); ok && f.def() == host {
			return name
		}
	}
	return host
}

// forbids returns why condense may not ask a model; empty if it may, or cannot.
func (e enforced) forbids(m *Model) string {
	if m.API == "" {
		return ""
	}
	to := m.API
	if m.BaseURL != "" {
		to = vendorAt(m.BaseURL)
	}
	return cmp.Or(e.refusal("vendors", to), e.refusal("models", m.ID))
}

// pin returns the checksum that a policy demands of a plugin; empty if none does.
func (e enforced) pin(name string) string {
	for _, s := range e {
		if pins, _ := s.Value.(map[string]any); pins[name] != nil {
			sum, _ := pins[name].(string)
			return strings.ToLower(sum)
		}
	}
	return ""
}

// forbidden reports what the policies forbid, also the numbers of these profiles and modes.
func (v *validator) forbidden(all []*Resolved) {
	c, e := v.c, v.c.opts.enforced
	if len(e) == 0 {
		return
	}
	fail := func(p tree.Path, why string) {
		if why != "" {
			v.fail(p, &fault{problem: why})
		}
	}
	for _, s := range e {
		limit, _ := number(s.Value)
		if n := c.values.Serve.Epoch.Target; s.Key == "min_target" && n > 0 && n < limit {
			fail(tree.Path{string(inServe), "epoch", "target"}, s.refuses(percent(n)))
		}
		for _, r := range all {
			switch {
			case r == nil:
			case s.Key == "max_threshold" && r.Threshold > limit:
				fail(r.found["threshold"].at, s.refuses(percent(r.Threshold)))
			case s.Key == "max_window" && float64(r.Window) > limit:
				fail(r.found["window"].at, s.refuses("a window of "+size.Group(r.Window)+" tokens"))
			case s.Key == "max_threshold" && !r.Auto:
				fail(r.found["auto"].at, s.refuses("false"))
			case s.Key == "min_target" && r.Target < limit:
				fail(r.found["target"].at, s.refuses(percent(r.Target)))
			}
		}
		for _, name := range c.Models() {
			if n := c.values.Models[name].Window; s.Key == "max_window" && float64(n) > limit {
				fail(tree.Path{"models", name, "window"}, s.refuses("a window of "+size.Group(n)+" tokens"))
			}
		}
		for _, name := range c.Providers() {
			p, provider := tree.Path{"providers", name}, c.values.Providers[name]
			pins, _ := s.Value.(map[string]any)
			sum, listed := pins[name].(string)
			switch {
			case s.Key != "plugins" || provider.Plugin == "":
			case !listed:
				fail(p.With("plugin"), s.refuses("plugin "+name))
			case !strings.EqualFold(cmp.Or(provider.SHA256, e.pin(name)), sum):
				fail(p.With("sha256"), s.refuses("this checksum"))
			}
		}
	}
	ask := func(p tree.Path, name string) {
		_, declared := c.values.Models[name]
		if m, err := modelOf(c, name); err == nil && declared == (p[0] == "models") {
			fail(p, e.forbids(m))
		}
	}
	for _, name := range c.Models() {
		key := "model"
		if c.values.Models[name].BaseURL != "" {
			key = "base_url"
		}
		ask(tree.Path{"models", name, key}, name)
	}
	for _, name := range c.Profiles() {
		ask(tree.Path{"profiles", name, "model"}, c.values.Profiles[name].Model)
	}
	for _, name := range c.Providers() {
		p := tree.Path{"providers", name, "settings"}
		settings, _ := lookup(c.raw, p)
		named, _ := settings.(map[string]any)
		for _, key := range sortedKeys(named) {
			if text, ok := named[key].(string); ok && strings.EqualFold(key, "model") {
				ask(p.With(key), text)
			}
		}
	}
	ask(tree.Path{string(inServe), "account"}, c.values.Serve.Account)
	for _, name := range sortedKeys(c.values.Serve.Upstreams) {
		if p := (tree.Path{string(inServe), "upstreams", name}); c.origins[p.ID()].Kind != FromDefault {
			fail(p, e.refusal("vendors", vendorAt(c.values.Serve.Upstreams[name])))
		}
	}
}
