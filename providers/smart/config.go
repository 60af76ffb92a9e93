package smart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
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
	if !(c.Land >= 0 && c.Land <= 1) {
		errs = append(errs, fmt.Errorf("land: %v is not between 0 and 1", c.Land))
	}
	if c.MinGain < 0 {
		errs = append(errs, fmt.Errorf("min_gain: %d is negative", c.MinGain))
	}
	if !(c.MinShare >= 0 && c.MinShare < 1) {
		errs = append(errs, fmt.Errorf("min_share: %v is not at least 0 and below 1", c.MinShare))
	}
	if err := c.Accept.Validate(); err != nil {
		errs = append(errs, err)
	}
	if _, err := steps(c.Passes); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
	var errs []error
	if a.Messages < 0 {
		errs = append(errs, fmt.Errorf("accept: messages: %d is negative", a.Messages))
	}
	if a.Users < 0 {
		errs = append(errs, fmt.Errorf("accept: users: %d is negative", a.Users))
	}
	return errors.Join(errs...)
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
