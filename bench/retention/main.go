// Command retention measures strategies on recorded sessions and prints a table: how much
// of what the agent later needed is still there at a budget. Package compare/retention
// says what the columns mean.
//
//	go run ./bench/retention -traces DIR -strategies keep_last,masking,slidingwindow
//	go run ./bench/retention -traces DIR -s 'tight=smart:{"preset":"aggressive"}' -budgets 10,25
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/condensehq/condense/compare"
	"github.com/condensehq/condense/compare/retention"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/providers"
	"github.com/condensehq/condense/registry"
	"github.com/condensehq/condense/tokens"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "retention:", err)
		os.Exit(1)
	}
}

type options struct {
	traces     string
	strategies string
	extra      []string
	budgets    string
	jobs       int
	sources    bool
	rows       string
	match      string
	background string
}

func run(args []string, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("retention", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.traces, "traces", os.Getenv("CONDENSE_TRACES_DIR"), "folder of the sessions; default $CONDENSE_TRACES_DIR, else testdata/traces")
	flags.StringVar(&o.strategies, "strategies", "", "names of references or of built-in strategies with their default settings, with commas between")
	flags.Func("s", "a strategy with settings: LABEL=STRATEGY:{JSON}; may be repeated", func(s string) error { o.extra = append(o.extra, s); return nil })
	flags.StringVar(&o.budgets, "budgets", "10,25,50", "percent of the prefix, or real: the size of the recorded summaries")
	flags.IntVar(&o.jobs, "jobs", 2, "sessions at a time")
	flags.BoolVar(&o.sources, "sources", false, "also by source")
	flags.StringVar(&o.rows, "rows", "", "write every row as a line of JSON to this file")
	flags.StringVar(&o.background, "background", "", "only write what is common to the sources to this file")
	flags.StringVar(&o.match, "match", "", "only sessions whose ID has this in it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.traces == "" {
		o.traces = "testdata/traces"
	}
	return measure(&o, stdout, stderr)
}

type strategy struct {
	label string
	make  maker
}

