package roo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/roo"
)

// A task is a task folder in use: what Roo's Task keeps in memory.
type task struct {
	messages []*roo.Message
	ui       []*roo.UIMessage
	clock    int
	ids      int
}

func (s *task) id() string {
	s.ids++
	return fmt.Sprintf("id-%d", s.ids)
}

// show appends a UI message and returns its timestamp.
func (s *task) show(members string) float64 {
	s.clock += 100
	ui, err := roo.ParseUI(fmt.Appendf(nil, `[{"ts":%d,"type":"say",%s}]`, s.clock, members))
	if err != nil {
		panic(err)
	}
	s.ui = append(s.ui, ui...)
	return float64(s.clock)
}

// say appends a message, shows it, and returns its timestamp.
func (s *task) say(role, style string) float64 {
	ts := s.show(`"say":"text"`)
	m, err := roo.ParseMessage(fmt.Appendf(nil, style, role, int(ts)))
	if err != nil {
		panic(err)
	}
	s.messages = append(s.messages, m)
	return ts
}

// now is a moment after the last UI message and before the next.
func (s *task) now() time.Time { return time.UnixMilli(int64(s.clock) + 50) }

// truncate does and shows what Roo does when a condensation fails.
func (s *task) truncate(fraction float64) float64 {
	result := roo.Truncate(s.messages, fraction, s.id, s.now)
	s.messages = result.Messages
	return s.show(fmt.Sprintf(`"say":"sliding_window_truncation","contextTruncation":{"truncationId":%q}`, result.ID))
}

// condense does and shows what Roo does with a summary.
func (s *task) condense() float64 {
	id := s.id()
	tagged := make([]*roo.Message, len(s.messages), len(s.messages)+1)
	for i, m := range s.messages {
		tagged[i] = m
		if m.Tag(roo.CondenseParent) == "" {
			tagged[i] = m.With(roo.CondenseParent, id)
		}
	}
	summary, err := roo.ParseMessage(fmt.Appendf(nil,
		`{"role":"user","content":[{"type":"text","text":"s"}],"ts":%d,"isSummary":true,"condenseId":%q}`, s.clock+1, id))
	if err != nil {
		panic(err)
	}
	s.messages = append(tagged, summary)
	return s.show(fmt.Sprintf(`"say":"condense_context","contextCondense":{"condenseId":%q}`, id))
}

// styles are ways to write a message: as Roo does, and as an editor may leave it.
var styles = []string{
	`{"role":%q,"content":"hi","ts":%d}`,
	"{\n  \"role\": %q,\n  \"ts\": %d,\n  \"x\": {\"a\": [1.0, \"\\u00e9\"]}\n}",
	`{ "role" : %q , "ts":%d }`,
	`{"role":%q,"ts":%d,"id":"msg_1","content":[{"type":"text","text":"t"},{"type":"tool_use","id":"a","input":{}}] }`,
}

// Rewinding to a message gives back, byte for byte, the files from before it, whatever was
// condensed, truncated and said since.
func TestRewindBringsEverythingBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type point struct {
			ts        float64
			history   string
			effective string
			ui        string
		}
		var points []point
		s := new(task)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			before := point{
				history:   string(roo.Encode(s.messages)),
				effective: string(roo.Encode(roo.Effective(s.messages))),
				ui:        string(roo.EncodeUI(s.ui)),
			}
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				s.truncate(rapid.SampledFrom([]float64{0, 0.5, 0.75, 1}).Draw(t, "fraction"))
			case 1:
				s.condense()
			default:
				role := rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role")
				before.ts = s.say(role, rapid.SampledFrom(styles).Draw(t, "style"))
				points = append(points, before)
			}
		}
		for _, p := range points {
			r, err := roo.RewindToTimestamp(s.ui, s.messages, p.ts, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(roo.Encode(r.Messages)); got != p.history {
				t.Fatalf("to %v: got history\n%s\nwant\n%s", p.ts, got, p.history)
			}
			if got := string(roo.Encode(roo.Effective(r.Messages))); got != p.effective {
				t.Fatalf("to %v: got view\n%s\nwant\n%s", p.ts, got, p.effective)
			}
			if got := string(roo.EncodeUI(r.UI)); got != p.ui {
				t.Fatalf("to %v: got UI\n%s\nwant\n%s", p.ts, got, p.ui)
			}
			checkRewound(t, s, r)
		}
	})
}

// checkRewound checks what a rewind says of itself.
func checkRewound(t *rapid.T, s *task, r *roo.Rewound) {
	if got, want := r.MessagesChanged, !slices.Equal(r.Messages, s.messages); got != want {
		t.Fatalf("got MessagesChanged %v, want %v", got, want)
	}
	if got, want := len(r.Messages)+len(r.Removed), len(s.messages); got != want {
		t.Fatalf("got %d messages kept and removed, want %d", got, want)
	}
	if got, want := string(roo.EncodeUI(slices.Concat(r.UI, r.RemovedUI))), string(roo.EncodeUI(s.ui)); got != want {
		t.Fatalf("got UI kept and removed\n%s\nwant\n%s", got, want)
	}
	ids := make(map[string]bool)
	for _, m := range r.Messages {
		for _, name := range []roo.Tag{roo.CondenseID, roo.TruncationID} {
			ids[m.Tag(name)] = true
		}
	}
	for _, m := range r.Messages {
		for _, parent := range []roo.Tag{roo.CondenseParent, roo.TruncationParent} {
			if name := m.Tag(parent); name != "" && !ids[name] {
				t.Fatalf("a message is still hidden by %s, which is gone: %s", name, m.JSON())
			}
		}
	}
	if !slices.IsSorted(r.ArtifactIDs) || len(slices.Compact(slices.Clone(r.ArtifactIDs))) != len(r.ArtifactIDs) {
		t.Fatalf("got artifact ids %v, want them sorted and each once", r.ArtifactIDs)
	}
}

