package suggest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/suggest"
)

func TestName(t *testing.T) {
	known := []string{"threshold", "target", "chain", "middle_out", "half", "mode", "model"}
	for got, want := range map[string]string{
		"thresholdd": "threshold",
		"Threshold":  "threshold",
		"tagret":     "target",
		"chian":      "chain",
		"middleout":  "middle_out",
		"hlaf":       "half",
		"mo" + "dle": "model", // not mode
		"window":     "",
		"":           "",
	} {
		if name := suggest.Name(got, known); name != want {
			t.Errorf("Name(%q) = %q, want %q", got, name, want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	if got, want := suggest.DidYouMean("chian", []string{"chain"}), `; did you mean "chain"?`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := suggest.DidYouMean("something", []string{"chain"}); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestKey(t *testing.T) {
	names := slices.Sorted(maps.Keys(map[string]bool{
		"threshold": true, "max_output": true, "chain": true, "target": true, "o200k_base": true, "Code": true, "a": true,
	}))
	for name, want := range map[string]string{
		"treshold": "threshold", "thresholds": "threshold", "maxOutput": "max_output", "MAX-OUTPUT": "max_output",
		"chian": "chain", "traget": "target", "o200k": "o200k_base", "code": "Code", "Code": "",
		"colour": "", "x": "", "": "", strings.Repeat("threshold", 1000): "",
	} {
		if got := suggest.Key(name, names); got != want {
			t.Errorf("%.20q: got %q, want %q", name, got, want)
		}
	}
}
