package lineage_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
)

// sent returns a lineage whose last request began at begin.
func sent(t *testing.T, fields ...string) (*lineage.State, *wire.Request) {
	t.Helper()
	r, rolling := parse(t, conversation(9), fields...)
	s := &lineage.State{}
	s.Sent(r, rolling, begin)
	return s, r
}

const marked = `"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]`

// A question has the facts of a decision that a state does not know, and those that the test sets.
type question struct {
	Now           time.Time
	Tokens, Fixed int
	Overflow      bool
	Write, Read   float64
	Lifetime      time.Duration
	epoch.Policy
}

func decide(s *lineage.State, r *wire.Request, q question) epoch.Decision {
	f := s.Facts(r, 0, q.Now)
	f.Tokens, f.Fixed, f.Overflow, f.Grown, f.Answers = q.Tokens, q.Fixed, q.Overflow, 0, 0
	f.Cache.Write, f.Cache.Read, f.Cache.Usual = q.Write, q.Read, q.Lifetime
	return epoch.Decide(f, q.Policy)
}

func TestDue(t *testing.T) {
	warm := question{
		Now: begin.Add(time.Minute), Tokens: 100_000, Fixed: 20_000, Write: 1.25, Read: 0.1,
		Policy: epoch.Policy{Window: 200_000, Limit: 170_000, Threshold: 160_000, MinSize: 50_000, MinGain: 12.5, MinNew: 5_000, Turns: 3},
	}
	tests := []struct {
		name   string
		change func(q *question, s *lineage.State, r *wire.Request)
		want   epoch.Reason
		wait   bool
	}{
		{"warm, and it does not pay", func(*question, *lineage.State, *wire.Request) {}, epoch.None, false},
		{"the request just fits", func(q *question, _ *lineage.State, _ *wire.Request) { q.Limit = 100_000 }, epoch.None, false},
		{"one token more does not", func(q *question, _ *lineage.State, _ *wire.Request) { q.Limit = 99_999 }, epoch.Forced, false},
		{"the vendor says it is too long", func(q *question, _ *lineage.State, _ *wire.Request) { q.Overflow = true }, epoch.Forced, false},
		{"forced, though nothing is gained", func(q *question, _ *lineage.State, _ *wire.Request) { q.Overflow, q.MinGain = true, 125 }, epoch.Forced, false},
		{"at the threshold", func(q *question, _ *lineage.State, _ *wire.Request) { q.Threshold = 100_000 }, epoch.Threshold, false},
		{"at the threshold, but nothing is gained", func(q *question, _ *lineage.State, _ *wire.Request) {
			q.Threshold, q.Fixed, q.MinGain = 100_000, 90_000, 100
		}, epoch.None, false},
		{"at the threshold, but nothing is new", func(q *question, s *lineage.State, _ *wire.Request) {
			q.Threshold, s.Epoch = 100_000, &lineage.Epoch{N: 1, After: 96_000}
		}, epoch.None, false},
		{"at the threshold, and enough is new", func(q *question, s *lineage.State, _ *wire.Request) {
			q.Threshold, s.Epoch = 100_000, &lineage.Epoch{N: 1, After: 95_000}
		}, epoch.Threshold, false},
		{"idle for as long as the cache lives", func(q *question, _ *lineage.State, _ *wire.Request) { q.Now = begin.Add(5 * time.Minute) }, epoch.None, false},
		{"and a tenth longer", func(q *question, _ *lineage.State, _ *wire.Request) {
			q.Now = begin.Add(5*time.Minute + 31*time.Second)
		}, epoch.Cold, false},
		{"cold but small", func(q *question, _ *lineage.State, _ *wire.Request) {
			q.Now, q.MinSize = begin.Add(time.Hour), 100_001
		}, epoch.None, false},
		{"cold, if that counted", func(q *question, _ *lineage.State, _ *wire.Request) {
			q.Now, q.IgnoreCold = begin.Add(time.Hour), true
		}, epoch.None, false},
		{"an hour was asked for once", func(q *question, s *lineage.State, _ *wire.Request) {
			q.Now, s.TTL = begin.Add(time.Hour), time.Hour
		}, epoch.None, false},
		{"no lifetime is known", func(q *question, s *lineage.State, _ *wire.Request) {
			q.Now, s.TTL, s.Lives = begin.Add(100*time.Hour), 0, time.Minute
		}, epoch.None, false},
		{"the vendor's own lifetime", func(q *question, s *lineage.State, _ *wire.Request) {
			q.Now, s.TTL, q.Lifetime = begin.Add(100*time.Hour), 0, 24*time.Hour
		}, epoch.Cold, false},
		{"the cache was seen to live longer", func(q *question, s *lineage.State, _ *wire.Request) {
			q.Now, s.Lives = begin.Add(time.Hour), 2*time.Hour
		}, epoch.None, false},
		{"a prediction was wrong", func(q *question, s *lineage.State, _ *wire.Request) {
			q.Now, s.Wrong = begin.Add(time.Hour), 1
		}, epoch.None, false},
		{"another model", func(_ *question, _ *lineage.State, r *wire.Request) { r.Model = "claude-opus-6" }, epoch.Changed, false},
		{"another effort", func(_ *question, _ *lineage.State, r *wire.Request) { r.Effort = "high" }, epoch.Changed, false},
		{"other tools", func(_ *question, _ *lineage.State, r *wire.Request) { r.Head[0]++ }, epoch.Changed, false},
		{"it pays", func(q *question, s *lineage.State, _ *wire.Request) { q.Turns, s.Spent = 12, 2e6 }, epoch.Payback, false},
		{"it would pay, but the conversation may end", func(q *question, s *lineage.State, _ *wire.Request) { q.Turns, s.Spent = 12, 1e5 }, epoch.None, false},
		{"and epochs have saved what this one may cost", func(q *question, s *lineage.State, _ *wire.Request) {
			q.Turns, s.Spent, s.Saved = 12, 1e5, 1e5
		}, epoch.Payback, false},
		{"and there is no limit", func(q *question, _ *lineage.State, _ *wire.Request) { q.Turns, q.Risk = 12, -1 }, epoch.Payback, false},
		{"it pays, if that counted", func(q *question, _ *lineage.State, _ *wire.Request) { q.Turns, q.IgnorePayback = 12, true }, epoch.None, false},
		{"prices are not known", func(q *question, _ *lineage.State, _ *wire.Request) { q.Turns, q.Read = 100, 0 }, epoch.None, false},
		{"enabled, a bound model, inside a turn", func(q *question, s *lineage.State, r *wire.Request) {
			q.Threshold, s.Bound, r.Thinking = 100_000, true, "enabled"
		}, epoch.None, true},
		{"but the window forces it", func(q *question, s *lineage.State, r *wire.Request) {
			q.Overflow, s.Bound, r.Thinking = true, true, "enabled"
		}, epoch.Forced, false},
		{"adaptive, a bound model, inside a turn", func(q *question, s *lineage.State, r *wire.Request) {
			q.Threshold, s.Bound, r.Thinking = 100_000, true, "adaptive"
		}, epoch.Threshold, false},
		{"enabled, inside a turn, but not bound", func(q *question, _ *lineage.State, r *wire.Request) {
			q.Threshold, r.Thinking = 100_000, "enabled"
		}, epoch.Threshold, false},
	}
	for _, tt := range tests {
		s, r := sent(t, marked)
		q := warm
		tt.change(&q, s, r)
		d := decide(s, r, q)
		if d.Reason != tt.want || (d.Wait != epoch.NoWait) != tt.wait {
			t.Errorf("%s: got %q, wait %q, want %q, %t", tt.name, d.Reason, d.Wait, tt.want, tt.wait)
		}
		if d.Before != 100_000 {
			t.Errorf("%s: got %d tokens before, want 100000", tt.name, d.Before)
		}
	}
}

