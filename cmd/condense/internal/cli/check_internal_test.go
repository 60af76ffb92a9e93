package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

type window struct {
	Keep  int      `json:"keep"`
	Share float64  `json:"share"`
	Mode  string   `json:"mode"`
	Names []string `json:"names"`
}

func (w *window) Validate() error {
	var errs []error
	if w.Keep < 0 {
		errs = append(errs, fmt.Errorf("keep: %d is negative", w.Keep))
	}
	if w.Mode == "both" && w.Share == 0 {
		errs = append(errs, errors.New("mode both needs a share"))
	}
	if slices.Contains(w.Names, "") {
		errs = append(errs, errors.New("names[0]: is empty"))
	}
	return errors.Join(errs...)
}

// TestSettingFaults: all faults are found at once, each under its setting.
func TestSettingFaults(t *testing.T) {
	s := registry.Define("window", "A strategy.", func() window { return window{} },
		func(_ context.Context, w window, _ registry.Env) (core.CondensationProvider, error) {
			if w.Keep == 13 {
				return nil, errors.New("bad luck")
			}
			return core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) { return nil, nil }), nil //nolint:nilnil // never asked
		})
	for settings, want := range map[string][]string{
		`{}`:                        nil,
		`{"keep": 1, "names": []}`:  nil,
		`{"keep": null}`:            nil,
		`{"keep": -1}`:              {"keep: -1 is negative"},
		`{"kepe": 1, "share": "x"}`: {`kepe: unknown setting of window (keep)`, "share: got a JSON string; want number"},
		// The decoder reports one wrong type, and judges no values when there is one.
		`{"keep": "x", "share": "x", "names": [""]}`: {"keep: got a JSON string; want integer", "names: at [0]: is empty", "share: got a JSON string; want number"},
		// A fault of no setting is reported for all, unless it follows from removing others.
		`{"mode": "both"}`:                {": mode both needs a share"},
		`{"mode": "both", "share": "x"}`:  {"share: got a JSON string; want number"},
		`{"keep": 13}`:                    {": bad luck"},
		`{"Keep": 1}`:                     {"Keep: unknown setting of window (keep)"},
		`{"whatever": {"a": 1}}`:          {"whatever: unknown setting of window there are keep, share, mode, names"},
		`{"keep": {"a": 1}, "mode": [1]}`: {"keep: got a JSON object; want integer", "mode: got a JSON array; want string"},
	} {
		var got []string
		for _, f := range settingFaults(s, []byte(settings), registry.Env{}) {
			name := ""
			if len(f.Key) > 1 {
				name = f.Key[1]
			}
			text := name + ": " + f.Problem
			if f.Suggestion != "" {
				text += " (" + f.Suggestion + ")"
			}
			if f.Allowed != "" {
				text += " " + f.Allowed
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", settings, diff)
		}
	}
}
