package value

import "context"

// A choice is a conversation while its lines are being chosen.
type choice struct {
	r         *reading
	v         *rating
	pre       *preface
	lay       *layout
	lines     []lineState    // of the rating
	passages  []passageState // of the layout
	picks     []float64      // picks[k] is the tokens up to pick k; picks[0] is the size without any
	terms     []termState
	phrases   []float32 // the value of each phrase; 0 if a kept line has it
	requested int32     // the pick that completes the newest request
	worded    int32     // the pick that completes the user's words
	filling   bool      // all lines of any value are kept; see gone
	threshold float32   // the value per token of the last line picked
	marks     []string  // of media that an extract may mention
	mediaAt   []int32   // for each mark, the pick that includes it; 0 if none does
}

// A termState is the part of a term that choosing reads.
type termState struct {
	name, word float32 // its values as a name and as a word; one of them is 0
	credit     float32 // the largest share of the value that a kept line gives; 0 if no kept line has the term
}

// newChoice returns a choice in which the lines of passages that stay unchanged are kept, and no others.
func newChoice(lay *layout) *choice {
	w := &choice{
		r: lay.r, v: lay.v, pre: lay.pre, lay: lay, lines: lay.v.lines, passages: lay.passages, picks: []float64{lay.base},
		terms: make([]termState, lay.r.c.Terms()), phrases: make([]float32, len(lay.r.c.phrases)),
	}
	for l := range w.lines {
		line, pass := &w.lines[l], &w.passages[w.lines[l].passage]
		if line.at = 0; pass.mode == modeFixed {
			line.at = 1
			pass.opened++
		}
	}
	w.forget()
	w.settleOpen()
	w.settle(0, len(w.lines))
	return w
}

// shorten makes all choices and writes the result.
func shorten(ctx context.Context, v *rating, pre *preface) (*choice, Result, error) {
	w := newChoice(arrange(v, pre))
	err := reserveAll(ctx, w)
	if err == nil {
		err = w.choose(ctx)
	}
	if err == nil {
		err = w.rest(ctx)
	}
	if err != nil {
		return nil, Result{}, err
	}
	return w, extract(w), nil
}
