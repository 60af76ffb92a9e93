package lab_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/tokens"
)

// still is a constant clock, so that reports can be compared byte for byte.
func still() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func window(name, mode string) lab.Strategy {
	c := slidingwindow.DefaultConfig()
	c.Mode = mode
	return lab.Strategy{Name: name, Provider: slidingwindow.New(c), Key: "slidingwindow/1/" + mode}
}

// small are sessions that take little time.
func small() []lab.Item {
	var out []lab.Item
	for _, it := range lab.Demo() {
		if !strings.Contains(it.Name, "context-evaluator") && !strings.Contains(it.Name, "super-bench") {
			out = append(out, it)
		}
	}
	return out
}

// session reads one of the sessions that come with the program.
func session(t *testing.T, name string) *score.Session {
	t.Helper()
	e, err := tokens.Open(tokens.Chars4)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range lab.Demo() {
		if it.Name == name {
			s, err := it.Read(tokens.NewCounter(e))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	t.Fatalf("no session %s", name)
	return nil
}

func run(t *testing.T, items []lab.Item, opts lab.Options, strategies ...lab.Strategy) *lab.Report {
	t.Helper()
	if opts.Now == nil {
		opts.Now = still
	}
	r, err := lab.Run(t.Context(), items, strategies, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func encode(t *testing.T, r *lab.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// line returns the means of a strategy, all modes together.
func line(t *testing.T, r *lab.Report, budget, strategy string) lab.Line {
	t.Helper()
	for _, tb := range r.Tables {
		if tb.Budget != budget || tb.Mode != "" {
			continue
		}
		for _, l := range tb.Lines {
			if l.Strategy == strategy {
				return l
			}
		}
	}
	t.Fatalf("no line for %s at %s", strategy, budget)
	return lab.Line{}
}

// budgets parses budgets.
func budgets(t *testing.T, s ...string) []lab.Budget {
	t.Helper()
	var out []lab.Budget
	for _, s := range s {
		b, err := lab.ParseBudget(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func TestDemo(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	r := run(t, lab.Demo(), lab.Options{Jobs: 2, Budgets: budgets(t, "10%", "50%", "32k", "real"), Rounds: 5}, window("window", "budget"))
	for _, s := range r.Skipped {
		t.Errorf("skipped %s: %s", s.Name, s.Reason)
	}
	for _, b := range []string{"10%", "50%"} {
		last, random, win := line(t, r, b, lab.KeepLast), line(t, r, b, lab.Random), line(t, r, b, "window")
		for _, l := range []lab.Line{last, random, win} {
			if p := l.Values["panel"].Mean; p <= 0 || p >= 1 {
				t.Errorf("%s: %s has %.2f of what was needed, want a part of it", b, l.Strategy, p)
			}
		}
		if win.Values["lawful"].Mean != 1 || win.Values["stable"].Mean != 1 || win.Values["faults"].Mean != 0 {
			t.Errorf("%s: truncation is lawful %v, stable %v, adds %v faults", b, win.Values["lawful"].Mean, win.Values["stable"].Mean, win.Values["faults"].Mean)
		}
		if k := win.KindsBefore; k["tool_result"] == 0 || win.KindsAfter["tool_result"] >= k["tool_result"] {
			t.Errorf("%s: kinds before %v, after %v", b, k, win.KindsAfter)
		}
	}
	if l := line(t, r, "real", "window"); l.Cuts != 1 {
		t.Errorf("%d recorded compactions, want 1", l.Cuts)
	}
	if l := line(t, r, "32k", "window"); l.Sessions < 3 {
		t.Errorf("%d sessions overflow a window of 32k, want 3 or more", l.Sessions)
	}
	most := 0
	firsts := map[string]*score.Scorer{}
	sessions := map[string]*score.Session{}
	before := map[string]lab.Round{}
	for _, x := range r.Rounds {
		most = max(most, x.Round)
		if sessions[x.Session] == nil {
			sessions[x.Session] = session(t, x.Session)
		}
		// What truncation has dropped does not come back, unless a message since then quotes it, as tools of Roo Code
		// do.
		if was, ok := before[x.Session]; ok && was.FirstUser != nil && x.FirstUser != nil {
			quoted := firsts[x.Session].Score(sessions[x.Session].Messages[was.At:x.At])
			again, _ := quoted.UIR.Value()
			if *x.FirstUser > *was.FirstUser+again+1e-9 {
				t.Errorf("%s: after round %d %.2f of the user's first words are left, before %.2f, and %.2f were quoted", x.Session, x.Round, *x.FirstUser, *was.FirstUser, again)
			}
		} else if x.Round == 1 {
			cut, ok := score.CutAt(sessions[x.Session], "round", x.At)
			if !ok {
				t.Fatalf("%s has no cut at %d", x.Session, x.At)
			}
			firsts[x.Session] = score.NewScorer(cut, score.Common())
		}
		before[x.Session] = x
		if x.Panel == nil && x.User == nil {
			t.Errorf("round %d of %s measures nothing", x.Round, x.Session)
		}
	}
	if len(r.RoundLines) != most || r.RoundLines[0].Values["panel"].Sessions == 0 {
		t.Errorf("%d lines for %d rounds", len(r.RoundLines), most)
	}
	if most < 4 {
		t.Errorf("at most %d rounds along a session, want about five", most)
	}
}

func TestSameSeedSameReport(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	items := small()[3:]
	opts := func(jobs int, seed uint64) lab.Options {
		return lab.Options{Jobs: jobs, Seed: seed, Rounds: 3, Budgets: budgets(t, "25%")}
	}
	strategies := []lab.Strategy{window("window", "budget"), window("half", "half")}
	one := run(t, items, opts(1, 0), strategies...)
	three := run(t, items, opts(3, 0), strategies...)
	if encode(t, one) != encode(t, three) {
		t.Error("three jobs at a time gave another report than one")
	}
	if other := run(t, items, opts(3, 7), strategies...); encode(t, one) == encode(t, other) {
		t.Error("another seed gave the same report")
	}
	back, err := lab.ReadReport(strings.NewReader(encode(t, one)))
	if err != nil {
		t.Fatal(err)
	}
	if encode(t, back) != encode(t, one) {
		t.Error("read and written, the report is another one")
	}
}

func TestCache(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	items := small()[:3]
	opts := lab.Options{Budgets: budgets(t, "25%"), Cache: filepath.Join(t.TempDir(), "cache"), Now: still, Rounds: 2}
	for _, it := range lab.Demo() {
		if strings.Contains(it.Name, "super-bench") { // long enough for rounds
			items = append(items[:2:2], it)
		}
	}
	calls := 0
	s := lab.Strategy{Name: "counted", Key: "counted/1", Provider: core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		calls++
		return slidingwindow.New(slidingwindow.DefaultConfig()).Condense(ctx, req)
	})}
	first := run(t, items, opts, s)
	if calls == 0 {
		t.Fatal("nothing was asked")
	}
	asked := calls
	if second := run(t, items, opts, s); encode(t, second) != encode(t, first) {
		t.Error("from the cache comes another report")
	}
	if calls != asked {
		t.Errorf("asked %d times more with everything in the cache", calls-asked)
	}
	s.Key = "counted/2"
	run(t, items, opts, s)
	if calls != 2*asked {
		t.Errorf("a new version was asked %d times, want %d", calls-asked, asked)
	}
	// An incomplete file after a crash is measured again.
	broken := 0
	err := filepath.WalkDir(opts.Cache, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			broken++
			return os.WriteFile(name, []byte(`{"strategy":`), 0o600)
		}
		return err
	})
	if err != nil || broken == 0 {
		t.Fatal(broken, err)
	}
	if third := run(t, items, opts, s); third.Rows[0].Values["panel"] != first.Rows[0].Values["panel"] {
		t.Error("a broken cache changed what is measured")
	}
}

func TestCancelKeepsWhatIsFinished(t *testing.T) {
	t.Parallel()
	items := small()[4:]
	ctx, cancel := context.WithCancel(t.Context())
	opts := lab.Options{Budgets: budgets(t, "25%"), Now: still, Cache: t.TempDir()}
	opts.Progress = func(p lab.Progress) {
		if p.Done == 2 {
			cancel()
		}
	}
	r, err := lab.Run(ctx, items, []lab.Strategy{window("window", "budget")}, &opts)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want canceled", err)
	}
	if !r.Partial || len(r.Sessions) < 2 || len(r.Sessions) == len(items) {
		t.Fatalf("partial %v with %d of %d sessions", r.Partial, len(r.Sessions), len(items))
	}
	last := lab.Progress{}
	opts.Progress = func(p lab.Progress) { last = p }
	if full := run(t, items, opts, window("window", "budget")); full.Partial || len(full.Sessions) != len(items) {
		t.Errorf("the next run has %d of %d sessions", len(full.Sessions), len(items))
	}
	if last.Cached == 0 {
		t.Error("the next run began from nothing")
	}
}

func TestMaxUSD(t *testing.T) {
	t.Parallel()
	s := lab.Strategy{Name: "dear", Provider: core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		n := len(req.Messages)
		return &core.Result{
			Messages: append([]core.Message{{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("It went well.")}}}, req.Messages[n-1:]...),
			Usage:    core.Usage{Calls: 1, InputTokens: 1000, OutputTokens: 10, USD: 1},
		}, nil
	})}
	r, err := lab.Run(t.Context(), small(), []lab.Strategy{s}, &lab.Options{Budgets: budgets(t, "25%"), MaxUSD: 1, Repeat: 1})
	if !errors.Is(err, lab.ErrMaxCost) {
		t.Fatalf("got %v, want %v", err, lab.ErrMaxCost)
	}
	if !r.Partial || len(r.Sessions) != 1 {
		t.Errorf("%d sessions for a dollar each", len(r.Sessions))
	}
}

