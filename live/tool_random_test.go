package live_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// A wanderer plays random conversations on one wire through a gateway with the tool, in a process that is killed now and then. The first
// result has a line for every step, which the model recalls: so each recall has one right answer.
type wanderer struct {
	draw   *rand.Rand
	client upstream.Client
	vendor atomic.Pointer[upstream.Vendor]
	script []upstream.Step
	wanted map[string]string // what a recall must find, by the call's place in the script

	mu     sync.Mutex // the vendor draws too
	faulty atomic.Bool
	hold   chan struct{}
	kill   func()
	start  func()

	turns, recalls, exact, limited, kills, faults, rewinds, sides, games int
	breaks, read, ideal                                                  int
}

func (w *wanderer) odds(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.draw.IntN(n) == 0
}

// again kills the gateway and starts another one.
func (w *wanderer) again() {
	w.kill()
	w.kills++
	w.start()
}

// plot makes a script of n steps.
func (w *wanderer) plot(n int) {
	w.script, w.wanted = nil, map[string]string{}
	var lines []string
	for i := range n + 1 {
		lines = append(lines, fmt.Sprintf("needle-%03d-%06d is here", i, w.draw.IntN(1_000_000)))
	}
	for i := 1; i <= n; i++ {
		var s upstream.Step
		if w.draw.IntN(2) == 0 {
			s.Text = fmt.Sprintf("Step %d – “so”. ", i)
		}
		work := func() {
			for range 1 + w.draw.IntN(3)/2 {
				s.Commands = append(s.Commands, upstream.Loop(i, 300+w.draw.IntN(2200), nil)[i-1].Commands...)
			}
		}
		recall := func() {
			s.Calls = append(s.Calls, wants(map[string]any{"grep": fmt.Sprintf("needle-%03d-", i), "head": 1 + len(s.Calls)}))
			w.wanted[fmt.Sprint(i, "_", len(s.Commands)+len(s.Calls)-1)] = lines[i]
		}
		switch kind := w.draw.IntN(20); {
		case i == 1:
			s.Commands = []string{`echo "` + strings.Join(lines, `" && echo "`) + `"`}
		case i == 2 || kind < 11:
			work()
		case kind < 14:
			recall()
		case kind < 16:
			work()
			recall()
		case kind < 17:
			recall()
			recall()
		case kind < 18:
			s.Calls = []upstream.Call{wants(map[string]any{"handle": "0123456789"}), wants(map[string]any{"what": 7})}
		default:
			s.Text = "That is done. "
		}
		w.script = append(w.script, s)
	}
}

// fault is what the vendor does to an answer: mostly nothing.
func (w *wanderer) fault(r upstream.Record) *upstream.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.N < 3 || w.draw.IntN(25) > 0 {
		return nil
	}
	w.faulty.Store(true)
	switch w.draw.IntN(4) {
	case 0:
		return &upstream.Fault{Status: []int{429, 500, 529}[w.draw.IntN(3)]}
	case 1:
		return &upstream.Fault{At: w.draw.IntN(400), Error: true}
	case 2:
		return &upstream.Fault{At: w.draw.IntN(400), Reset: true}
	}
	hold := w.hold
	if hold == nil {
		return nil
	}
	w.hold = nil
	go func() { // the gateway is killed while it waits for this answer
		w.kill()
		close(hold)
	}()
	return &upstream.Fault{Hold: hold}
}

// step sends a request until it is answered.
func (w *wanderer) step(t *testing.T, c *upstream.Client) (calls bool) {
	t.Helper()
	for range 50 {
		w.faulty.Store(false)
		hold := make(chan struct{})
		w.mu.Lock()
		w.hold = hold
		w.mu.Unlock()
		before := len(c.History)
		_, calls, err := c.Step(t.Context())
		w.mu.Lock()
		killed := w.hold == nil
		w.hold = nil
		w.mu.Unlock()
		if killed {
			<-hold
			_ = c.Disconnect()
			w.again()
			c.URL = w.client.URL
		}
		if err == nil {
			return calls
		}
		if !w.faulty.Load() {
			t.Fatalf("turn %d: %v", w.turns, err)
		}
		w.faults++
		c.History = c.History[:before]
	}
	t.Fatal("there is no answer")
	return false
}

// ask sends the history with a question that is no part of it, in a form in which the model must not call tools.
func (w *wanderer) ask(t *testing.T) {
	t.Helper()
	side := w.client
	side.History, side.Socket = append(slices.Clone(side.History), first(side.API, "What is the state?")), false
	switch side.API {
	case upstream.Converse:
		return
	case upstream.Gemini:
		side.More = object{"toolConfig": object{"functionCallingConfig": object{"mode": "NONE"}}}
	case upstream.Messages:
		side.More = object{"tool_choice": object{"type": "none"}}
	case upstream.Chat, upstream.Responses:
		side.More = object{"tool_choice": "none"}
	}
	w.step(t, &side)
	w.sides++
}

