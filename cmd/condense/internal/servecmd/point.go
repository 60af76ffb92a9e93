package servecmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/settings"
	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/plain"
)

// An address that the user has given an agent, for one API.
type address struct {
	url       string
	from      string // the variable or file
	versioned bool   // it ends in /v1, if the API is the vendor's
	setting   *Settings
	provider  string // of the agent's settings; empty is the built-in one
}

type addresses map[string]address

func (own addresses) upstreams() map[string]string {
	urls := map[string]string{}
	for api, a := range own {
		urls[api] = a.url
	}
	return urls
}

// unversioned returns the APIs whose address would end with /v1, but does not: requests to the user's server go
// without it.
func (own addresses) unversioned() []string {
	var names []string
	for api, a := range own {
		if a.versioned && !strings.HasSuffix(strings.TrimRight(a.url, "/"), "/v1") {
			names = append(names, api)
		}
	}
	return names
}

// unless returns the addresses that flags do not replace.
func (own addresses) unless(flags []string) addresses {
	rest := addresses{}
	for api, a := range own {
		if slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, api+"=") }) {
			a.versioned = false
		}
		rest[api] = a
	}
	return rest
}

// variables have addresses that the SDKs of the vendors read.
var variables = []struct {
	name, api string
	versioned bool
	upstream  func(value string) string // nil if the value is the upstream's address
	own       string                    // a variable that chooses the API, and
	kind      string                    // its value; the agent that reads them is the only one that does
}{
	{name: "ANTHROPIC_BASE_URL", api: agents.Anthropic},
	{name: "ANTHROPIC_API_BASE", api: agents.Anthropic},
	{name: "ANTHROPIC_HOST", api: agents.Anthropic},
	{name: "OPENAI_BASE_URL", api: agents.OpenAI, versioned: true},
	{name: "OPENAI_API_BASE", api: agents.OpenAI, versioned: true},
	{name: "OPENAI_HOST", api: agents.OpenAI},
	{name: "GOOGLE_GEMINI_BASE_URL", api: agents.Gemini},
	{name: "GOOGLE_VERTEX_BASE_URL", api: agents.Vertex},
	{name: "ANTHROPIC_VERTEX_BASE_URL", api: agents.Vertex, versioned: true},
	{name: "ANTHROPIC_FOUNDRY_BASE_URL", api: agents.Azure, upstream: foundry},
	{name: "ANTHROPIC_FOUNDRY_RESOURCE", api: agents.Azure, upstream: resourceHost},
	{name: "COPILOT_PROVIDER_BASE_URL", api: agents.Anthropic, own: "COPILOT_PROVIDER_TYPE", kind: "anthropic"},
	{name: "COPILOT_PROVIDER_BASE_URL", api: agents.OpenAI, versioned: true, own: "COPILOT_PROVIDER_TYPE", kind: "openai"},
	{name: "COPILOT_PROVIDER_BASE_URL", api: agents.OpenAI, versioned: true, own: "COPILOT_PROVIDER_TYPE"},
	{name: "ANTHROPIC_BEDROCK_BASE_URL", api: agents.Bedrock},
}

func resourceHost(name string) string { return "https://" + name + ".services.ai.azure.com" }

const claudeOnly = "anthropic+" // an upstream that speaks Anthropic's API

// foundry returns the upstream of a base URL for Anthropic's API at Microsoft Foundry: the resource, whose other APIs
// it has too, or the base itself of a server with another path.
func foundry(base string) string {
	if resource, ok := strings.CutSuffix(strings.TrimRight(base, "/"), "/anthropic"); ok {
		return resource
	}
	return claudeOnly + base
}

// foundry returns the base URL that replaces it.
func (own addresses) foundry(base string) string {
	base += "/" + agents.Azure
	if strings.HasPrefix(own[agents.Azure].url, claudeOnly) {
		return base
	}
	return base + "/anthropic"
}