// The table of the break-even, as its formula gives it: turns by price and by what an epoch leaves.
func TestPaybackAsCalculated(t *testing.T) {
	for _, tt := range []struct{ write, read, share, want float64 }{
		{1.25, 0.1, 0.25, 3.8},
		{1.25, 0.1, 0.5, 11.5},
		{1.25, 0.1, 0.75, 34.5},
		{2, 0.1, 0.1, 2.1},
		{2, 0.1, 0.25, 6.3},
		{1.25, 0.05, 0.25, 8},
		{1.25, 0.025, 0.5, 49},
		{1, 0.25, 0.1, 0.3},
		{1, 1, 0.5, 0},
	} {
		s, r := sent(t, marked)
		d := decide(s, r, question{Now: begin, Tokens: 100_000, Write: tt.write, Read: tt.read, Policy: epoch.Policy{Share: tt.share, Turns: 1000, Risk: -1}})
		if math.Abs(d.Turns-tt.want) > 0.06 || d.Reason != epoch.Payback {
			t.Errorf("write %g, read %g, share %g: got %q after %.2f turns, want %.1f", tt.write, tt.read, tt.share, d.Reason, d.Turns, tt.want)
		}
	}
}

// For money nothing has to go: an epoch that leaves a few thousand tokens of a conversation loses the work that is
// under way.
func TestAnEpochForMoneyLeavesTheConversation(t *testing.T) {
	s, r := sent(t, marked)
	s.Spent = 1e9
	for _, window := range []int{0, 64_000, 128_000, 200_000, 1_000_000} {
		for _, fixed := range []int{0, 20_000, 50_000} {
			for talk := 5_000; talk <= 300_000; talk += 5_000 {
				for _, read := range []float64{0.025, 0.05, 0.1, 0.25} {
					for _, q := range []question{
						{Now: begin.Add(time.Hour), Policy: epoch.Policy{MinSize: 1}}, // cold
						{Now: begin.Add(time.Minute), Policy: epoch.Policy{Turns: 1000}},
					} {
						q.Tokens, q.Fixed, q.Window, q.Write, q.Read, q.MinGain = fixed+talk, fixed, window, 1.25, read, 100_000/float64(talk)
						d := decide(s, r, q)
						if d.Reason == epoch.None {
							continue
						}
						least := 20_000
						if window >= 200_000 {
							least = max(least, talk/2)
						}
						if left := d.Target - fixed; left < least || d.After < d.Target {
							t.Fatalf("window %d, %d fixed, conversation of %d, read %g: %s leaves %d of it, want %d", window, fixed, talk, read, d.Reason, left, least)
						}
					}
				}
			}
		}
	}
}

