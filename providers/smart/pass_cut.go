package smart

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/internal/dialog"
)

type cutSettings struct {
	Tokens int `json:"tokens" doc:"what a result may have at the end, when the target is not met"`
	Start  int `json:"start" doc:"what a result may have at first; halved until the target is met"`
	Keep   int `json:"keep" doc:"results of the newest calls that stay whole"`
}

// Validate says which setting is out of range.
func (s *cutSettings) Validate() error {
	switch {
	case s.Tokens < 40:
		return fmt.Errorf("tokens: %d is below 40", s.Tokens)
	case s.Start < s.Tokens:
		return fmt.Errorf("start: %d is below tokens, %d", s.Start, s.Tokens)
	case s.Keep < 0:
		return fmt.Errorf("keep: %d is negative", s.Keep)
	}
	return nil
}

var cutPass = define("cut", classLossy, "",
	"Cuts long results by what they are: of a JSON array the first elements, the last and those unlike the others stay, of a log what went wrong, of a diff what changed, of code the signatures, of a table the header.",
	cutSettings{Tokens: 120, Start: 2000, Keep: 2},
	func(ctx context.Context, w *work, c cutSettings) error {
		answered := w.answered()
		answered = answered[:max(0, len(answered)-c.Keep)]
		for limit := c.Start; ; limit = max(c.Tokens, limit/2) {
			if err := ctx.Err(); err != nil {
				return err
			}
			for _, k := range answered {
				if w.met() {
					return nil
				}
				for i := w.uses[k].results.Start; i < w.uses[k].results.End; i++ {
					if limit == c.Start {
						w.looked()
					}
					if w.pieces[i].kind != dialog.KindToolResult {
						continue
					}
					w.cut(i, limit)
				}
			}
			if limit == c.Tokens {
				return nil
			}
		}
	})

// cut shortens piece i to about limit tokens by its structure.
func (w *work) cut(i, limit int) {
	p := &w.pieces[i]
	if !w.tooLong(p, limit) {
		return
	}
	s := stub{gap: true}
	w.describe(i, &s)
	room := limit - w.count(s.String())
	if room <= 0 {
		return
	}
	var u *use
	if p.use != nil {
		u = p.use
	}
	bytes := int(int64(len(p.text)) * int64(room) / int64(p.tokens))
	t := understand(p.text, u, p.file)
	text, ok := t.cut(bytes, s)
	if !ok || len(t.units) == 1 {
		text, ok = cutMiddle(p.text, bytes/2, bytes/2, s)
	}
	if ok {
		w.put(i, text)
	}
}

// tooLong reports whether a piece may be cut to limit. One that was cut already may be
// half as long again: cuts are by bytes, and a second cut for a few tokens is not worth
// its stub.
func (w *work) tooLong(p *piece, limit int) bool {
	if p.fixed || p.gone || p.tokens <= limit {
		return false
	}
	return !hasStub(p.text) || p.tokens > limit+limit/2
}
