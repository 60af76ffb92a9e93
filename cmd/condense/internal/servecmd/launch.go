package servecmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/plain"
)

// A launched agent.
type launched struct {
	args, env []string
	notes     []string
	folder    *runFolder // nil if the agent needs no file
}

func (l *launched) remove() error {
	if l.folder == nil {
		return nil
	}
	return l.folder.remove()
}

// file writes a file for the agent and returns its path.
func (l *launched) file(name, text string) (path string, err error) {
	if l.folder == nil {
		if l.folder, err = newRunFolder(); err != nil {
			return "", err
		}
	}
	path = filepath.Join(l.folder.path, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// A pointing is where an agent is pointed at.
type pointing struct {
	base   string   // the gateway's address
	secret string   // of recall; empty for an agent without these tools
	status []string // the program of its status line, with arguments; nil for the agent's own
	later  *agents.Later
}

// launch returns the arguments and the environment with which an agent sends its requests to the
// gateway, and has its tools for recall, if there is a secret for them.
func launch(agent *agents.Agent, args []string, own addresses, to pointing, environ []string) (*launched, error) {
	l := &launched{env: slices.Clone(environ)}
	p := pointOf(agent)
	base, secret := to.base, to.secret
	// Clients append the last part of the path to the address. If the user's own address has no /v1, neither has the
	// gateway's, and the path at the upstream is the same as without the gateway.
	v1 := func(api string) string {
		if slices.Contains(own.unversioned(), api) {
			return base
		}
		return base + "/v1"
	}
	texts := []string{
		"{base}", base, "{openai}", v1(agents.OpenAI), "{anthropic/v1}", v1(agents.Anthropic), "{gemini}", base,
		"{vertex}", base, "{vertex/v1}", v1(agents.Vertex), "{foundry}", own.foundry(base),
		"{mcp}", base + "/mcp", "{secret}", secret, "{status}", shellLine(to.status),
	}
	fill := strings.NewReplacer(texts...).Replace
	recall := p.Recall
	begins := len(args) == 0 || !slices.Contains(p.Without, args[0])
	if secret == "" || !begins {
		recall = nil
	}
	for name, value := range p.Env {
		l.set(name, fill(value))
	}
	if p.File != "" {
		file, err := l.file(p.FileName, fill(p.File))
		if err != nil {
			return nil, errors.Join(err, l.remove())
		}
		fill = strings.NewReplacer(append(texts, "{file}", file)...).Replace
	}
	if begins {
		l.args = append(l.args, plain.Each(p.Args, fill)...)
	}
	if p.Merge != "" {
		text, err := merged(&p, recall, to.later, lookup(environ, p.Merge), fill)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", p.Merge, err), l.remove())
		}
		l.set(p.Merge, text)
	}
	var status []Key
	if to.status != nil && begins {
		status = p.Status
		if err := l.meter(p.Meter, to.status, environ); err != nil {
			return nil, errors.Join(err, l.remove())
		}
	}
	args, err := l.override(agent, args, own, status, fill)
	if err != nil {
		return nil, errors.Join(err, l.remove())
	}
	for name, what := range p.Elsewhere {
		if v := lookup(environ, name); v != "" && v != "0" && v != "false" {
			l.notes = append(l.notes, fmt.Sprintf("%s is set: %s uses %s, and its requests do not come through condense", name, agent.Title, what))
		}
	}
	if recall != nil {
		if err := l.recall(recall, fill); err != nil {
			return nil, errors.Join(err, l.remove())
		}
	}
	if to.later != nil { // the user's arguments come after these
		l.args = append(l.args, to.later.Args...)
		for name, value := range to.later.Env {
			l.set(name, value)
		}
	}
	l.args = append(l.args, args...)
	l.bypassProxy(environ)
	return l, nil
}

// recall gives the agent the gateway's server of MCP.
func (l *launched) recall(r *Recall, fill func(string) string) (err error) {
	file := ""
	if r.File != "" {
		if file, err = l.file("mcp.json", fill(r.File)); err != nil {
			return err
		}
	}
	for name, value := range r.Env {
		l.set(name, fill(value))
	}
	l.args = append(l.args, plain.Each(r.Args, func(arg string) string { return strings.ReplaceAll(fill(arg), "{mcpfile}", file) })...)
	return nil
}

// meterVariable has the program of the status line for an agent's plugin, as JSON.
const meterVariable = "CONDENSE_STATUSLINE"

// meter gives the agent a plugin that shows the status line.
func (l *launched) meter(m *Meter, program, environ []string) error {
	if m == nil {
		return nil
	}
	line, err := json.Marshal(program)
	first, last := "", ""
	for i := 0; m.Plugin != "" && i < len(m.Files) && err == nil; i++ {
		last, err = l.file(filepath.Base(m.Files[i].Path), cmp.Or(m.Files[i].Text, m.Plugin))
		first = cmp.Or(first, last)
		l.set(meterVariable, string(line))
	}
	fill := strings.NewReplacer("{plugin}", first, "{hook}", hookCommand(program)).Replace
	l.args = append(l.args, plain.Each(m.Args, fill)...)
	if own := lookup(environ, m.Variable); m.Variable != "" && own != "" {
		l.notes = append(l.notes,
			fmt.Sprintf("%s is set: add the plugin to %s for --status; condense statusline --plugin prints it", m.Variable, own))
	} else if m.Variable != "" {
		l.set(m.Variable, last)
	}
	return err
}

// hookCommand is the command of a hook that prints the status line, as a string of JSON and of TOML.
func hookCommand(program []string) string {
	return strconv.Quote(shellLine(append(slices.Clip(program), "--output", "hook")))
}

func (l *launched) set(name, value string) {
	l.env = slices.DeleteFunc(l.env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	l.env = append(l.env, name+"="+value)
}

// bypassProxy keeps the agent from sending requests for the gateway to a proxy of the network. The gateway itself
// uses the proxy for its upstreams.
func (l *launched) bypassProxy(environ []string) {
	const local = "127.0.0.1"
	proxies := []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"}
	if !slices.ContainsFunc(proxies, func(name string) bool { return lookup(environ, name) != "" }) {
		return
	}
	without := cmp.Or(lookup(environ, "NO_PROXY"), lookup(environ, "no_proxy"))
	if without != "" && without != "*" && !slices.Contains(strings.Split(without, ","), local) {
		without += ","
	}
	if without != "*" && !strings.HasSuffix(without, local) {
		without += local
	}
	l.set("NO_PROXY", without)
	l.set("no_proxy", without)
}

func lookup(environ []string, name string) string {
	for _, e := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}