// A large system prompt is no reason to cut the conversation, neither sooner nor deeper.
func TestTheSystemPromptIsNoReason(t *testing.T) {
	after := func(fixed, talk int) epoch.Decision {
		s, r := sent(t, marked)
		rates := lineage.Rates{Write: 1.25, Read: 0.1, Answer: 5}
		s.HeadOur = fixed
		s.Paid(lineage.Usage{Input: fixed + talk/2, Write: fixed + talk/2}, 500, rates)
		for range 20 {
			s.Paid(lineage.Usage{Input: fixed + talk, Read: fixed + talk/2, Write: talk - talk/2}, 500, rates)
		}
		return decide(s, r, question{
			Now: begin.Add(time.Minute), Tokens: fixed + talk, Fixed: fixed, Write: 1.25, Read: 0.1,
			Policy: epoch.Policy{Window: 1_000_000, Limit: 900_000, Turns: 50, MinGain: 100_000 / float64(talk)},
		})
	}
	for talk := 10_000; talk <= 120_000; talk += 10_000 {
		want := after(0, talk)
		for _, fixed := range []int{1, 20_000, 35_000, 50_000} {
			got := after(fixed, talk)
			if got.Reason != want.Reason || got.Target-fixed != want.Target || got.Turns != want.Turns {
				t.Errorf("conversation of %d, with a system prompt of %d: %+v, without one %+v", talk, fixed, got, want)
			}
		}
		if talk < 60_000 && want.Reason != epoch.None {
			t.Errorf("a conversation of %d tokens is cut for money: %+v", talk, want)
		}
	}
	if got := after(0, 120_000); got.Reason != epoch.Payback {
		t.Errorf("a long conversation: %+v, want %s", got, epoch.Payback)
	}
}

func TestWrongPredictionsCount(t *testing.T) {
	s := frozen(t, 7, true)
	s.Epoch.Before, s.Epoch.After = 100_000, 30_000
	good := *s
	good.Measured(28_000, lineage.Usage{Input: 33_000, Write: 33_000})
	good.TTL, good.Gap = 5*time.Minute, time.Minute
	good.Measured(29_000, lineage.Usage{Input: 34_000, Read: 33_000, Write: 1_000})
	if good.Wrong != 0 || len(good.Epoch.Usage) != 2 || good.Epoch.After != 33_000 {
		t.Errorf("good: got wrong %d, %+v", good.Wrong, good.Epoch)
	}
	large := *s
	large.Measured(28_000, lineage.Usage{Input: 40_000})
	if large.Wrong != 1 {
		t.Error("a third more than was predicted must count as wrong")
	}
	cold := *s
	cold.Measured(28_000, lineage.Usage{Input: 30_000, Write: 30_000})
	cold.TTL, cold.Gap = 5*time.Minute, time.Minute
	cold.Measured(29_000, lineage.Usage{Input: 31_000, Read: 5_000, Write: 26_000})
	if cold.Wrong != 1 {
		t.Error("a request that does not find the one before in the cache must count as wrong")
	}
}

