package lab_test

import (
	"io"
	"testing"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/testkit"
)

func TestExamine(t *testing.T) {
	t.Parallel()
	item := small()[0]
	opts := lab.Options{Budgets: budgets(t, "25%"), Now: still}
	w := window("window", "budget")
	r := run(t, []lab.Item{item}, opts, w)
	details, err := lab.Examine(t.Context(), []lab.Item{item}, []lab.Strategy{w}, r.Rows, &opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(details) != len(r.Rows) {
		t.Fatalf("%d details of %d rows", len(details), len(r.Rows))
	}
	for i, row := range r.Rows {
		d := details[i]
		if d.Row.Strategy != row.Strategy || d.Row.Cut != row.Cut {
			t.Errorf("detail %d is of %s at %q, want %s at %q", i, d.Row.Strategy, d.Row.Cut, row.Strategy, row.Cut)
		}
		seen, before, after := 0, 0, 0
		for _, m := range d.Messages {
			if m.At >= 0 {
				if m.At != seen {
					t.Fatalf("%s: message %d is where %d should be", row.Strategy, m.At, seen)
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
	nowhere := r.Rows[0]
	nowhere.Cut = "none"
	if _, err := lab.Examine(t.Context(), []lab.Item{item}, []lab.Strategy{w}, []lab.Row{nowhere}, &opts); err == nil {
		t.Error("a cut that does not exist gives no error")
	}
	if _, err := lab.Examine(t.Context(), nil, []lab.Strategy{w}, r.Rows, &opts); err == nil {
		t.Error("a session that is not among the items gives no error")
	}
}

// A page shows hundreds of results. Each session is read and counted once, not once per result.
func TestExamineReadsASessionOnceAndSaysHowFarItIs(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	items := small()[:2]
	opts := lab.Options{Budgets: budgets(t, "10%", "25%"), Now: still}
	w := window("window", "budget")
	r := run(t, items, opts, w)
	reads := 0
	counted := make([]lab.Item, len(items))
	for i, it := range items {
		counted[i] = lab.Item{Name: it.Name, Open: func() (io.ReadCloser, error) {
			reads++
			return it.Open()
		}}
	}
	var steps []lab.Progress
	opts.Progress = func(p lab.Progress) { steps = append(steps, p) }
	if _, err := lab.Examine(t.Context(), counted, []lab.Strategy{w}, r.Rows, &opts); err != nil {
		t.Fatal(err)
	}
	if reads != len(items) {
		t.Errorf("%d sessions were read %d times for %d rows, want each once", len(items), reads, len(r.Rows))
	}
	if n := len(steps); n != len(items) || steps[n-1].Done != n || steps[n-1].Total != n || steps[n-1].Rows != len(r.Rows) {
		t.Errorf("progress %+v, want a step for each of %d sessions and in the end all %d rows", steps, len(items), len(r.Rows))
	}
}