// ownAddresses returns the addresses that the agent would use without the gateway, as far as the
// user has set them. A settings file that cannot be read is the agent's to report.
func ownAddresses(agent *agents.Agent, args []string) (addresses, error) {
	own := addresses{}
	p := pointOf(agent)
	for i := range p.Settings {
		s := &p.Settings[i]
		if !filepath.IsAbs(s.Path) && (i == 0 || filepath.IsAbs(p.Settings[i-1].Path)) {
			own.flagged(p, args) // takes precedence over all files but an administrator's
		}
		for _, file := range paths(s) {
			text, err := readSettings(file)
			if err != nil {
				continue
			}
			if err := own.provider(p.Provider, s, file, text); err != nil {
				return nil, err
			}
			own.add(s, s.Format, text, file)
		}
	}
	for _, v := range variables {
		_, known := own[v.api]
		_, read := p.Env[v.name]
		if v.own != "" {
			known = known || !read || os.Getenv(v.own) != v.kind
		}
		if url := os.Getenv(v.name); url != "" && !known && (read || v.upstream == nil && strings.HasSuffix(v.name, "_BASE_URL")) {
			if v.upstream != nil {
				url = v.upstream(url)
			}
			own[v.api] = address{url: url, from: v.name, versioned: v.versioned}
		}
	}
	if _, known := own[agents.Bedrock]; !known && usesBedrock(agent) {
		region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1") // as Claude Code does
		own[agents.Bedrock] = address{url: "https://bedrock-runtime." + region + ".amazonaws.com", from: "AWS_REGION"}
	}
	return own, nil
}

// usesBedrock reports whether an agent is configured for Amazon Bedrock.
func usesBedrock(agent *agents.Agent) bool {
	_, can := pointOf(agent).Env["ANTHROPIC_BEDROCK_BASE_URL"]
	return can && isSet("CLAUDE_CODE_USE_BEDROCK")
}

// isSet reports whether a variable switches something on.
func isSet(name string) bool {
	v := os.Getenv(name)
	return v != "" && v != "0" && v != "false"
}

// unsigned returns a note for an agent whose requests Amazon would not accept.
func unsigned(agent *agents.Agent, sign bool) []string {
	if !usesBedrock(agent) || sign || os.Getenv("AWS_BEARER_TOKEN_BEDROCK") != "" {
		return nil
	}
	return []string{agent.Title + " signs its requests for the gateway, and Amazon accepts only signatures for itself: set serve.bedrock.sign: true, " +
		"or AWS_BEARER_TOKEN_BEDROCK"}
}

// flagged adds the addresses in the user's arguments.
func (own addresses) flagged(p Point, args []string) {
	if at, text := flagSettings(p, args); at >= 0 {
		own.add(&p.Settings[len(p.Settings)-1], settings.JSON, text, p.Override)
	}
}

// add adds the addresses that a text of settings has under the keys of s.
func (own addresses) add(s *Settings, format string, text []byte, from string) {
	for _, k := range s.Keys {
		url, ok, err := settings.Get(format, text, k.Path...)
		if _, known := own[k.API]; err == nil && ok && url != "" && !known {
			own[k.API] = address{url: url, from: from, versioned: k.Value != "{base}", setting: s}
		}
	}
}

// flagSettings returns the settings that the user's arguments give an agent, inline or in a file, and
// which argument has them; -1 if none does. The last flag counts.
func flagSettings(p Point, args []string) (at int, text []byte) {
	if p.Override == "" {
		return -1, nil
	}
	value := ""
	at = -1
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if v, ok := strings.CutPrefix(arg, p.Override+"="); ok {
			at, value = i, v
		} else if i > 0 && args[i-1] == p.Override {
			at, value = i, arg
		}
	}
	if at < 0 {
		return -1, nil
	}
	if text = []byte(value); !strings.HasPrefix(strings.TrimSpace(value), "{") {
		var err error
		if text, err = readSettings(value); err != nil {
			return -1, nil // the agent reports it
		}
	}
	return at, text
}

var providerRule = plain.Pattern(`^[A-Za-z0-9_-]+$`)

