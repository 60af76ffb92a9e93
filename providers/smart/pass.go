package smart

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

// passes are all passes that there are, in the order in which they are documented.
var passes = []pass{
	layoutPass, duplicatesPass, environmentPass, supersededPass, nearPass,
	maskPass, prunePass, valuePass, headTailPass, cutPass, resultsPass, windowPass, scorePass, reasoningPass, digestPass,
}

func findPass(name string) (*pass, bool) {
	for i := range passes {
		if passes[i].name == name {
			return &passes[i], true
		}
	}
	return nil, false
}

func passNames() []string {
	var names []string
	for _, p := range passes {
		names = append(names, p.name)
	}
	return names
}

// A class is the kind of loss that a pass causes.
type class string

const (
	// Lossless: removed content carries no information, or appears elsewhere in the conversation, and the stub
	// says where.
	classLossless class = "lossless"
	// Superseded: a newer version of removed content appears elsewhere.
	classSuperseded class = "superseded"
	// Lossy: removed content can only be recalled by its handle.
	classLossy class = "lossy"
	// Model: a language model writes.
	classModel class = "model"
)

// A pass is one way to make a conversation smaller.
type pass struct {
	name   string
	class  class
	source string // of the method and its constants; empty if it is our own
	// onDemand: the pass saves as much as it is asked for, or adds something. refers: the pass leaves stubs
	// that point at unchanged text elsewhere. chooses: the pass selects lines, so such pointers become invalid.
	onDemand, refers, chooses bool
	doc                       string
	settings                  func() []registry.Setting
	runner                    func(settings json.RawMessage) (runner, error)
}

func onDemand(p pass) pass  { p.onDemand = true; return p }
func referring(p pass) pass { p.refers = true; return p }
func choosing(p pass) pass  { p.chooses = true; return p }

// runner does the work of a pass whose settings are known.
type runner func(ctx context.Context, w *work) error

func define[C any](name string, c class, source, doc string, defaults C, run func(context.Context, *work, C) error) pass {
	settings := registry.Settings[C](func() C { return defaults })
	return pass{
		name: name, class: c, source: source, doc: doc, settings: settings.List,
		runner: func(raw json.RawMessage) (runner, error) {
			c, err := settings.Decode(raw)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context, w *work) error { return run(ctx, w, c) }, nil
		},
	}
}

// atLeast returns an error if the setting called name is below least.
func atLeast(least int, name string, n int) error {
	switch {
	case n >= least:
		return nil
	case least == 0:
		return fmt.Errorf("%s: %d is negative", name, n)
	}
	return fmt.Errorf("%s: %d is below %d", name, n, least)
}

// A step is a pass in a list, with its settings.
type step struct {
	pass   *pass
	always bool
	run    runner
}

// do runs s and reports whether it changed anything.
func (s *step) do(ctx context.Context, w *work, now func() time.Time) (core.Step, error) {
	if err := ctx.Err(); err != nil {
		return core.Step{}, fmt.Errorf("before the pass %s: %w", s.pass.name, err)
	}
	start, before := now(), w.tokens
	rep := core.Step{Name: s.pass.name, Saved: map[string]int{}}
	w.step = &rep
	w.steps++
	err := s.run(ctx, w)
	for i := range w.segments {
		if p := &w.segments[i]; p.step == w.steps && w.blocks[p.block].handleText != "" {
			rep.Handles = append(rep.Handles, w.blocks[p.block].handleText)
		}
	}
	w.settle()
	rep.TokensBefore, rep.TokensAfter = before, w.tokens
	rep.Duration = now().Sub(start)
	if err != nil {
		return rep, fmt.Errorf("pass %s: %w", s.pass.name, err)
	}
	return rep, nil
}