func TestEstimateFollowsTheVendor(t *testing.T) {
	var s lineage.State
	if got := s.Estimate(1000); got != 1000 {
		t.Errorf("nothing known: got %d, want our count", got)
	}
	for i := range 4 {
		s.Measured(10_000+1000*i, lineage.Usage{Input: 13_000 + 1300*i})
	}
	if got := s.Estimate(14_000); got != 18_200 {
		t.Errorf("got %d, want 18200: what the vendor counted last, and 1000 more of ours at 1.3", got)
	}
	if got := s.Estimate(3_000); got != 3_900 {
		t.Errorf("after an epoch: got %d, want 3900", got)
	}
	for _, odd := range []int{100_000, 3, 0, -1, 40_000} {
		o := s
		o.Measured(14_000, lineage.Usage{Input: odd})
		if got := o.Estimate(15_000); got < 19_000 || got > 20_000 {
			t.Errorf("after one odd answer of %d: got %d, want about 19500", odd, got)
		}
	}
}

func TestCountAsksOnceForEachMessage(t *testing.T) {
	s := frozen(t, 5, true)
	asked := 0
	count := func(raw []byte) int { asked++; return len(raw) }
	r, rolling := parse(t, conversation(11), marked)
	first := s.Count(r, rolling, count)
	if asked != 1+1+6 { // system prompt, block, kept messages
		t.Errorf("asked %d times, want 8", asked)
	}
	s.Sent(r, rolling, begin)
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var restarted lineage.State
	if err := json.Unmarshal(data, &restarted); err != nil {
		t.Fatal(err)
	}
	asked = 0
	if got := restarted.Count(r, rolling, count); got != first || asked != 0 {
		t.Errorf("after a restart: got %d and asked %d times, want %d, 0", got, asked, first)
	}
	r, rolling = parse(t, conversation(13), marked)
	if restarted.Count(r, rolling, count); asked != 2 {
		t.Errorf("two messages more: asked %d times", asked)
	}
}

func TestL1UntouchedIsUntouched(t *testing.T) {
	r, rolling := parse(t, conversation(9), marked)
	s, _ := lineage.Follow(nil, r, rolling)
	s.Adapt(r, rolling, true)
	s.Sent(r, rolling, begin)
	if got := r.With(s.View(r, rolling)); &got[0] != &r.Body[0] {
		t.Error("a request that needs nothing must be the client's own bytes")
	}
}

func TestResultsAreShortenedBeforeTheyAreSent(t *testing.T) {
	s := &lineage.State{}
	asked := []int{}
	shorten := func(r *wire.Request, rolling []wire.Hash) {
		asked = nil
		s.Shorten(r, rolling, func(i int) []byte {
			asked = append(asked, i)
			return []byte(strings.ReplaceAll(string(r.Messages[i].Raw), "output", "o"))
		})
		s.Sent(r, rolling, begin)
	}
	r, rolling := parse(t, conversation(5)) // begins in the middle: 0 to 3 were sent by someone
	shorten(r, rolling)
	if len(asked) != 1 || asked[0] != 4 {
		t.Errorf("got %v, want the message after the model's last one", asked)
	}
	if shorten(r, rolling); len(asked) != 0 {
		t.Errorf("a retry: got %v, want none", asked)
	}
	r, rolling = parse(t, conversation(9))
	if shorten(r, rolling); len(asked) != 1 || asked[0] != 8 {
		t.Errorf("got %v, want the newest message alone: who sent 6 is not known", asked)
	}
	view := texts(s.View(r, rolling))
	if strings.Count(view, `"o 4"`) != 1 || strings.Count(view, `"o 8"`) != 1 || !strings.Contains(view, `"output 6"`) {
		t.Errorf("got %s", view)
	}
}

