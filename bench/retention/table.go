package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"text/tabwriter"
)

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

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
