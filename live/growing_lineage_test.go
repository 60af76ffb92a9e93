package live_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
)

// A lineageGateway does with lineages what the real one does, with a store of JSON.
type lineageGateway struct {
	t       *rapid.T
	v       *growingVendor
	now     time.Time
	records map[string][]byte
	order   []string // latest first
	memory  map[string]*lineage.State
	epoch   int // a random number if the next request is to be condensed, -1 otherwise
	ingest  int // changes what is shortened
	ready   *lineagePrepared
	counts  map[lineage.Kind]int
}

// A lineagePrepared is a condensation that was made next to a request, for a later one.
type lineagePrepared struct {
	basis *lineage.Basis
	after []wire.Message
}

func (g *lineageGateway) states() []*lineage.State {
	var states []*lineage.State
	for _, id := range g.order {
		s := g.memory[id]
		if s == nil {
			s = &lineage.State{}
			if err := json.Unmarshal(g.records[id], s); err != nil {
				g.t.Fatal(err)
			}
			s.ID = id
			g.memory[id] = s
		}
		states = append(states, s)
	}
	return states
}

func (g *lineageGateway) save(s *lineage.State) {
	if s.ID == "" {
		s.Recycle(g.states())
	}
	if s.ID == "" {
		s.ID = fmt.Sprintf("r%d", len(g.records))
	}
	data, err := json.Marshal(s)
	if err != nil {
		g.t.Fatal(err)
	}
	g.records[s.ID], g.memory[s.ID] = data, s
	g.order = append([]string{s.ID}, slices.DeleteFunc(g.order, func(id string) bool { return id == s.ID })...)
}

func (g *lineageGateway) send(call growingCall) (growingAnswer, bool) {
	r, err := wire.Parse(wire.Messages, call.Body, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	g.now = g.now.Add(time.Minute)
	rolling := lineage.Roll(r.Messages)
	s, kind := lineage.Follow(g.states(), r, rolling)
	s.Adapt(r, rolling, r.Model == boundModel)
	g.counts[kind]++
	g.ingest++
	s.Shorten(r, rolling, func(i int) []byte {
		if raw := string(r.Messages[i].Raw); (g.ingest+i)%3 == 0 && strings.Contains(raw, " x x") {
			return []byte(strings.ReplaceAll(raw, " x", ""))
		}
		return nil
	})
	fresh := false
	if g.epoch >= 0 {
		view := s.View(r, rolling)
		after := g.condense(r, view, g.epoch/4)
		if g.epoch%4 == 0 { // prepared for later
			g.ready = &lineagePrepared{s.Basis(rolling), after}
		} else {
			fresh = g.freeze(&s, r, rolling, nil, after)
		}
		g.epoch = -1
	} else if p := g.ready; p != nil && g.freeze(&s, r, rolling, p.basis, p.after) {
		g.ready, fresh = nil, true
	}
	view := s.View(r, rolling)
	our := s.Count(r, rolling, func(raw []byte) int { return len(raw) })
	if want := lineageTotal(r, view); our != want {
		g.t.Fatalf("got a count of %d, want %d", our, want)
	}
	s.Sent(r, rolling, g.now)
	g.save(s)
	a, err := g.v.Answer(r.With(view))
	if err == nil {
		s.Measured(our, lineage.Usage{Input: our})
	}
	return a, fresh
}

func lineageTotal(r *wire.Request, view [][]byte) int {
	n := len(r.System) + len(r.Tools)
	for _, v := range view {
		n += len(wire.Unmark(v))
	}
	return n
}

func (g *lineageGateway) freeze(s **lineage.State, r *wire.Request, rolling []wire.Hash, basis *lineage.Basis, after []wire.Message) bool {
	n, err := (*s).Freeze(r, rolling, lineage.Condensed{Basis: basis, After: after}, g.now)
	if err != nil {
		return false
	}
	*s = n
	return true
}

var lineageToken = regexp.MustCompile(`\b(?:tok|ans|call)\d+`)

// condense replaces messages by one that names what was in them, as a strategy does, and rewrites one of the rest.
func (g *lineageGateway) condense(r *wire.Request, view [][]byte, n int) []wire.Message {
	before := g.parse(r, view)
	first := n % 2 // keeps the first message
	cut := first + n/2%(len(before)-first)
	for cut < len(before) && (len(before[cut].Results) > 0 || before[cut].Role != "user" && n%3 == 0) {
		cut++
	}
	if cut >= len(before) {
		cut = first
	}
	var removed []string
	for _, m := range before[first:cut] {
		removed = append(removed, lineageToken.FindAllString(string(m.Raw), -1)...)
	}
	after := slices.Clone(view[:first])
	if cut > first {
		after = append(after, []byte(`{"role":"user","content":"Summary of `+strings.Join(removed, " ")+`"}`))
	}
	for i, m := range view[cut:] {
		if i == n/7%9 && len(before[cut+i].Calls) == 0 {
			m = []byte(strings.ReplaceAll(string(m), "Result ", "R "))
		}
		after = append(after, m)
	}
	return g.parse(r, after)
}

func (g *lineageGateway) parse(r *wire.Request, view [][]byte) []wire.Message {
	p, err := wire.Parse(wire.Messages, r.With(view), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return p.Messages
}

// TestL2L3L6Lineages plays clients whose conversations grow, go back, divide, share a session, are shortened by the
// agent itself and go past the gateway, against a gateway that condenses at any time and restarts, and a vendor that
// refuses what the real one refuses. See growingVendor for what must never happen (L2, L3, L6). A case takes a few milliseconds and the
// rare ones need thousands, so there are more than of other tests, which do not run at the same time. For a hundred thousand:
// go test ./live -run Lineages -rapid.checks=100000 -timeout 1h.
func TestL2L3L6Lineages(t *testing.T) {
	given, checks := false, flag.Lookup("rapid.checks").Value
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		others, own := checks.String(), "600"
		if testing.Short() {
			own = "200"
		}
		if err := checks.Set(own); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := checks.Set(others); err != nil {
				t.Error(err)
			}
		}()
	}
	seen, requests, epochs, replaced := map[lineage.Kind]int{}, 0, 0, 0
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		v := &growingVendor{}
		g := &lineageGateway{t: t, v: v, now: begin, records: map[string][]byte{}, memory: map[string]*lineage.State{}, epoch: -1, counts: map[lineage.Kind]int{}}
		runGrowing(t, v, growingWorld{
			Send:    g.send,
			Restart: func() { g.memory = map[string]*lineage.State{} },
			Epoch:   func(n int) { g.epoch = n },
		}, 25)
		requests, epochs, replaced = requests+v.Requests, epochs+v.Epochs, replaced+v.Replaced
		for k, n := range g.counts {
			seen[k] += n
		}
	})
	t.Logf("%d requests, %d of them shortened, %d epochs; kinds %v", requests, replaced, epochs, seen)
	for k := lineage.New; k <= lineage.Compacted; k++ {
		if !t.Failed() && !testing.Short() && seen[k] == 0 {
			t.Errorf("no request of kind %v: the runs test too little", k)
		}
	}
}
