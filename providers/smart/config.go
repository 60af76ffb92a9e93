package smart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/suggest"
)

// Config are the settings of a [Provider].
type Config struct {
	Preset   string       `json:"preset" enum:"lossless|gentle|balanced|aggressive" doc:"name of a list of passes; empty means balanced unless passes are given"`
	Passes   []PassConfig `json:"passes" doc:"passes of your own instead of a preset's, in order: names, or objects with the key pass and the settings of that pass; at least one"`
	Land     float64      `json:"land" doc:"where lossy passes stop, as a share of the room for messages at the target; 0 means the preset's value"`
	MinGain  int          `json:"min_gain" doc:"tokens that must be saved in total unless the target is met, else nothing is changed"`
	MinShare float64      `json:"min_share" doc:"the same, as a share of the conversation"`
	Accept   Accept       `json:"accept" doc:"what must remain, else nothing is changed and the next provider is called: messages (their number), users (newest user messages, verbatim), first (the first message)"`
}

// DefaultConfig returns the default settings.
func DefaultConfig() Config { return Config{MinShare: 0.01} }

// A PassConfig is a pass in a list.
type PassConfig struct {
	// Pass is its name.
	Pass string
	// Always makes it run even if the passes before it have met the target.
	Always bool
	// Settings are the other keys, a JSON object; empty means the defaults.
	Settings json.RawMessage

	fault error // why it could not be read
}

// UnmarshalJSON reads a name, or an object with the key "pass". Anything else is reported by [Config.Validate],
// which knows the place in the list.
func (p *PassConfig) UnmarshalJSON(data []byte) error {
	*p = PassConfig{}
	p.fault = readPass(data, p)
	return nil
}

func readPass(data []byte, p *PassConfig) error {
	const want = "want the name of a pass, or an object with the key pass"
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &p.Pass)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil && len(data) > 0 && data[0] == '[' {
		return errors.New("got a list; " + want)
	} else if err != nil || all == nil {
		return fmt.Errorf("got %s; %s", data, want)
	}
	for _, key := range []struct {
		name, want string
		to         any
	}{{"pass", "the name of a pass", &p.Pass}, {"always", "true or false", &p.Always}} {
		if raw, ok := all[key.name]; ok {
			if err := json.Unmarshal(raw, key.to); err != nil {
				return fmt.Errorf("%s: got %s; want %s", key.name, raw, key.want)
			}
			delete(all, key.name)
		}
	}
	if p.Pass == "" {
		return fmt.Errorf("an object without the key pass, the name of the pass; there are %s", strings.Join(passNames(), ", "))
	}
	var err error
	p.Settings, err = json.Marshal(all)
	return err
}

// MarshalJSON writes the form that UnmarshalJSON reads.
func (p PassConfig) MarshalJSON() ([]byte, error) {
	all := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(p.Settings)) > 0 {
		if err := json.Unmarshal(p.Settings, &all); err != nil {
			return nil, fmt.Errorf("pass %s: %w", p.Pass, err)
		}
	}
	if len(all) == 0 && !p.Always {
		return json.Marshal(p.Pass)
	}
	name, err := json.Marshal(p.Pass)
	if err != nil {
		return nil, err
	}
	all["pass"] = name
	if p.Always {
		all["always"] = json.RawMessage("true")
	}
	return json.Marshal(all)
}

// Validate reports every setting that is wrong.
func (c *Config) Validate() error {
	var errs []error
	if _, ok := findPreset(c.Preset); removedPresets[c.Preset] != "" {
		errs = append(errs, fmt.Errorf("preset: there is no preset %q any more: %s", c.Preset, removedPresets[c.Preset]))
	} else if c.Preset != "" && !ok {
		errs = append(errs, fmt.Errorf("preset: no preset %q%s; there are %s", c.Preset, suggest.DidYouMean(c.Preset, presetNames()), strings.Join(presetNames(), ", ")))
	}
	switch {
	case c.Passes != nil && len(c.Passes) == 0:
		errs = append(errs, errors.New("passes: the list is empty, nothing would be done; name at least one pass, or leave the key out to have those of a preset"))
	case c.Preset != "" && len(c.Passes) > 0:
		errs = append(errs, fmt.Errorf("passes: the preset %q has passes of its own; leave one of the two out", c.Preset))
	}
	errs = append(errs, share("land", c.Land), atLeast(0, "min_gain", c.MinGain))
	if !(c.MinShare >= 0 && c.MinShare < 1) {
		errs = append(errs, fmt.Errorf("min_share: %v is not at least 0 and below 1", c.MinShare))
	}
	_, err := steps(c.Passes)
	return errors.Join(append(errs, c.Accept.Validate(), err)...)
}