// At the cost limit no further call is made, not even in the current session, and results in the cache are
// not paid for again.
func TestMaxUSDWithinASession(t *testing.T) {
	t.Parallel()
	calls := 0
	s := lab.Strategy{Name: "dear", Key: "dear", Provider: core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		calls++
		return &core.Result{Messages: req.Messages[len(req.Messages)-1:], Usage: core.Usage{Calls: 1, USD: 1}}, nil
	})}
	opts := &lab.Options{Budgets: budgets(t, "10%", "25%", "50%"), MaxUSD: 2, Cache: t.TempDir(), Repeat: 1}
	items := small()[:1]
	r, err := lab.Run(t.Context(), items, []lab.Strategy{s}, opts)
	if !errors.Is(err, lab.ErrMaxCost) || !r.Partial || calls != 2 {
		t.Fatalf("got %v after %d calls for a dollar each, want %v after 2", err, calls, lab.ErrMaxCost)
	}
	opts.MaxUSD = 0
	if r = run(t, items, *opts, s); len(r.Sessions) != 1 {
		t.Fatalf("skipped: %v", r.Skipped)
	}
	rows := 0
	for _, row := range r.Rows {
		if row.Strategy == "dear" {
			rows++
		}
	}
	if calls != rows {
		t.Errorf("%d calls for %d results", calls, rows)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	p := window("a", "budget")
	for want, f := range map[string]func() error{
		"taken": func() error {
			_, err := lab.Run(t.Context(), nil, []lab.Strategy{p, p}, nil)
			return err
		},
		`"keep_last"`: func() error {
			_, err := lab.Run(t.Context(), nil, []lab.Strategy{{Name: "keep_last", Provider: p.Provider}}, nil)
			return err
		},
		"neither a provider nor a chain": func() error {
			_, err := lab.Run(t.Context(), nil, []lab.Strategy{{Name: "b"}}, nil)
			return err
		},
		"appears twice": func() error {
			_, err := lab.Run(t.Context(), nil, nil, &lab.Options{Budgets: budgets(t, "25%", "25.0%")})
			return err
		},
		"o200k_base": func() error {
			_, err := lab.Run(t.Context(), nil, nil, &lab.Options{Encoding: "p50k"})
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// A session that cannot be read, is too short, or is a copy is skipped.
func TestSkipped(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	items := append(small()[:1], inMemory("broken.json", []byte(`{"messages": 7}`)), inMemory("short.json", []byte(`[{"role":"user","content":"hello"}]`)))
	copied := items[0]
	copied.Name = "zz copy"
	r := run(t, append(items, copied), lab.Options{}, window("window", "budget"))
	if len(r.Sessions) != 1 || len(r.Skipped) != 3 {
		t.Fatalf("%d compared, %d skipped", len(r.Sessions), len(r.Skipped))
	}
	for _, s := range r.Skipped {
		if s.Reason == "" {
			t.Errorf("%s: no reason", s.Name)
		}
	}
}
