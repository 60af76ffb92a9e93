package suggest_test

import (
	"testing"

	"github.com/condensehq/condense/internal/suggest"
)

func TestName(t *testing.T) {
	known := []string{"threshold", "target", "chain", "middle_out", "half"}
	for got, want := range map[string]string{
		"thresholdd": "threshold",
		"Threshold":  "threshold",
		"tagret":     "target",
		"chian":      "chain",
		"middleout":  "middle_out",
		"hlaf":       "half",
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