// No message has the time of an event. So the rule for late answers applies, and keeps
// what the model said after the event, up to the next user message.
func TestRewindToAnEventKeepsTheAnswersAfterIt(t *testing.T) {
	t.Parallel()
	s := new(task)
	s.say("user", styles[0])
	event := s.condense()
	s.say("assistant", styles[0])
	s.say("user", styles[0])
	s.say("assistant", styles[0])
	r, err := roo.RewindToTimestamp(s.ui, s.messages, event, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"role":"user","content":"hi","ts":100},{"role":"assistant","content":"hi","ts":300}]`
	if got := string(roo.Encode(r.Messages)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRewindErrors(t *testing.T) {
	t.Parallel()
	s := new(task)
	s.say("user", styles[0])
	_, err := roo.RewindToTimestamp(s.ui, s.messages, 250, nil)
	if want := "rewind: none of 1 UI messages has the timestamp 250"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = roo.RewindToIndex(s.ui, s.messages, -1, recordedNow, nil)
	if want := "rewind: index -1 is negative"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRewindSaysWhatItRemoved(t *testing.T) {
	t.Parallel()
	s := new(task)
	for range 6 {
		s.say("user", styles[0])
	}
	s.truncate(0.5)
	s.say("assistant", styles[0])
	r, err := roo.RewindToIndex(s.ui, s.messages, 6, recordedNow, nil)
	if err != nil {
		t.Fatal(err)
	}
	var removed []string
	for _, m := range r.Removed {
		removed = append(removed, m.Role()+" "+m.Tag(roo.TruncationID))
	}
	if got, want := strings.Join(removed, ", "), "user id-1, assistant "; got != want {
		t.Errorf("got %q removed, want %q", got, want)
	}
	if got, want := len(r.RemovedUI), 2; got != want {
		t.Errorf("got %d UI messages removed, want %d", got, want)
	}
	if got, want := r.ArtifactIDs, []string{"100", "200", "300", "400", "500", "600"}; !slices.Equal(got, want) {
		t.Errorf("got artifacts %v, want %v", got, want)
	}
}

// A summary goes with the event of its making, not with any other message that names it.
func TestRewindGoesByEvents(t *testing.T) {
	t.Parallel()
	messages := parseSession(t, []byte(`[{"ts":1,"isSummary":true,"condenseId":"A"},{"ts":2,"isTruncationMarker":true,"truncationId":"T"}]`))
	for say, want := range map[string]int{"condense_context": 1, "sliding_window_truncation": 1, "text": 2} {
		ui, err := roo.ParseUI([]byte(`[{"ts":5,"say":"` + say + `","contextCondense":{"condenseId":"A"},"contextTruncation":{"truncationId":"T"}}]`))
		if err != nil {
			t.Fatal(err)
		}
		r, err := roo.RewindToIndex(ui, messages, 0, recordedNow, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(r.Messages); got != want {
			t.Errorf("%s: got %d messages left, want %d", say, got, want)
		}
	}
}

// A rewind that removes nothing still repairs what an earlier one left, and says so.
func TestRewindThatOnlyCleansUpMustBeWritten(t *testing.T) {
	t.Parallel()
	messages := parseSession(t, []byte(`[{"role":"user","ts":1,"condenseParent":"gone"}]`))
	for skip, want := range map[bool]string{
		true:  `[{"role":"user","ts":1,"condenseParent":"gone"}]`,
		false: `[{"role":"user","ts":1}]`,
	} {
		r, err := roo.RewindToIndex(nil, messages, 0, recordedNow, &roo.RewindOptions{SkipCleanup: skip})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(roo.Encode(r.Messages)); got != want || r.MessagesChanged == skip {
			t.Errorf("skip %v: got %s, changed %v, want %s, %v", skip, got, r.MessagesChanged, want, !skip)
		}
	}
}

func TestRewindSkippingCleanup(t *testing.T) {
	t.Parallel()
	s := new(task)
	for range 5 {
		s.say("user", styles[0])
	}
	ts := s.truncate(0.5)
	r, err := roo.RewindToTimestamp(s.ui, s.messages, ts, &roo.RewindOptions{SkipCleanup: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.ArtifactIDs != nil {
		t.Errorf("got artifacts %v, want nil: nobody may delete by this list", r.ArtifactIDs)
	}
	if got, want := r.Messages[1].Tag(roo.TruncationParent), "id-1"; got != want {
		t.Errorf("got parent %q, want %q left", got, want)
	}
}