// provider adds the address of the provider that a file chooses.
func (own addresses) provider(p *Provider, s *Settings, file string, text []byte) error {
	if p == nil {
		return nil
	}
	name, ok, err := settings.Get(s.Format, text, p.Choice)
	if err != nil || !ok || name == p.Builtin {
		return nil //nolint:nilerr // the agent reports it
	}
	url, ok, err := settings.Get(s.Format, text, p.Table, name, p.Address)
	if err != nil || !ok || !providerRule().MatchString(name) {
		return fmt.Errorf("%s: %s is %q, whose address wrap cannot change: it needs a key %s in [%s.%s]",
			file, p.Choice, name, p.Address, p.Table, name)
	}
	own[p.API] = address{url: url, from: file, versioned: true, setting: s, provider: name}
	return nil
}

const maxSettings = 8 << 20 // bytes of a settings file or a catalogue

func readSettings(file string) ([]byte, error) { return disk.ReadFile(file, maxSettings) }

// paths returns where a settings file can be, nearest first.
func paths(s *Settings) []string {
	if s.Inside != "" {
		if file := os.Getenv(s.Inside); file != "" {
			return []string{file}
		}
		return nil
	}
	if name, below, _ := strings.Cut(s.Dir, "/"); name != "" && os.Getenv(name) != "" {
		return []string{filepath.Join(os.Getenv(name), below, filepath.Base(s.Path))}
	}
	if rest, ok := strings.CutPrefix(s.Path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil
		}
		return []string{filepath.Join(home, rest)}
	}
	if filepath.IsAbs(s.Path) {
		return []string{s.Path}
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	found := []string{filepath.Join(dir, s.Path)}
	for s.Upward && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		found = append(found, filepath.Join(dir, s.Path))
	}
	return found
}

// merged is a configuration in a variable with the addresses of the gateway, its server of MCP and the later limit, where there are these.
func merged(p *Point, recall *Recall, later *agents.Later, text string, fill func(string) string) (string, error) {
	keys := p.Settings[len(p.Settings)-1].Keys
	if recall != nil {
		keys = slices.Concat(keys, recall.Keys)
	}
	out := []byte(cmp.Or(text, "{}"))
	var err error
	for _, k := range keys {
		if out, _, err = settings.Set(settings.JSON, out, fill(k.Value), k.Path...); err != nil {
			return "", err
		}
	}
	if later != nil && later.Key != nil {
		out, _, err = settings.Set(settings.JSON, out, later.Value, later.Key...)
	}
	return string(out), err
}

// override makes the gateway win over settings that win over the environment, and over the provider
// of the settings. It returns the user's arguments, changed if they have settings of their own: an agent
// uses one flag with settings only. Keys are further settings.
func (l *launched) override(agent *agents.Agent, args []string, own addresses, keys []Key, fill func(string) string) ([]string, error) {
	p := pointOf(agent)
	needed := false
	for _, api := range []string{agents.Anthropic, agents.OpenAI} {
		switch a := own[api]; {
		case a.provider != "":
			l.args = plain.Each(p.Provider.Args, func(arg string) string { return strings.ReplaceAll(fill(arg), "{provider}", a.provider) })
		case a.setting == nil || !a.setting.Wins:
		case filepath.IsAbs(a.setting.Path):
			l.notes = append(l.notes, fmt.Sprintf("%s sets the address %s, which wrap cannot change: requests do not come through condense", a.from, a.url))
		default:
			needed = true
			l.notes = append(l.notes, fmt.Sprintf("%s sets the address %s, which is the gateway's upstream in this run", cli.FromHome(a.from), a.url))
		}
	}
	if needed {
		keys = slices.Concat(p.Settings[len(p.Settings)-1].Keys, keys)
	}
	if len(keys) == 0 {
		return args, nil
	}
	at, text := flagSettings(p, args)
	for _, k := range keys {
		var err error
		if text, _, err = settings.Set(settings.JSON, text, fill(k.Value), k.Path...); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Override, err)
		}
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil { // it has comments
		line.Reset()
		line.Write(text)
	}
	if at < 0 {
		l.args = append(l.args, p.Override, line.String())
		return args, nil
	}
	args = slices.Clone(args)
	prefix := ""
	if strings.HasPrefix(args[at], p.Override+"=") {
		prefix = p.Override + "="
	}
	args[at] = prefix + line.String()
	return args, nil
}