// A rewind into the kept messages finds the epoch, one to before them the epoch before, and so on.
func TestRewindToAnEarlierEpoch(t *testing.T) {
	first := frozen(t, 5, true)
	first.ID = "first"
	grown := first
	var r *wire.Request
	var rolling []wire.Hash
	for _, n := range []int{11, 13, 15} {
		var kind lineage.Kind
		r, rolling = parse(t, conversation(n))
		if grown, kind = lineage.Follow([]*lineage.State{grown}, r, rolling); kind != lineage.Continue {
			t.Fatalf("%d messages: got kind %v", n, kind)
		}
		grown.Sent(r, rolling, begin)
	}
	after, _ := parse(t, append([]string{`{"role":"user","content":"Second summary."}`}, conversation(15)[11:]...))
	second, err := grown.Freeze(r, rolling, lineage.Condensed{After: after.Messages}, begin)
	if err != nil {
		t.Fatal(err)
	}
	second.ID = "second"
	second.Sent(r, rolling, begin.Add(time.Minute))
	if second.Epoch.N != 2 || second.Epoch.Cut != 11 || len(second.Epoch.Block) != 1 {
		t.Errorf("got %+v", second.Epoch)
	}
	states := []*lineage.State{second, grown}
	for n, want := range map[int]string{15: "Second", 13: "Second", 11: `"Summary`, 7: `"Summary`} {
		r, rolling := parse(t, conversation(n))
		s, _ := lineage.Follow(states, r, rolling)
		if got := string(s.View(r, rolling)[0]); !strings.Contains(got, want) {
			t.Errorf("%d messages: got %s, want %s", n, got, want)
		}
	}
}

func TestFreezeRefuses(t *testing.T) {
	r, rolling := parse(t, conversation(9), `"thinking":{"type":"enabled"}`)
	freeze := func(s *lineage.State, change func(c *lineage.Condensed), messages ...string) error {
		after, _ := parse(t, messages)
		c := lineage.Condensed{After: after.Messages}
		if change != nil {
			change(&c)
		}
		_, err := s.Freeze(r, rolling, c, begin)
		return err
	}
	summary := `{"role":"user","content":"Summary."}`
	bare := strings.ReplaceAll(conversation(9)[7], `{"type":"thinking","thinking":"","signature":"s7"},`, "")
	bound := &lineage.State{Bound: true}
	tests := []struct {
		name string
		err  error
		want error
	}{
		{"nothing is changed", freeze(&lineage.State{}, nil, conversation(9)...), lineage.ErrNothing},
		{"a result without its call", freeze(&lineage.State{}, nil, append([]string{summary}, conversation(9)[6:]...)...), lineage.ErrParted},
		{"the turn loses its thinking", freeze(&lineage.State{}, nil, summary, bare, conversation(9)[8]), lineage.ErrRound},
		{"the turn keeps its thinking", freeze(&lineage.State{}, nil, append([]string{summary}, conversation(9)[7:]...)...), nil},
		{"a bound model inside a turn", freeze(bound, nil, append([]string{summary}, conversation(9)[7:]...)...), lineage.ErrRound},
		{"unless it has to be", freeze(bound, func(c *lineage.Condensed) { c.Forced = true }, append([]string{summary}, conversation(9)[7:]...)...), nil},
		{"prepared for other messages", freeze(&lineage.State{}, func(c *lineage.Condensed) {
			_, other := parse(t, []string{`{"role":"user","content":"Other."}`})
			c.Basis = (&lineage.State{}).Basis(other)
		}, append([]string{summary}, conversation(9)[7:]...)...), lineage.ErrStale},
	}
	for _, tt := range tests {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, tt.err, tt.want)
		}
	}
}

