package servecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/cmd/condense/internal/settings"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/live"
)

// An Own says where an agent has its models and its limits: it condenses by itself, too.
type Own struct {
	Files   []Settings // besides [Point.Settings]
	List    []string   // arguments with which its program prints the models as JSON, if no file has them
	Within  []string   // where members with these names stand side by side, the others are of no interest
	ID      string     // the name of a model in it, if that is not the member's
	Context []string   // the path of its window from there, in JSON
	First   string     // of the models, the agent starts with the one with the smallest

	Model  Source // the model that it starts with
	Window Source // a window for every model
	Limit  Source // the size at which it condenses by itself, if that is below its usual one
	Share  Source // the share of a window at which it does
	Spare  Source // what it leaves free of a window
	Off    Source // "false": it never does
}

// A Source is where a user sets a value: in flags, a variable or a settings file, in this order.
type Source struct {
	Flags []string // -x VALUE, -x=VALUE, or NAME=VALUE
	Env   string
	Key   []string
}

// value returns the value; empty if the user has set none.
func (s *Source) value(files []Settings, args []string) string {
	value := ""
	for i, arg := range args {
		for _, f := range s.Flags {
			if v, ok := strings.CutPrefix(arg, f+"="); ok {
				value = v
			} else if arg == f && i+1 < len(args) {
				value = args[i+1]
			}
		}
	}
	if value == "" && s.Env != "" {
		value = os.Getenv(s.Env)
	}
	for i := range files {
		for _, file := range paths(&files[i]) {
			if value != "" || s.Key == nil {
				break
			}
			if text, err := os.ReadFile(file); err == nil {
				value, _, _ = settings.Get(files[i].Format, text, s.Key...) // the agent reports its faults
			}
		}
	}
	return strings.Trim(value, `"'`)
}

// A knowing is what an agent knows about its models.
type knowing struct {
	agent   *agents.Agent
	windows map[string]int
	starts  string                   // the model that it starts with; empty if it does not say
	window  int                      // for every model; 0: none is set
	rule    func(window int) (n int) // the size at which it condenses by itself; nil: as the table of agents has it
	limit   int                      // that at most, if it is set
}

// readOwn returns what an agent knows about its models.
func readOwn(ctx context.Context, agent *agents.Agent, program string, args []string) *knowing {
	p := pointOf(agent)
	o, k := p.Own, &knowing{agent: agent, windows: map[string]int{}}
	if o == nil || !talks(agent, args) {
		return k
	}
	files := slices.Concat(p.Settings, o.Files)
	number := func(s *Source) float64 {
		n, _ := strconv.ParseFloat(strings.ReplaceAll(s.value(files, args), "_", ""), 64)
		return max(0, n)
	}
	for _, text := range o.catalogs(ctx, files, program) {
		var v any
		if json.Unmarshal(text, &v) == nil {
			k.read(o, v, "", new(float64))
		}
	}
	k.starts = cmp.Or(o.Model.value(files, args), k.starts)
	k.starts = k.starts[strings.LastIndex(k.starts, "/")+1:] // OpenCode's have the provider before it
	k.window, k.limit = int(number(&o.Window)), int(number(&o.Limit))
	switch share, spare := number(&o.Share), number(&o.Spare); {
	case o.Off.value(files, args) == "false":
		k.rule = func(int) int { return 0 }
	case share > 0:
		k.rule = func(window int) int { return int(share * float64(window)) }
	case spare > 0:
		k.rule = func(window int) int { return max(0, window-int(spare)) }
	}
	return k
}

// catalogs returns the texts with the agent's models, the most special last.
func (o *Own) catalogs(ctx context.Context, files []Settings, program string) (texts [][]byte) {
	for i := range slices.Backward(files) {
		for _, file := range paths(&files[i]) {
			if text, err := os.ReadFile(file); err == nil && o.Context != nil && files[i].Format == settings.JSON {
				texts = append(texts, text)
			}
		}
	}
	if len(texts) > 0 || o.List == nil {
		return texts
	}
	const patience, most = 3 * time.Second, 8 << 20
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, o.List...) //nolint:gosec // the agent, which the user starts
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(out, most))
	if cmd.Wait() != nil { // an older version, which does not know the command
		return nil
	}
	return [][]byte{text}
}

// read adds the models below v, which is a member of this name.
func (k *knowing) read(o *Own, v any, name string, first *float64) {
	if list, ok := v.([]any); ok {
		for _, v := range list {
			k.read(o, v, name, first)
		}
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	at := v
	for _, part := range o.Context {
		inner, _ := at.(map[string]any)
		at = inner[part]
	}
	if window, ok := at.(float64); ok && window > 0 {
		id, _ := m[o.ID].(string)
		id = cmp.Or(id, name)
		k.windows[id] = int(window)
		if n, ok := m[o.First].(float64); ok && (*first == 0 || n < *first) {
			*first, k.starts = n, id
		}
		return
	}
	chosen := slices.ContainsFunc(o.Within, func(name string) bool { return m[name] != nil })
	for name, v := range m {
		if !chosen || slices.Contains(o.Within, name) {
			k.read(o, v, name, first)
		}
	}
}

// of returns what the agent knows about a model, whose window is known otherwise, or 0.
func (k *knowing) of(model string, window int) live.AgentLimit {
	own := cmp.Or(k.window, k.windows[model])
	l := k.agent.Limit(model, cmp.Or(own, window))
	if own > 0 && own != l.Window { // rather than the table's
		bare := *k.agent
		bare.Windows = nil
		l = bare.Limit(model, own)
		l.Window = own
	}
	if k.rule != nil {
		l.Compacts = k.rule(cmp.Or(l.Window, window))
	}
	if k.limit > 0 {
		l.Compacts = min(cmp.Or(l.Compacts, k.limit), k.limit)
	}
	return l
}

// first says which of the two condenses first, at what size, and why; nothing if the agent is not known to condense by itself.
func (k *knowing) first(g *live.Gateway) []string {
	if k.agent.Share == 0 && k.agent.Reserve == 0 {
		return nil
	}
	return []string{k.said(live.Due(g, k.agent.Name, k.starts))}
}

func (k *knowing) said(due, window int, known bool) string {
	own, who := k.of(k.starts, window), k.agent.Title
	which, rest := cmp.Or(k.starts, "the model"), ""
	switch {
	case due <= 0:
		return fmt.Sprintf("%s condenses by itself before condense, which only does what the vendor would refuse (auto: false)", who)
	case !known: // its requests will say
		if at := k.of("", window).Compacts; at > 0 {
			due = min(due, int(live.BeforeAgent*float64(at)))
		}
		return fmt.Sprintf("conversations are condensed before %s does it by itself, at about %d %% of the window of the model", who, 100*due/max(1, window))
	case own.Compacts > 0:
		rest = fmt.Sprintf(", before %s does at %s of %s", who, size.Group(own.Compacts), size.Group(cmp.Or(own.Window, window)))
	}
	why := "by the table of models"
	switch {
	case k.window > 0 || k.limit > 0:
		why = "by its settings"
	case k.windows[k.starts] > 0:
		why = "by its catalogue"
	case own.Window > 0:
		why = "by its usual windows"
	}
	return fmt.Sprintf("%s is condensed at %s tokens%s, %s", which, size.Group(due), rest, why)
}