func (o *options) open() ([]strategy, error) {
	reg, err := registry.New(providers.Builtin()...)
	if err != nil {
		return nil, err
	}
	var out []strategy
	add := func(label, name, settings string) error {
		if f, ok := references[name]; ok && settings == "" {
			out = append(out, strategy{label, f})
			return nil
		}
		s, err := reg.Get(name)
		if err != nil {
			return err
		}
		p, err := s.Open(context.Background(), json.RawMessage(settings), registry.Env{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		out = append(out, strategy{label, provider(p)})
		return nil
	}
	for name := range strings.SplitSeq(o.strategies, ",") {
		if name != "" {
			if err := add(name, name, ""); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range o.extra {
		label, rest, ok := strings.Cut(e, "=")
		if !ok {
			return nil, fmt.Errorf("-s %q: want LABEL=STRATEGY:{JSON}", e)
		}
		name, settings, _ := strings.Cut(rest, ":")
		if err := add(label, name, settings); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 && o.background == "" {
		return nil, fmt.Errorf("no strategy named; references are %s, strategies %s", strings.Join(sortedKeys(references), ", "), strings.Join(reg.Names(), ", "))
	}
	return out, nil
}

// provider asks p as a chain would, and takes the answer only if it is lawful.
func provider(p core.CondensationProvider) maker {
	return func(s *retention.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
		cut := s.Cut()
		req := &core.Request{
			Messages: m, Trigger: core.TriggerAutomatic, Mode: cut.Session.Mode, System: cut.Session.System, Counter: c,
			Budget: core.Budget{Window: budget, Limit: budget, Target: budget},
		}
		res, err := p.Condense(context.Background(), req.Clone())
		if err != nil {
			return nil, err
		}
		if err := core.Verify(req, res); err != nil {
			return nil, fmt.Errorf("breaks a rule: %w", err)
		}
		return res.Messages, nil
	}
}

// A row is one view of one cut.
type row struct {
	Strategy string          `json:"strategy"`
	Budget   string          `json:"budget"`
	Session  string          `json:"session"`
	Source   string          `json:"source"`
	Cut      string          `json:"cut"`
	Score    retention.Score `json:"score"`
	Size     float64         `json:"size"` // of the budget
	MS       float64         `json:"ms"`
	Error    string          `json:"error,omitempty"`
}

func measure(o *options, stdout, stderr io.Writer) error {
	strategies, err := o.open()
	if err != nil {
		return err
	}
	enc, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return err
	}
	counter := tokens.NewCounter(enc)
	start := time.Now()
	sessions, err := load(o, counter)
	if err != nil {
		return err
	}
	if o.background != "" {
		background := retention.NewBackground(sessions)
		f, err := os.Create(o.background)
		if err != nil {
			return err
		}
		if _, err := background.WriteTo(f); err != nil {
			return err
		}
		return f.Close()
	}
	background := retention.Common()
	fmt.Fprintf(stderr, "%d sessions read in %v\n", len(sessions), time.Since(start).Round(time.Millisecond))
	rows := make([][]row, len(sessions))
	var wg sync.WaitGroup
	next := make(chan int)
	for range o.jobs {
		wg.Go(func() {
			for i := range next {
				if strings.Contains(sessions[i].ID, o.match) {
					rows[i] = judge(sessions[i], background, counter, strategies, strings.Split(o.budgets, ","))
				}
			}
		})
	}
	for i := range sessions {
		next <- i
	}
	close(next)
	wg.Wait()
	all := slices.Concat(rows...)
	fmt.Fprintf(stderr, "%d rows in %v\n", len(all), time.Since(start).Round(time.Millisecond))
	if o.rows != "" {
		if err := writeRows(o.rows, all); err != nil {
			return err
		}
	}
	for _, b := range strings.Split(o.budgets, ",") {
		table(stdout, all, b, strategies, "")
		if o.sources {
			seen := map[string]bool{}
			for _, r := range all {
				seen[r.Source] = true
			}
			for _, s := range sortedKeys(seen) {
				table(stdout, all, b, strategies, s)
			}
		}
	}
	return nil
}

func load(o *options, c core.Counter) ([]*retention.Session, error) {
	files, err := filepath.Glob(filepath.Join(o.traces, "*.json.gz"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no *.json.gz in %s", o.traces)
	}
	out := make([]*retention.Session, len(files))
	for i, name := range files {
		f, err := os.Open(name) //nolint:gosec // a file that the user names
		if err != nil {
			return nil, err
		}
		out[i], err = compare.ReadSession(f, name, c)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func judge(s *retention.Session, background *retention.Background, c core.Counter, strategies []strategy, budgets []string) []row {
	var out []row
	for _, cut := range retention.Cuts(s, c) {
		scorer := retention.NewScorer(cut, background)
		for _, b := range budgets {
			budget := cut.Budget
			if (b == "real") != (cut.Compaction >= 0) {
				continue
			}
			if b != "real" {
				percent, err := strconv.ParseFloat(b, 64)
				if err != nil {
					return []row{{Budget: b, Error: err.Error()}}
				}
				budget = int(math.Round(float64(cut.Tokens) * percent / 100))
			}
			for _, st := range strategies {
				r := row{Strategy: st.label, Budget: b, Session: s.ID, Source: s.Source, Cut: cut.Name}
				start := time.Now()
				view, err := st.make(scorer, slices.Clone(cut.Prefix()), budget, c)
				r.MS = float64(time.Since(start)) / 1e6
				if err != nil {
					r.Error = err.Error()
				} else {
					r.Score = scorer.Score(view)
					n := 0
					for i := range view {
						n += core.MessageTokens(c, view[i])
					}
					r.Size = float64(n) / float64(budget)
				}
				out = append(out, r)
			}
		}
	}
	return out
}

var columns = []struct {
	name string
	get  func(*row) (float64, bool)
}{
	{"panel", func(r *row) (float64, bool) { return r.Score.Panel() }},
	{"cFRR", func(r *row) (float64, bool) { return r.Score.CFRR.Value() }},
	{"cFAR", func(r *row) (float64, bool) { return r.Score.CFAR.Value() }},
	{"FNR4", func(r *row) (float64, bool) { return r.Score.FNR4.Value() }},
	{"RW", func(r *row) (float64, bool) { return r.Score.RW.Value() }},
	{"gFRR", func(r *row) (float64, bool) { return r.Score.GFRR.Value() }},
	{"FRR", func(r *row) (float64, bool) { return r.Score.FRR.Value() }},
	{"UIR", func(r *row) (float64, bool) { return r.Score.UIR.Value() }},
	{"art", func(r *row) (float64, bool) { return r.Score.Artefacts.Value() }},
	{"err", func(r *row) (float64, bool) { return r.Score.Errors.Value() }},
	{"recent", func(r *row) (float64, bool) { return r.Score.Recent.Value() }},
	{"size", func(r *row) (float64, bool) { return r.Size, true }},
	{"faults", func(r *row) (float64, bool) { return float64(r.Score.PairErrors), true }},
	{"told", func(r *row) (float64, bool) { return r.Score.Foretold.Value() }},
	{"ms", func(r *row) (float64, bool) { return r.MS, true }},
}

func table(w io.Writer, rows []row, budget string, strategies []strategy, source string) {
	unit := "%"
	if budget == "real" {
		unit = ""
	}
	fmt.Fprintf(w, "\n%s%s %s\n", budget, unit, source)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "strategy\tsessions\t")
	for i, c := range columns {
		fmt.Fprintf(t, "%s\t", c.name)
		if i == 0 {
			fmt.Fprint(t, "95 %\t")
		}
	}
	fmt.Fprintln(t, "worst size\terrors\t")
	for _, s := range strategies {
		errs, n, worst := 0, map[string]bool{}, 0.0
		for i := range rows {
			if r := &rows[i]; r.Strategy == s.label && r.Budget == budget && (source == "" || r.Source == source) {
				n[r.Session] = true
				worst = max(worst, r.Size)
				if r.Error != "" {
					if errs++; errs == 1 {
						fmt.Fprintf(w, "%s: %s %s: %s\n", s.label, r.Session, r.Cut, r.Error)
					}
				}
			}
		}
		fmt.Fprintf(t, "%s\t%d\t", s.label, len(n))
		for i, c := range columns {
			means := sessionMeans(rows, s.label, budget, source, c.get)
			fmt.Fprintf(t, "%.3f\t", mean(means))
			if i == 0 {
				lo, hi := bootstrap(means)
				fmt.Fprintf(t, "%.2f-%.2f\t", lo, hi)
			}
		}
		fmt.Fprintf(t, "%.2f\t%d\t\n", worst, errs)
	}
	_ = t.Flush()
}

// sessionMeans returns the mean over the cuts of every session, in order of session.
func sessionMeans(rows []row, label, budget, source string, get func(*row) (float64, bool)) []float64 {
	sums, counts := map[string]float64{}, map[string]float64{}
	for i := range rows {
		r := &rows[i]
		if r.Strategy != label || r.Budget != budget || r.Error != "" || source != "" && r.Source != source {
			continue
		}
		if v, ok := get(r); ok {
			sums[r.Session] += v
			counts[r.Session]++
		}
	}
	var out []float64
	for _, k := range sortedKeys(sums) {
		out = append(out, sums[k]/counts[k])
	}
	return out
}

func mean(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

// bootstrap returns the 95 % interval of the mean over sessions.
func bootstrap(v []float64) (lo, hi float64) {
	if len(v) == 0 {
		return math.NaN(), math.NaN()
	}
	const rounds = 2000
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	means := make([]float64, rounds)
	for i := range means {
		s := 0.0
		for range v {
			s += v[rng.IntN(len(v))]
		}
		means[i] = s / float64(len(v))
	}
	slices.Sort(means)
	return means[rounds*25/1000], means[rounds*975/1000]
}

func writeRows(name string, rows []row) error {
	f, err := os.Create(name) //nolint:gosec // a file that the user names
	if err != nil {
		return err
	}
	e := json.NewEncoder(f)
	for i := range rows {
		if err := e.Encode(&rows[i]); err != nil {
			return err
		}
	}
	return f.Close()
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
