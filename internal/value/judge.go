package value

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
)

// Limits of the questions to a judge. Passages whose value per token is far from the last pick's need no judge.
const (
	mostJudged   = 60
	judgedShare  = 0.2 // share of the passages that may be chosen
	judgedWithin = 4   // factor by which the value per token may differ from the last pick's
	judgedBytes  = 240 // of each passage: some 60 tokens
)

// judge asks about the passages with the closest choices, and weighs them by the answer. It reports whether there was
// one.
func (w *choice) judge(ctx context.Context) (bool, error) {
	asked := w.uncertain()
	if len(asked) < 2 {
		return false, nil
	}
	texts := make([]string, len(asked))
	for i, u := range asked {
		texts[i] = w.excerpt(u)
	}
	yes := w.o.Judge(ctx, texts)
	if err := ctx.Err(); err != nil || len(yes) != len(asked) {
		return false, err
	}
	// Only differences between passages count: a judge that always says yes has no opinion.
	mean := 0.0
	for _, p := range yes {
		mean += p / float64(len(yes))
	}
	w.factors = make([]float32, len(w.passages))
	for p := range w.factors {
		w.factors[p] = 1
	}
	for i, u := range asked {
		w.factors[u.passage] = float32(math.Pow(judgedWithin, yes[i]-mean))
	}
	return true, nil
}

// An uncertainty is a passage whose choice was close, with the line that decides.
type uncertainty struct {
	passage, line int
	distance      float64 // the logarithm of its value per token divided by the last pick's
}

// uncertain returns the passages with the closest choices, in the order of the conversation.
func (w *choice) uncertain() []uncertainty {
	if w.threshold <= 0 {
		return nil
	}
	var all []uncertainty
	add := func(passage, line int, rate float32) {
		if d := math.Abs(math.Log(float64(rate / w.threshold))); d <= math.Log(judgedWithin) {
			all = append(all, uncertainty{passage, line, d})
		}
	}
	open := 0
	for p := range w.passages {
		if !w.eligible(p) {
			continue
		}
		open++
		if rate := w.taken[p]; rate > 0 && w.passages[p].opened > 0 {
			line := w.c.Passages[p].Lines.Start
			for w.lines[line].at == 0 {
				line++
			}
			add(p, line, rate)
		}
	}
	best := map[int32]candidate{}
	for _, list := range w.candidates(0, len(w.passages), func(p int) bool { return w.eligible(p) && w.passages[p].opened == 0 }) {
		for _, c := range list {
			p := w.lines[c.start].passage
			if old, ok := best[p]; !ok || c.before(old) {
				best[p] = c
			}
		}
	}
	for p, c := range best {
		add(int(p), int(c.start), c.rate)
	}
	slices.SortFunc(all, func(a, b uncertainty) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.passage, a.passage))
	})
	all = all[:min(len(all), mostJudged, int(math.Ceil(judgedShare*float64(open))))]
	slices.SortFunc(all, func(a, b uncertainty) int { return cmp.Compare(a.passage, b.passage) })
	return all
}

// excerpt returns the author of a passage and its beginning from the line that decides.
func (w *reading) excerpt(u uncertainty) string {
	pass := &w.c.Passages[u.passage]
	var b strings.Builder
	b.WriteString(pass.Header(false, ""))
	for l := u.line; l < pass.Lines.End && b.Len() < judgedBytes; l++ {
		if !w.c.Lines[l].outdated {
			b.WriteByte('\n')
			b.WriteString(w.c.Lines[l].Text)
		}
	}
	return strings.ToValidUTF8(b.String()[:min(b.Len(), judgedBytes)], "")
}
