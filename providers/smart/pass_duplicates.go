package smart

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/condensehq/condense/internal/dialog"
)

type duplicatesSettings struct {
	Tokens int `json:"tokens" doc:"size below which a repeated text is left alone"`
}

// Validate says which setting is out of range.
func (s *duplicatesSettings) Validate() error {
	if s.Tokens < 0 {
		return fmt.Errorf("tokens: %d is negative", s.Tokens)
	}
	return nil
}

var duplicatesPass = referring(define("duplicates", classLossless, "",
	"Of tool results, injected texts and long texts of the assistant that stand there more than once, word for word, the newest stays.",
	duplicatesSettings{Tokens: 40},
	func(_ context.Context, w *work, c duplicatesSettings) error {
		seed := maphash.MakeSeed()
		newest := map[uint64][]int{} // by hash, pieces of different text
		for i := len(w.pieces) - 1; i >= 0; i-- {
			p := &w.pieces[i]
			if p.gone || p.needed || w.hidden[w.message(i)] || p.tokens < c.Tokens || !repeats(p.kind) || hasStub(p.text) {
				continue
			}
			w.looked()
			h := maphash.String(seed, p.text)
			at := -1
			for _, k := range newest[h] {
				if w.pieces[k].text == p.text {
					at = k
					break
				}
			}
			if at < 0 {
				newest[h] = append(newest[h], i)
				continue
			}
			w.leave(i, stub{where: w.refer(i, sameText, at)})
		}
		return nil
	}))

// repeats reports whether texts of kind k are worth a reference to their like. What a
// person typed stays where it was typed.
func repeats(k dialog.Kind) bool {
	return k == dialog.KindToolResult || k == dialog.KindInjected || k == dialog.KindProjectRules || k == dialog.KindAssistant
}

// How a reference begins.
const (
	sameText = "same text in the"
	seeNewer = "see the newer"
	patchThe = "patch the"
)

// refer says where the piece at stands, for the stub of i, which is before it: "same text in the
// read_file src/a.go below".
func (w *work) refer(i int, what string, at int) string {
	of, _ := w.label(&w.pieces[at])
	switch {
	case w.boxes[w.pieces[i].box].users:
		of = "one"
	case w.pieces[at].use == nil:
		of = "text"
	}
	return what + " " + of + " below"
}