// steps makes passes ready to run.
func steps(list []PassConfig) ([]step, error) {
	var (
		out  []step
		errs []error
	)
	for i, pc := range list {
		if pc.fault != nil {
			errs = append(errs, fmt.Errorf("passes: %d: %w", i+1, pc.fault))
			continue
		}
		p, ok := findPass(pc.Pass)
		if !ok {
			errs = append(errs, fmt.Errorf("passes: %d: no pass %q%s; there are %s", i+1, pc.Pass, suggest.DidYouMean(pc.Pass, passNames()), strings.Join(passNames(), ", ")))
			continue
		}
		run, err := p.runner(pc.Settings)
		if err != nil {
			errs = append(errs, fmt.Errorf("passes: %d: %s: %w", i+1, pc.Pass, err))
			continue
		}
		out = append(out, step{pass: p, always: pc.Always, run: run})
	}
	return out, errors.Join(errs...)
}

// Accept are conditions for a result. If it does not meet them, nothing is changed and the next
// provider of the chain runs. The zero value has no conditions.
type Accept struct {
	Messages int  `json:"messages"` // the least number that must remain, without summaries and markers
	Users    int  `json:"users"`    // how many of the newest messages of the user must remain unchanged
	First    bool `json:"first"`    // the first message must remain unchanged
}

// Validate says which condition is out of range.
func (a *Accept) Validate() error {
	return errors.Join(atLeast(0, "accept: messages", a.Messages), atLeast(0, "accept: users", a.Users))
}

// refuses says which condition the conversation does not meet; empty if it meets all. Conditions
// that the request did not meet either are ignored.
func (a *Accept) refuses(w *work, before, after []core.Message) string {
	left := map[string]*core.Message{}
	n := 0
	for i := range after {
		if m := &after[i]; m.ID != "" {
			left[m.ID] = m
			if m.Kind == core.KindOriginal {
				n++
			}
		}
	}
	stays := func(m *core.Message) bool { return left[m.ID] != nil && left[m.ID].Equal(*m) }
	if want := min(a.Messages, len(before)); n < want {
		return fmt.Sprintf("not accepted: %d messages left, want %d", n, want)
	}
	if a.First && len(before) > 0 && !stays(&before[0]) {
		return "not accepted: the first message is not as it was"
	}
	users := a.Users
	about := w.scores()
	for i := len(before) - 1; i >= 0 && users > 0; i-- {
		if about[i].user && !about[i].calls {
			users--
			if !stays(&before[i]) {
				return fmt.Sprintf("not accepted: message %s of the user is not as it was", before[i].ID)
			}
		}
	}
	return ""
}

// defaultPreset is used when the configuration names none.
const defaultPreset = "balanced"

// A preset is a list of passes with a name.
type preset struct {
	name, doc string
	land      float64 // see [Config.Land]
	passes    []PassConfig
}

// lossless are the passes that every preset of ours begins with.
var lossless = []PassConfig{
	{Pass: "layout", Always: true},
	{Pass: "environment", Always: true},
	{Pass: "superseded", Always: true},
	{Pass: "near_duplicates", Always: true},
	{Pass: "duplicates", Always: true}, // the last, so that no reference leads to a stub
}

// Lossless returns the passes of the preset lossless.
func Lossless() []PassConfig { return slices.Clone(lossless) }

func after(passes []PassConfig, more ...PassConfig) []PassConfig {
	return append(slices.Clip(passes), more...)
}

func with(name, settings string) PassConfig {
	return PassConfig{Pass: name, Settings: json.RawMessage(settings)}
}

// presets makes the documentation too: docs/smart.md is generated from it.
var presets = []preset{
	{name: "lossless", doc: "what is repeated, stale or empty goes; nothing that appears only once is touched", land: 1, passes: lossless},
	{
		name: "gentle", doc: "the lines with the lowest expected use, and no more than the target requires: for targets of 80 to 95 %, at which little but repeated lines has to go",
		land: 1, passes: []PassConfig{{Pass: "layout", Always: true}, with("value", `{}`)},
	},
	{
		name: "balanced", doc: "what lossless removes, then the lines with the lowest expected use, until the target is met",
		land: 1, passes: after(lossless, with("value", `{}`)),
	},
	{
		name: "aggressive", doc: "what lossless removes, what was read before it was written and run before it was run again, old reasoning, then the lines with the lowest expected use, down to half of the target, so that the next condensation is far away",
		land: 0.5, passes: []PassConfig{
			{Pass: "layout", Always: true},
			{Pass: "environment", Always: true},
			{Pass: "superseded", Always: true, Settings: json.RawMessage(`{"by_writes": true, "runs": true}`)},
			{Pass: "near_duplicates", Always: true},
			{Pass: "duplicates", Always: true},
			with("reasoning", `{}`),
			with("value", `{}`),
		},
	},
}

func presetNames() []string {
	return plain.Each(presets, func(x preset) string { return x.name })
}

func findPreset(name string) (*preset, bool) {
	i := slices.IndexFunc(presets, func(p preset) bool { return p.name == name })
	if i < 0 {
		return nil, false
	}
	return &presets[i], true
}

