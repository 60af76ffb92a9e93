package value

import (
	"math/rand/v2"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
)

// worth returns what the kept lines hold, from scratch.
func (w *choice) worth() float64 {
	w.forget()
	w.settle(0, len(w.r.c.Lines))
	sum := 0.0
	for _, t := range w.terms {
		sum += float64(t.credit * t.name)
		if t.credit > 0 {
			sum += float64(t.word)
		}
	}
	for n, value := range w.phrases {
		sum += float64(w.v.estimate.Phrases[n] - value)
	}
	return sum
}

// TestLoss drops lines one by one, in random histories: nothing is lost that was not
// foreseen to a line that alone holds it, and pruning loses less than the room it makes
// is worth.
func TestLoss(t *testing.T) {
	model, err := DefaultModel()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		messages := coretest.Random(rand.New(rand.NewPCG(seed, 0)), nil)
		total := 0
		for i := range messages {
			total += messages[i].Tokens
		}
		shares := DefaultShares()
		o := &Options{Room: total / 3, Counter: coretest.HalfRequest(messages).Counter, Shares: &shares, Model: model, Reader: new(dialog.Reader)}
		w := chosenFrom(t, messages, o)
		if err := keepWords(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		from := int32(len(w.picks) - 1)
		if err := w.choose(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, held := w.worth(), w.tally()
		for l := range w.lines {
			at := w.lines[l].at
			if at <= from {
				continue
			}
			loss := float64(w.loss(held, l))
			w.lines[l].at = 0
			if lost := all - w.worth(); loss < 0 || loss > lost+1e-3*all {
				t.Errorf("seed %d: dropping %q loses %v, foreseen %v", seed, w.r.c.Lines[l].Text, lost, loss)
			}
			w.lines[l].at = at
		}
		before := w.worth()
		spent, rate := w.spent(), float32(before/max(1, w.spent()))
		w.prune(from, rate)
		lost, saved := before-w.worth(), spent-w.spent()
		if saved < 0 || lost > 2*float64(rate)*saved+1e-3*all {
			t.Errorf("seed %d: pruned what is worth %v to save %v tokens worth %v each", seed, lost, saved, rate)
		}
		for p := range w.r.c.Passages {
			if n := kept(w, w.r.c.Passages[p].Lines); n != w.passages[p].opened {
				t.Errorf("seed %d: passage %d has %d kept lines, says %d", seed, p, n, w.passages[p].opened)
			}
		}
	}
}

func kept(w *choice, lines core.Span) (n int32) {
	for l := lines.Start; l < lines.End; l++ {
		if w.lines[l].at != 0 {
			n++
		}
	}
	return n
}
