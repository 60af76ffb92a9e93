package value

import "context"

// A choice is a conversation while lines of it are chosen.
type choice struct {
	layout
	terms     []termState
	phrases   []float32 // the value of each; 0 if a kept line holds it
	filling   bool      // all lines that are worth anything are kept; see gone
	threshold float32   // the value per token of the last that [choice.choose] took
	marks     []string  // of media that an extract may mention
	mediaAt   []int32   // the pick that took the mark; 0 if none did
}

// A termState is what choosing reads of one.
type termState struct {
	name, word float32 // what it is worth; one of them is 0
	credit     float32 // the share that the best of the kept lines gives; 0 if none holds it
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

// shorten makes all choices, and writes what was chosen.
func (w *choice) shorten(ctx context.Context) (Result, error) {
	w.filling = false
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
