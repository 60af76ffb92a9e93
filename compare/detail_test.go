package compare_test

import (
	"testing"

	"github.com/condensehq/condense/compare"
)

func TestExamine(t *testing.T) {
	t.Parallel()
	item := small()[0]
	opts := compare.Options{Budgets: budgets(t, "25%"), Now: still}
	w := window("window", "budget")
	r := run(t, []compare.Item{item}, opts, w)
	for _, row := range r.Rows {
		s := w
		if row.Strategy != w.Name {
			s = compare.Strategy{Name: row.Strategy} // a bound
		}
		d, err := compare.Examine(t.Context(), item, s, row.Budget, row.Cut, &opts)
		if err != nil {
			t.Fatal(err)
		}
		if d.Row.Values["panel"] != row.Values["panel"] || d.Row.After != row.After {
			t.Errorf("%s: panel %v of %d tokens, in the report %v of %d", row.Strategy, d.Row.Values["panel"], d.Row.After, row.Values["panel"], row.After)
		}
		seen, before, after := 0, 0, 0
		for _, m := range d.Messages {
			if m.At >= 0 {
				if m.At != seen {
					t.Fatalf("%s: message %d stands where %d should", row.Strategy, m.At, seen)
				}
				seen++
			}
			before += m.TokensBefore
			after += m.TokensAfter
			for _, n := range m.Needs {
				if n >= len(d.Needs) {
					t.Fatalf("need %d of %d", n, len(d.Needs))
				}
			}
		}
		if seen != row.At || before != row.Before || after != row.After {
			t.Errorf("%s: %d messages of %d tokens, now %d; want %d of %d, now %d", row.Strategy, seen, before, after, row.At, row.Before, row.After)
		}
		if len(d.Needs) == 0 {
			t.Errorf("%s: nothing was needed", row.Strategy)
		}
	}
	if _, err := compare.Examine(t.Context(), item, w, "25%", "none", &opts); err == nil {
		t.Error("a cut that does not exist gives no error")
	}
}
