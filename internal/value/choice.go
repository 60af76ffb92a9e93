package value

import "context"

// A choice is a conversation while its lines are being chosen.
type choice struct {
	layout
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

func newChoice(rated preface) *choice {
	w := &choice{layout: layout{
		preface: rated,
		native:  make([]bool, len(rated.groups)), cut: make([]bool, len(rated.messages)), passages: make([]passageState, len(rated.c.Passages)),
	}}
	w.terms = make([]termState, w.c.Terms())
	w.phrases = make([]float32, len(w.c.phrases))
	return w
}

// shorten makes all choices and writes the result.
func (w *choice) shorten(ctx context.Context) (Result, error) {
	w.filling, w.requested, w.worded = false, 0, 0
	w.arrange()
	w.forget()
	w.settleOpen()
	w.settle(0, len(w.lines))
	for _, step := range []func(context.Context) error{claims{w}.meet, w.choose, w.rest} {
		if err := step(ctx); err != nil {
			return Result{}, err
		}
	}
	return extract(w), nil
}
