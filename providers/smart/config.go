package smart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/condensehq/condense/internal/near"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// Config are the settings of a [Provider].
type Config struct {
	Preset   string       `json:"preset" enum:"lossless|conservative|balanced|aggressive|observation_masking|clear_tool_uses|prune|headtail|score" doc:"a list of passes with a name; empty means balanced unless passes are given"`
	Passes   []PassConfig `json:"passes" doc:"passes of your own instead of a preset's, in order: names, or objects with the key pass and the settings of that pass"`
	Land     float64      `json:"land" doc:"where lossy passes stop, as a share of the room that messages have on target; 0 means what the preset says"`
	MinGain  int          `json:"min_gain" doc:"tokens that must be saved in all, unless the target is met; else nothing is changed"`
	MinShare float64      `json:"min_share" doc:"the same, as a share of the conversation"`
	Accept   Accept       `json:"accept" doc:"what must be left, or nothing is changed and the next provider is asked: messages (how many), users (newest messages of the user, word for word), first (the first message)"`
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
}

// UnmarshalJSON reads a name, or an object with the key "pass".
func (p *PassConfig) UnmarshalJSON(data []byte) error {
	var name string
	if json.Unmarshal(data, &name) == nil {
		*p = PassConfig{Pass: name}
		return nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return errors.New("passes: want the name of a pass, or an object with the key pass")
	}
	for key, to := range map[string]any{"pass": &p.Pass, "always": &p.Always} {
		if raw, ok := all[key]; ok {
			if err := json.Unmarshal(raw, to); err != nil {
				return fmt.Errorf("passes: %s: got %s", key, raw)
			}
			delete(all, key)
		}
	}
	if p.Pass == "" {
		return errors.New("passes: an object without the key pass, the name of the pass")
	}
	var err error
	p.Settings, err = json.Marshal(all)
	return err
}

// MarshalJSON writes what UnmarshalJSON reads.
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
	if _, ok := findPreset(c.Preset); c.Preset != "" && !ok {
		errs = append(errs, fmt.Errorf("preset: no preset %q%s; there are %s", c.Preset, near.DidYouMean(c.Preset, presetNames()), strings.Join(presetNames(), ", ")))
	}
	if c.Preset != "" && len(c.Passes) > 0 {
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
	anyModel := registry.Env{Model: func(string) (model.Generator, error) { return nil, nil }}
	if err := c.Accept.Validate(); err != nil {
		errs = append(errs, err)
	}
	if _, err := steps(c.Passes, anyModel); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// steps makes passes ready to run.
func steps(list []PassConfig, env registry.Env) ([]step, error) {
	var (
		out  []step
		errs []error
	)
	for i, pc := range list {
		p, ok := findPass(pc.Pass)
		if !ok {
			errs = append(errs, fmt.Errorf("passes: %d: no pass %q%s; there are %s", i+1, pc.Pass, near.DidYouMean(pc.Pass, passNames()), strings.Join(passNames(), ", ")))
			continue
		}
		opened, err := p.Open(context.Background(), pc.Settings, env)
		if err != nil {
			errs = append(errs, fmt.Errorf("passes: %d: %s: %w", i+1, pc.Pass, errors.Unwrap(err)))
			continue
		}
		run, ok := opened.(runner)
		if !ok {
			errs = append(errs, fmt.Errorf("passes: %d: %s: is no pass", i+1, pc.Pass))
			continue
		}
		out = append(out, step{pass: p, always: pc.Always, run: run})
	}
	return out, errors.Join(errs...)
}
