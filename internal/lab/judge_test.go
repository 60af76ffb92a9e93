package lab_test

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/tokens"
)

// TestJudgeAgreesWithRun: views that a running gateway made are measured as a comparison measures them, and the
// verdict is the same.
func TestJudgeAgreesWithRun(t *testing.T) {
	testkit.Slow(t)
	var mu sync.Mutex
	made := map[string][]core.Message{} // by strategy, session and size of the prefix
	key := func(strategy string, first core.Message, n int) string {
		return fmt.Sprint(strategy, first.ID, first.Parts, n)
	}
	capture := func(name string, f func(*core.Request) ([]core.Message, error)) lab.Strategy {
		return provider(name, func(req *core.Request) ([]core.Message, error) {
			m, err := f(req)
			mu.Lock()
			defer mu.Unlock()
			if k := key(name, req.Messages[0], len(req.Messages)); made[k] == nil { // the run for stability has other messages
				made[k] = m
			}
			return m, err
		})
	}
	strategies := []lab.Strategy{
		capture("names", names),
		capture("beginning", func(req *core.Request) ([]core.Message, error) {
			return say(req, fit(req, fmt.Sprint(req.Messages[0].Parts))), nil
		}),
	}
	budget, err := lab.ParseBudget("50%")
	if err != nil {
		t.Fatal(err)
	}
	items := lab.Demo()
	want, err := lab.Run(t.Context(), items, strategies, &lab.Options{Budgets: []lab.Budget{budget}})
	if err != nil {
		t.Fatal(err)
	}
	encoding, err := tokens.Open(want.Encoding)
	if err != nil {
		t.Fatal(err)
	}
	c := tokens.NewCounter(encoding)
	compared := 0
	for _, it := range items {
		s, err := it.Read(c)
		if err != nil {
			t.Fatal(err)
		}
		s.ID = it.Name
		done := map[int]bool{}
		for i := range want.Rows {
			r := &want.Rows[i]
			if r.Session != it.Name || done[r.At] {
				continue
			}
			done[r.At] = true
			var views []lab.View
			for _, st := range strategies {
				if m := made[key(st.Name, s.Messages[0], r.At)]; m != nil {
					views = append(views, lab.View{Strategy: st.Name, Messages: m})
				}
			}
			got, _ := lab.Judge(s, r.At, views, c)
			for _, g := range got {
				for k := range want.Rows {
					w := &want.Rows[k]
					if w.Strategy != g.Strategy || w.Session != g.Session || w.At != g.At {
						continue
					}
					compared++
					for _, m := range []string{lab.MeasurePanel, lab.MeasureReachable, lab.MeasureUser, lab.MeasureKept} {
						if math.Abs(g.Values[m]-w.Values[m]) > 1e-9 {
							t.Errorf("%s at %d by %s: %s is %v live, %v in the comparison", g.Session, g.At, g.Strategy, m, g.Values[m], w.Values[m])
						}
					}
				}
			}
		}
	}
	if compared == 0 {
		t.Fatal("nothing was compared")
	}
}

// A gateway judges its views next to the requests. A judgement took 280 MB, for measures that its pages do not show.
func TestJudgeLeavesMemoryToTheRequests(t *testing.T) {
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	c := tokens.NewCounter(encoding)
	s, err := lab.Demo()[0].Read(c)
	if err != nil {
		t.Fatal(err)
	}
	at := len(s.Messages) / 2
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rows, _ := lab.Judge(s, at, []lab.View{{Strategy: "sent", Messages: s.Messages[at/2 : at]}, {Strategy: "other", Messages: s.Messages[:at/2]}}, c)
	runtime.ReadMemStats(&after)
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("it took %d MB", used>>20)
	}
}
