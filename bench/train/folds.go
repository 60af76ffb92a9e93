package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
)

// A recorded session that is trained on or judged.
type recorded struct {
	item     lab.Item
	project  string
	messages []core.Message
	lessons  []lesson
}

// foldsOf shares the projects of sessions out among n folds, the largest first, each to the smallest fold.
func foldsOf(sessions []recorded, n int) [][]string {
	size := map[string]int{}
	for i := range sessions {
		size[sessions[i].project]++
	}
	names := slices.SortedFunc(maps.Keys(size), func(a, b string) int {
		return cmp.Or(size[b]-size[a], cmp.Compare(a, b))
	})
	folds, full := make([][]string, n), make([]int, n)
	for _, name := range names {
		least := slices.Index(full, slices.Min(full))
		folds[least] = append(folds[least], name)
		full[least] += size[name]
	}
	return folds
}

// An outcome measures a choice of lines: by budget, measure and session, the mean over its cuts.
type outcome map[string]map[string]map[string]float64

// add adds the rows of a report.
func (o outcome) add(r *lab.Report) {
	count := map[string]int{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Strategy != strategy {
			continue
		}
		for m, v := range row.Values {
			if o[row.Budget] == nil {
				o[row.Budget] = map[string]map[string]float64{}
			}
			if o[row.Budget][m] == nil {
				o[row.Budget][m] = map[string]float64{}
			}
			key := row.Budget + m + row.Session
			count[key]++
			mean := o[row.Budget][m]
			mean[row.Session] += (v - mean[row.Session]) / float64(count[key])
		}
	}
}

// shown are the measures that a table of folds has.
var shown = []string{lab.MeasurePanel, lab.MeasureFar, lab.MeasureUser, lab.MeasureReachable}

// print writes the means over sessions, and of the panel also over projects. With an earlier outcome of the same
// sessions it writes how much more they are, with the 95 % interval of the paired difference.
func (o outcome) print(w io.Writer, before outcome, project map[string]string) {
	for _, b := range slices.SortedFunc(maps.Keys(o), func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) }) {
		for _, m := range shown {
			fmt.Fprintf(w, "%s %s: %s\n", b, m, means(o[b][m], before[b][m]))
		}
		fmt.Fprintf(w, "%s %s, by project: %s\n", b, lab.MeasurePanel, means(grouped(o[b][lab.MeasurePanel], project), grouped(before[b][lab.MeasurePanel], project)))
	}
}

// grouped returns the means of the sessions of each project.
func grouped(v map[string]float64, project map[string]string) map[string]float64 {
	out, n := map[string]float64{}, map[string]float64{}
	for _, s := range slices.Sorted(maps.Keys(v)) {
		p := project[s]
		n[p]++
		out[p] += (v[s] - out[p]) / n[p]
	}
	return out
}

func means(now, before map[string]float64) string {
	sum, more, square, pairs := 0.0, 0.0, 0.0, 0.0
	for _, s := range slices.Sorted(maps.Keys(now)) {
		sum += now[s]
		if old, ok := before[s]; ok {
			d := now[s] - old
			more, square, pairs = more+d, square+d*d, pairs+1
		}
	}
	out := fmt.Sprintf("%.4f of %d", sum/float64(len(now)), len(now))
	if pairs > 1 {
		mean := more / pairs
		out += fmt.Sprintf(", %+.4f ± %.4f", mean, 1.96*math.Sqrt(max(0, square/pairs-mean*mean)/(pairs-1)))
	}
	return out
}

func (o outcome) write(name string) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}

func readOutcome(name string) (outcome, error) {
	o := outcome{}
	if name == "" {
		return o, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return o, nil
}