// removedPresets names the replacements of presets of former versions.
var removedPresets = map[string]string{
	"conservative":        `"balanced" keeps more of the text that is needed later, at every size`,
	"observation_masking": `use passes: [{pass: mask, keep: 10}], which is the same, or "balanced", which keeps more of the text that is needed later`,
	"clear_tool_uses":     `use passes: [{pass: mask, keep: 3}], which is the same, or "balanced", which keeps more of the text that is needed later`,
	"prune":               `use passes: [prune], which is the same, or "balanced", which keeps more of the text that is needed later`,
	"headtail":            `use passes: [{pass: headtail, fit: true, tokens: 40, keep: 0}], which is the same, or "balanced", which keeps more of the text that is needed later`,
	"score":               `use passes: [score], which is the same, or "balanced", which keeps more of the text that is needed later`,
}

// minArgument is the size in bytes up to which an argument of a call is left alone: a stub
// is about as long.
const minArgument = 200

// shortenCall replaces the long arguments of the call in segment i by stubs, after the first keep bytes of each.
// Where locates the content, or a newer version of it.
func (w *work) shortenCall(i, keep int, where string) {
	p := &w.segments[i]
	if p.fixed || p.gone || len(p.text) < minArgument {
		return
	}
	of := ""
	if p.use != nil {
		of = p.use.Name
	}
	shorten := func(s string) (string, bool) {
		if len(s) < keep+minArgument || hasStub(s) {
			return "", false
		}
		cut := plain.Back(s, keep)
		gaps := []gap{{Span: core.Span{Start: cut, End: len(s)}}}
		wholeTags(s, gaps)
		cut = gaps[0].Start
		return s[:cut] + gaps[0].fill(s, stub{
			lines: dialog.CountLines(s[cut:]), bytes: len(s) - cut, gap: true, of: of, where: where, handle: w.handle(p),
		}), true
	}
	if text, ok := mapStrings(p.text, shorten); ok {
		w.put(i, text)
		return
	}
	if strings.HasPrefix(p.text, "<") {
		if text, ok := mapElement(p.text, shorten); ok {
			w.put(i, text)
		}
	}
}

// mapStrings replaces string values, at any depth of the JSON, and leaves every
// other byte as it was. It reports false if nothing was replaced or args is not JSON.
func mapStrings(args string, f func(string) (string, bool)) (string, bool) {
	if len(args) == 0 || args[0] != '{' && args[0] != '[' || !json.Valid([]byte(args)) {
		return "", false
	}
	var out strings.Builder
	from := 0
	for i := 0; i < len(args); i++ {
		if args[i] != '"' {
			continue
		}
		end := stringEnd(args, i)
		if !isKey(args, end) {
			var s string
			if end-i > minArgument && json.Unmarshal([]byte(args[i:end]), &s) == nil {
				if short, ok := f(s); ok {
					out.WriteString(args[from:i])
					out.Write(quote(short))
					from = end
				}
			}
		}
		i = end - 1
	}
	if from == 0 {
		return "", false
	}
	out.WriteString(args[from:])
	return out.String(), true
}

// stringEnd returns the index after the JSON string that begins at i; beyond the end of s if it has no end.
func stringEnd(s string, i int) int {
	for i++; i < len(s) && s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// isKey reports whether a colon follows the string that ends at end.
func isKey(s string, end int) bool {
	for ; end < len(s); end++ {
		switch s[end] {
		case ' ', '\t', '\n', '\r':
		default:
			return s[end] == ':'
		}
	}
	return false
}

func quote(s string) []byte {
	text, _ := rawjson.Encode(s) // a string can always be written
	return bytes.TrimRight(text, "\n")
}

// contentElements hold the content that a call in the text protocol writes.
var contentElements = []string{"content", "diff", "result", "message", "arguments", "args", "todos", "operations", "follow_up", "question"}

// mapElement shortens the content of elements that hold text of any length, in a call of the
// text protocol. It uses the first name with an element that f shortens.
func mapElement(call string, f func(string) (string, bool)) (string, bool) {
	elements := dialog.Pairs(call)
	for _, name := range contentElements {
		var out strings.Builder
		from := 0
		for _, e := range outermost(call, elements, name) {
			if short, ok := f(call[e.Open.End:e.Close.Start]); ok {
				out.WriteString(call[from:e.Open.End])
				out.WriteString(short)
				from = e.Close.Start
			}
		}
		if from > 0 {
			out.WriteString(call[from:])
			return out.String(), true
		}
	}
	return "", false
}

// outermost returns the elements called name that are not inside another of that name. If
// there is only one, it extends to the last tag that could end it: its content may mention
// such tags.
func outermost(call string, elements []dialog.Pair, name string) []dialog.Pair {
	var out []dialog.Pair
	for _, e := range slices.Backward(elements) { // by their ends, so outer ones come first
		if e.Name == name && (len(out) == 0 || e.Close.End <= out[len(out)-1].Open.Start) {
			out = append(out, e)
		}
	}
	slices.Reverse(out)
	if len(out) == 1 {
		end := "</" + name + ">"
		if i := strings.LastIndex(call, end); i > out[0].Close.Start {
			out[0].Close = core.Span{Start: i, End: i + len(end)}
		}
	}
	return out
}