// TestFreezeDividesTurns: an old answer that stays without the person's words after it is no part of the turn after it, which
// has to begin with thinking as long as it is open, and again when the client goes back to it.
func TestFreezeDividesTurns(t *testing.T) {
	history := conversation(9)
	old := `{"role":"assistant","content":[{"type":"text","text":"Done."}]}`
	open := append([]string{history[0], old, history[0]}, history[1:]...)
	text := append(slices.Clone(open), history[0])
	shorter := strings.ReplaceAll(history[8], "output", "…")
	for name, tt := range map[string]struct {
		messages []string // when the epoch begins
		kept     []string
		forced   bool
		then     []string // the next request
	}{
		"the turn is open":                {open, history[7:], true, open},
		"the client goes back to it":      {text, append(slices.Clone(history[7:]), history[0]), false, open},
		"a text follows its last results": {text, []string{history[7], shorter, history[0]}, false, text},
	} {
		r, rolling := parse(t, tt.messages, `"thinking":{"type":"enabled"}`)
		after, _ := parse(t, append([]string{`{"role":"user","content":"Summary."}`, old}, tt.kept...))
		s, err := (&lineage.State{}).Freeze(r, rolling, lineage.Condensed{After: after.Messages, Forced: tt.forced}, begin)
		if err != nil {
			t.Fatal(name, err)
		}
		r, rolling = parse(t, tt.then, `"thinking":{"type":"enabled"}`)
		view := s.View(r, rolling)
		if len(view) < 5 || !strings.Contains(string(view[2]), `"role":"user"`) || string(view[3]) != history[7] {
			t.Errorf("%s: %q", name, view)
		}
		if err := (*wire.Cache)(nil).Check(wire.Messages, r, view); err != nil {
			t.Error(name, err)
		}
	}
}

// Agents that ask a side question in every turn must not fill the store.
func TestBranchesOfAnEpochAreRecycled(t *testing.T) {
	states := []*lineage.State{frozen(t, 5, true)}
	states[0].ID = "0"
	for i := range 40 {
		m := conversation(9)
		m[8] = strings.ReplaceAll(m[8], "output", fmt.Sprint("output of branch ", i))
		r, rolling := parse(t, m)
		s, kind := lineage.Follow(states, r, rolling)
		if kind != lineage.Fork || s.ID != "" {
			t.Fatalf("got kind %v, ID %q", kind, s.ID)
		}
		s.Sent(r, rolling, begin.Add(time.Duration(i)*time.Minute))
		if s.Recycle(states); s.ID == "" {
			s.ID = fmt.Sprint("branch ", i)
			states = append(states, s)
			continue
		}
		for k := range states {
			if states[k].ID == s.ID {
				states[k] = s
			}
		}
	}
	if len(states) > 6 {
		t.Errorf("%d records for 41 branches of one epoch", len(states))
	}
}

// What a conversation has cost, and what its epochs have saved, in prices of a token of input.
func TestPaid(t *testing.T) {
	rates := lineage.Rates{Write: 1.25, Read: 0.1, Answer: 5}
	var s lineage.State
	s.Paid(lineage.Usage{Input: 10_000, Write: 10_000}, 100, rates)
	s.Paid(lineage.Usage{Input: 12_000, Read: 10_000, Write: 1500}, 100, rates)
	if want := 12_500 + 500 + 1000 + 1875 + 500 + 500.0; s.Spent != want || s.Saved != 0 {
		t.Errorf("spent %v, want %v; saved %v", s.Spent, want, s.Saved)
	}
	s.Epoch = &lineage.Epoch{Reason: epoch.Payback, Before: 12_000, After: 4000}
	s.Paid(lineage.Usage{Input: 4000, Write: 4000}, 0, rates)
	if want := 1200 - 5000.0; s.Saved != want {
		t.Errorf("the first request of an epoch saved %v, want %v", s.Saved, want)
	}
	s.Epoch.Usage = []lineage.Usage{{Input: 4000}}
	s.Paid(lineage.Usage{Input: 4500, Read: 4000}, 0, rates)
	if want := 1200 - 5000 + 800.0; s.Saved != want {
		t.Errorf("with the next request, %v, want %v", s.Saved, want)
	}
	// A cold cache would have been written again, at once more than the epoch writes.
	cold := lineage.State{Epoch: &lineage.Epoch{Reason: epoch.Cold, Before: 12_000, After: 4000}}
	cold.Paid(lineage.Usage{Input: 4000, Write: 4000}, 0, rates)
	if want := 15_000 - 5000.0; cold.Saved != want {
		t.Errorf("after a pause, %v, want %v", cold.Saved, want)
	}
	// Of an old conversation, the requests before the first that is seen are estimated.
	old := lineage.State{Turns: 41}
	old.Paid(lineage.Usage{Input: 50_000, Write: 50_000}, 0, rates)
	if want := 0.1*50_000*40/2 + 62_500; old.Spent != want {
		t.Errorf("an old conversation: %v, want %v", old.Spent, want)
	}
	s.Paid(lineage.Usage{}, 100, rates)
}
