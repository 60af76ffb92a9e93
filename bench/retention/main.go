// Command retention measures strategies on recorded sessions and prints a table: how much
// of what the agent later needed is still there at a budget. Package internal/lab/score
// says what the columns mean.
//
//	go run ./bench/retention -traces DIR -strategies keep_last,masking,slidingwindow
//	go run ./bench/retention -traces DIR -s 'tight=smart:{"preset":"aggressive"}' -budgets 10,25
//
// Weights that internal/lab/train made without some sessions are judged on these alone:
//
//	go run ./internal/lab/train -traces DIR -fold 0/4 -out W
//	go run ./bench/retention -traces DIR -weights W -strategies value -fold 0/4
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/lab/sessions"
	"github.com/condensehq/condense/providers"
	"github.com/condensehq/condense/registry"
	"github.com/condensehq/condense/tokens"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "retention:", err)
		os.Exit(1) //nolint:forbidigo // it is main
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
	weights    string
	fold       string
	only       string
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
	flags.StringVar(&o.weights, "weights", "", "folder of the weights that the reference value chooses lines by; default the built-in ones")
	flags.StringVar(&o.fold, "fold", "", "K/N: only every Nth session from number K on, from 0: what internal/lab/train -fold leaves out")
	flags.StringVar(&o.only, "only", "", "only sessions of these sources, with commas between: what internal/lab/train -without leaves out")
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
		if name == "value" {
			f, err := chooser(o.weights)
			if err != nil {
				return err
			}
			out = append(out, strategy{label, f})
			return nil
		}
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
		return nil, fmt.Errorf("no strategy named; references are %s and value, strategies %s", strings.Join(sortedKeys(references), ", "), strings.Join(reg.Names(), ", "))
	}
	return out, nil
}

// provider asks p as a chain would, and takes the answer only if it is lawful.
func provider(p core.CondensationProvider) maker {
	return func(s *score.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
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
	Strategy string      `json:"strategy"`
	Budget   string      `json:"budget"`
	Session  string      `json:"session"`
	Source   string      `json:"source"`
	Cut      string      `json:"cut"`
	Score    score.Score `json:"score"`
	Size     float64     `json:"size"` // of the budget
	MS       float64     `json:"ms"`
	Error    string      `json:"error,omitempty"`
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
	recorded, err := sessions.Load(o.traces, counter)
	if err != nil {
		return err
	}
	if o.background != "" {
		background := score.NewBackground(recorded)
		f, err := os.Create(o.background)
		if err != nil {
			return err
		}
		if _, err := background.WriteTo(f); err != nil {
			return err
		}
		return f.Close()
	}
	if recorded, err = o.chosen(recorded); err != nil {
		return err
	}
	background := score.Common()
	fmt.Fprintf(stderr, "%d sessions read in %v\n", len(recorded), time.Since(start).Round(time.Millisecond))
	rows := make([][]row, len(recorded))
	var wg sync.WaitGroup
	next := make(chan int)
	for range o.jobs {
		wg.Go(func() {
			for i := range next {
				rows[i] = judge(recorded[i], background, counter, strategies, strings.Split(o.budgets, ","))
			}
		})
	}
	for i := range recorded {
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
	for b := range strings.SplitSeq(o.budgets, ",") {
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

// chosen returns the sessions that the flags ask for.
func (o *options) chosen(all []*score.Session) ([]*score.Session, error) {
	fold, err := sessions.ParseFold(o.fold)
	if err != nil {
		return nil, err
	}
	var out []*score.Session
	for i, s := range all {
		if !strings.Contains(s.ID, o.match) || o.fold != "" && !fold.Has(i) || o.only != "" && !slices.Contains(strings.Split(o.only, ","), s.Source) {
			continue
		}
		out = append(out, s)
	}
	return out, nil
}

func judge(s *score.Session, background *score.Background, c core.Counter, strategies []strategy, budgets []string) []row {
	var out []row
	for _, cut := range score.Cuts(s, c) {
		scorer := score.NewScorer(cut, background)
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

func writeRows(name string, rows []row) error {
	f, err := os.Create(name)
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
