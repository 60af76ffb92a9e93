package config

import (
	"fmt"
	"math"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/tree"
)

// noWindow is the fault of a profile whose window is unknown.
func (c *Config) noWindow(r *Resolved) *Error {
	p := tree.Path{"profiles", r.Profile}
	if r.Model.Name == "" {
		return c.errorAt(p, &fault{problem: "has neither window nor model", allowed: "set one of them"})
	}
	wrong := &fault{
		problem: fmt.Sprintf("the window of model %q is not known", plain.Abbreviate(r.Model.Name)),
		allowed: "set " + p.With("window").String() + " to its number of tokens",
	}
	if looksSecret(r.Model.Name) {
		wrong.problem = "the window of this model is not known"
	}
	if _, declared := c.values.Models[r.Model.Name]; declared {
		wrong.allowed += ", or " + tree.Path{"models", r.Model.Name, "window"}.String()
	} else {
		wrong.suggestion = suggest.Key(r.Model.Name, c.modelNames(r.Model.Name))
	}
	return c.errorAt(r.found["model"].at, wrong)
}

// limit is the number of tokens that may be sent. It is not rounded and may be negative.
func (r *Resolved) limit() float64 { return float64(r.Window)*(1-r.Buffer/100) - float64(r.Reserve) }

// trigger is the number of tokens at which a conversation is condensed, and the setting that says so.
func (r *Resolved) trigger() (tokens float64, by string) {
	tokens, by = r.Threshold*float64(r.Window)/100, "threshold"
	if l := r.limit(); l < tokens {
		tokens, by = l, "limit"
	}
	if most := float64(r.MaxContextTokens); most > 0 && most < tokens {
		tokens, by = most, "max_context_tokens"
	}
	return tokens, by
}

// fit checks that the numbers of r fit together. An Unchecked rule has no invalid numbers.
func (c *Config) fit(r *Resolved) Errors {
	if r.Unchecked {
		return nil
	}
	var errs Errors
	fail := func(key string, f *fault) { errs = append(errs, c.errorAt(r.found[key].at, f).withKey(r, key)) }
	if r.limit() < 1 {
		fail("window", &fault{
			problem: fmt.Sprintf("nothing is left of a window of %s tokens: minus a buffer of %v %% and %s for the answer it is %s",
				size.Group(r.Window), r.Buffer, size.Group(r.Reserve), size.Group(int(math.Floor(r.limit())))),
			allowed: "set max_output to what the agent asks for, or a larger window",
		})
	}
	if r.Target >= r.Threshold {
		fail("target", &fault{
			problem: fmt.Sprintf("%v %% is not below the threshold of profile %s, %v %%", r.Target, r.Profile, r.Threshold),
			allowed: "must be below, or every request would condense again; 0 chooses one",
		})
	}
	if r.MaxContextTokens > 0 && r.MinSize > r.MaxContextTokens {
		fail("min_size", &fault{
			problem: fmt.Sprintf("%s tokens are more than max_context_tokens of profile %s, %s", size.Group(r.MinSize), r.Profile, size.Group(r.MaxContextTokens)),
			allowed: "must not be above",
		})
	}
	return errs
}

// withKey sets the key to the key of the profile, if the value is in no file.
func (e *Error) withKey(r *Resolved, key string) *Error {
	if len(r.found[key].at) < 2 && e.Origin.Kind != FromFile {
		e.Key = tree.Path{"profiles", r.Profile, key}.String()
	}
	return e
}
