package wire_test

import (
	"slices"
	"testing"

	"github.com/condensehq/condense/internal/live/wire"
)

// TestNewest: of texts of the system that repeat, the newest stays, and nothing else goes.
func TestNewest(t *testing.T) {
	t.Parallel()
	const (
		prompt, user, say = `{"role":"system","content":"Be brief."}`, `{"role":"user","content":"x"}`, `{"role":"assistant","content":"y"}`
		old, now          = `{"role":"system","content":"Tasks unused. 1 open"}`, `{"role":"system","content":"Tasks unused. 2 open"}`
		other, brief      = `{"role":"system","content":"Answer in French."}`, `{"role":"system","content":"Be brief."}`
		both              = `{"role":"system","content":[{"type":"text","text":"Answer in French."},{"type":"text","text":"<system-reminder>\nTasks unused. 3"}]}`
		bothLess          = `{"role":"system","content":[{"type":"text","text":"Answer in French."}]}`
		effort            = `{"role":"system","content":"Tasks unused. 4","effort":"high"}`
		said              = `{"role":"user","content":"Tasks unused. 1 open"}`
		tune, strong      = `{"role":"system","content":[],"output_config":{"effort":"low"}}`, `{"role":"system","content":[],"output_config":{"effort":"high"}}`
	)
	for _, tt := range []struct {
		name           string
		messages, want []string
		origin         []int
		stays          int // number of a message; 0 for none
	}{
		{name: "nothing", messages: []string{prompt, user, say, other}, want: []string{prompt, user, say, other}, origin: []int{0, 1, 2, 3}},
		{name: "the newest", messages: []string{user, old, say, user, old, say, user, now}, want: []string{user, say, user, say, user, now}, origin: []int{0, 2, 3, 5, 6, 7}},
		{name: "in a message with others", messages: []string{user, both, say, now}, want: []string{user, bothLess, say, now}, origin: []int{0, 1, 2, 3}},
		{name: "the same text", messages: []string{user, other, say, user, other}, want: []string{user, say, user, other}, origin: []int{0, 2, 3, 4}},
		{name: "the system prompt", messages: []string{prompt, user, brief}, want: []string{prompt, user, brief}, origin: []int{0, 1, 2}},
		{name: "between answers", messages: []string{user, say, old, say, now}, want: []string{user, say, old, say, now}, origin: []int{0, 1, 2, 3, 4}},
		{name: "with a setting", messages: []string{user, effort, user, now}, want: []string{user, effort, user, now}, origin: []int{0, 1, 2, 3}},
		{name: "only a setting", messages: []string{user, tune, say, user, strong, say, user, tune}, want: []string{user, say, user, strong, say, user, tune}, origin: []int{0, 2, 3, 4, 5, 6, 7}},
		{name: "the user's", messages: []string{said, say, now}, want: []string{said, say, now}, origin: []int{0, 1, 2}},
		{name: "protected", messages: []string{user, old, user, now}, want: []string{user, old, user, now}, origin: []int{0, 1, 2, 3}, stays: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := parse(t, wire.Messages, request(wire.Messages, tt.messages...))
			view, origin := wire.Newest(r.Messages, []string{"Tasks unused"}, func(i int) bool { return tt.stays > 0 && i == tt.stays })
			if !slices.EqualFunc(view, tt.want, func(v []byte, w string) bool { return string(v) == w }) || !slices.Equal(origin, tt.origin) {
				t.Errorf("got %s from %d\nwant %s from %d", view, origin, tt.want, tt.origin)
			}
		})
	}
}
