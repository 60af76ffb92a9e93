package smart

import (
	"context"
	"fmt"
	"strings"

	"github.com/condensehq/condense/internal/dialog"
)

type nearSettings struct {
	Tokens int     `json:"tokens" doc:"size below which a result is left alone"`
	Share  float64 `json:"share" doc:"the diff must be smaller than this share of what it replaces"`
}

// Validate says which setting is out of range.
func (s *nearSettings) Validate() error {
	if s.Tokens < 0 {
		return fmt.Errorf("tokens: %d is negative", s.Tokens)
	}
	if !(s.Share > 0 && s.Share <= 1) {
		return fmt.Errorf("share: %v is not above 0 and at most 1", s.Share)
	}
	return nil
}

var nearPass = referring(define("near_duplicates", classLossless, "",
	"Of results of the same call with the same arguments, the newest stays; older ones become what turns the newest into them, as a unified diff, if that is much smaller. Every diff is applied before it is used.",
	nearSettings{Tokens: 100, Share: 0.5},
	func(ctx context.Context, w *work, c nearSettings) error {
		type key struct{ name, target, path string }
		newest := map[key]int{}
		for i := len(w.pieces) - 1; i >= 0; i-- {
			p := &w.pieces[i]
			if p.kind != dialog.KindToolResult || p.gone || p.use == nil || p.tokens < c.Tokens || w.hidden[w.message(i)] {
				continue
			}
			u := p.use
			if u.Info.Target == "" && p.file.Path == "" {
				continue
			}
			k := key{u.Name, u.Info.Target, p.file.Path}
			at, ok := newest[k]
			if hasStub(p.text) {
				if ok && strings.Contains(p.text, stubMark+": "+patchThe) {
					w.pieces[at].needed = true // for an earlier condensation's diff
				}
				continue
			}
			w.looked()
			if !ok {
				newest[k] = i
				continue
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			w.asDiff(i, at, c.Share)
		}
		return nil
	}))

// asDiff replaces piece i by what turns the piece at, below it, into it.
func (w *work) asDiff(i, at int, share float64) bool {
	p, newer := &w.pieces[i], w.pieces[at].text
	if p.fixed || p.text == newer {
		return false
	}
	diff := unifiedDiff(newer, p.text)
	if float64(len(diff)) >= share*float64(len(p.text)) {
		return false
	}
	if back, err := patch(newer, diff); err != nil || back != p.text {
		return false
	}
	s := stub{where: w.refer(i, patchThe, at) + " with this diff"}
	w.describe(i, &s)
	text := s.String() + "\n" + diff
	if float64(w.count(text)) >= share*float64(p.tokens) || !w.put(i, text) {
		return false
	}
	w.pieces[at].needed = true
	return true
}