// play plays one conversation.
func (w *wanderer) play(t *testing.T) {
	t.Helper()
	w.plot(20 + w.draw.IntN(40))
	v := upstream.New(upstream.Options{Window: window, Script: w.script, Fault: w.fault})
	w.vendor.Store(v)
	w.games++
	c := &w.client
	_ = c.Disconnect()
	w.again() // this vendor's responses have the names of the last one's
	c.Session, c.History = fmt.Sprint("game-", w.games), []object{first(c.API, "Do it.")}
	var typed []int // where the user spoke
	for played, last := 0, 0; last < len(w.script) && played < 100; played++ {
		if !c.Socket {
			c.Stream = w.odds(2)
		}
		calls := w.step(t, c)
		w.turns++
		for _, n := range v.Played() {
			last = n
		}
		if calls {
			continue
		}
		if w.odds(3) {
			w.ask(t)
		}
		if len(typed) > 0 && w.odds(3) {
			w.rewinds++
			_ = c.Disconnect()
			c.History = slices.Clone(c.History[:typed[w.draw.IntN(len(typed))]])
		}
		typed = slices.DeleteFunc(typed, func(n int) bool { return n > len(c.History) })
		if !slices.Contains(typed, len(c.History)) {
			typed = append(typed, len(c.History))
		}
		c.History = append(c.History, first(c.API, fmt.Sprintf("Go on, %d.", played)))
		if w.odds(4) {
			_ = c.Disconnect()
			w.again()
		}
	}
	w.judge(t, v)
}

// judge looks at what reached the vendor in a conversation.
func (w *wanderer) judge(t *testing.T, v *upstream.Vendor) {
	t.Helper()
	p := &play{vendor: v, client: &w.client}
	p.unseen(t)
	for _, r := range v.Refusals() {
		if r.Rule != "fault" {
			t.Errorf("game %d, request %d: %s: %s", w.games, r.N, r.Rule, r.Error)
		}
	}
	read, ideal := v.Cached()
	w.read, w.ideal, w.breaks = w.read+read, w.ideal+ideal, w.breaks+len(v.Breaks())
	p.answers(t, func(id, text string) bool {
		parts := strings.Split(id, "_")
		want, ok := w.wanted[strings.Join(parts[max(0, len(parts)-2):], "_")]
		switch {
		case !ok:
			return true
		case strings.Contains(text, ":"+want):
			w.exact++
		case strings.HasPrefix(text, "[condense recall: the limit") || strings.HasPrefix(text, "[condense recall: this does not fit"):
			w.limited++
		default:
			t.Errorf("game %d: the recall %s found %.300q, want %q", w.games, id, text, want)
		}
		w.recalls++
		return true
	})
}

// TestRecallToolRandom plays random conversations on every wire, with kills of the gateway, faults of the vendor, rewinds and questions
// beside: nothing is refused that is not the vendor's fault, every recall finds its line, and no client sees the tool. At night there are
// 20,000 turns.
func TestRecallToolRandom(t *testing.T) {
	testkit.Process(t)
	t.Parallel()
	bedrock := upstream.Client{API: upstream.Messages, Cloud: upstream.Bedrock, Model: "us.anthropic.claude-opus-5-5-v1:0", Thinking: "adaptive"}
	converse := bedrock
	converse.API = upstream.Converse
	wires := append(
		everyAPI(), bedrock, converse,
		upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", Thinking: "enabled"},
		upstream.Client{API: upstream.Messages, Cloud: upstream.Vertex, Model: "claude-opus-5-5"},
		upstream.Client{API: upstream.Responses, Model: "gpt-5.6", Thinking: "medium", Stream: true, Socket: true},
	)
	turns := 60
	if testkit.Night() {
		turns = 20_000/len(wires) + 1
	}
	for i, c := range wires {
		t.Run(fmt.Sprint(c.API, c.Cloud, "/", c.Model, "/socket=", c.Socket), func(t *testing.T) {
			t.Parallel()
			w := &wanderer{draw: rand.New(rand.NewPCG(41, uint64(i))), client: c}
			w.client.HTTP = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { w.vendor.Load().ServeHTTP(out, r) }))
			t.Cleanup(s.Close)
			store := filepath.Join(t.TempDir(), "live.db")
			w.start = func() { w.client.URL, w.kill = startAlone(t, s.URL, store, "CONDENSE_LIVE_TOOL=1") }
			w.start()
			defer func() { w.kill() }()
			for w.turns < turns && !t.Failed() {
				w.play(t)
			}
			_ = w.client.Disconnect()
			t.Logf("%d turns in %d conversations: %d recalls, %d exact, %d at a limit; %d kills, %d faults, %d rewinds, %d questions; %d breaks, cache %d of %d",
				w.turns, w.games, w.recalls, w.exact, w.limited, w.kills, w.faults, w.rewinds, w.sides, w.breaks, w.read, w.ideal)
			if !t.Failed() && (w.exact == 0 || w.kills == 0 || w.breaks == 0 || float64(w.read) < 0.9*float64(w.ideal)) {
				t.Error("there was too little of something")
			}
		})
	}
}
