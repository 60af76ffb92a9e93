package lineage_test

import (
	"encoding/json"
	"testing"

	"github.com/condensehq/condense/internal/live/lineage"
)

// A record of another version, or a damaged one, must not end the gateway.
func FuzzStateFromStore(f *testing.F) {
	good, err := json.Marshal(frozen(f, 5, true))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"rolling":"AAAAAAAAAAAAAAAAAAAAAA","lengths":[-1,0,9],"ends":"AAAAAAAAAAAAAAAAAAAAAA","epoch":{"n":-1,"cut":-5},"counts":[1,2,3,-4]}`))
	f.Add([]byte(`{"rolling":"","epoch":{"cut":1,"block":[null,""],"whole":true},"caches":{"":"2026-11-22T00:00:00Z"},"ratios":[0,-1]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s lineage.State
		if json.Unmarshal(data, &s) != nil {
			return
		}
		r, rolling := parse(t, conversation(9), marked)
		use := func(s *lineage.State) {
			s.Adapt(r, rolling, true)
			s.Shorten(r, rolling, func(i int) []byte { return r.Messages[i].Raw })
			s.View(r, rolling)
			s.Estimate(s.Count(r, rolling, func(raw []byte) int { return len(raw) }))
			decide(s, r, question{Now: begin, Tokens: 1000, Write: 1, Read: 1})
			s.Measured(1000, lineage.Usage{Input: 1000})
			s.Recycle([]*lineage.State{s})
			after, _ := parse(t, append([]string{`{"role":"user","content":"Summary."}`}, conversation(9)[5:]...))
			if n, err := s.Freeze(r, rolling, lineage.Condensed{After: after.Messages}, begin); err == nil {
				n.View(r, rolling)
			}
			s.Sent(r, rolling, begin)
			s.Strip(r, rolling)
			s.View(r, rolling)
		}
		followed, _ := lineage.Follow([]*lineage.State{&s}, r, rolling)
		use(followed)
		use(&s)
	})
}
