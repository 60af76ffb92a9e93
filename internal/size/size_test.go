package size_test

import (
	"testing"

	"github.com/condensehq/condense/internal/size"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "64000": 64000, "64_000": 64000, "64k": 64000, "64K": 64000, "4Ki": 4096, "1M": 1e6,
		"1.5M": 15e5, "1Mi": 1 << 20, "2g": 2e9, "1Gi": 1 << 30, " 8 k ": 8000, "0.5k": 500,
	} {
		if got, ok := size.Parse(text); !ok || got != want {
			t.Errorf("%q: got %d, %t, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "k", "-5", "five", "64 kb", "1.5", "64kk", "1e3", "_1", "0x10", "9007199254740993k", "1e400", "12%"} {
		if got, ok := size.Parse(text); ok {
			t.Errorf("%q: got %d, want it refused", text, got)
		}
	}
}

func TestHasUnit(t *testing.T) {
	for text, want := range map[string]bool{"120k": true, "120": false, "high": false, "4Mi": true} {
		if got := size.HasUnit(text); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}

func TestGroup(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 100000: "100,000"} {
		if got := size.Group(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 lines", 1: "1 line", 2: "2 lines", 1234: "1,234 lines"} {
		if got := size.Plural(n, "line"); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func TestDollars(t *testing.T) {
	for amount, want := range map[float64]string{0: "$0.00", .84: "$0.84", -.01: "-$0.01", -.001: "$0.00", 1234.5: "$1234.50"} {
		if got := size.Dollars(amount, 2); got != want {
			t.Errorf("%v: got %s, want %s", amount, got, want)
		}
	}
}
