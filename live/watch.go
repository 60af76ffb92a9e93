package live

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/condensehq/condense/internal/live/wire"
)

// A Watcher sees conversations as they go on: for pages that show them, and to measure later what was worth keeping. Its methods are called
// while requests wait, so they must return soon, and by several goroutines. They must not change what they are given. They may keep the
// messages, which are slices of the bodies of requests, but a large body then stays in memory.
type Watcher interface { //nolint:interfacebloat // all that a conversation has
	// Turn is called before a turn of a conversation is sent. With an epoch it is sent condensed for the first time.
	Turn(*Turn)
	// Shadow is called with what the chain of another profile would have sent at an epoch; see [Options.Shadow]. Err says why there is nothing.
	Shadow(conversation string, epoch time.Time, profile string, view [][]byte, err error)
	// Answer is called when the vendor has reported what a turn cost.
	Answer(conversation string, u *Used)
	// Recall is called when an agent has got back what was condensed, as a number of tokens, while it had the view of the epoch that began at
	// that time; zero before the first.
	Recall(conversation string, epoch time.Time, tokens int)
}

// A Turn is a request with a conversation.
type Turn struct {
	Time         time.Time
	Conversation string // the same for all of its turns
	Tenant       string // NAME:HASH with [Options.Tokens], else HASH: a keyed hash of the credentials
	Agent        string
	Model        string
	Profile      string   // empty for the default
	Mode         string   // empty for none
	Format       string   // of the messages, as in package transcript
	Messages     [][]byte // of the client, without marks for the vendor's cache
	System       []byte   // JSON, like Tools; nil if the request has none, or has it as a message
	Tools        []byte
	Tokens       int // what is sent, by the vendor's count as estimated, like History
	History      int // of the client
	Window       int // of the model, in tokens
	DueAt        int // the tokens at which the conversation is condensed at the latest; 0 if nothing is changed
	Observe      bool
	// Of an epoch; else nil. View is what is sent in place of Messages, Journal the condensed conversation in the format condense; that begins
	// with what the epoch before it left, if there was one.
	Epoch   *Epoch
	View    [][]byte
	Journal []byte
}

// Used is what the vendor reported of a turn, in tokens and US dollars.
type Used struct {
	Time                       time.Time // of the turn
	Epoch                      time.Time // when the epoch began whose view was sent; zero before the first
	Input, Read, Write, Output int
	Cost                       float64
	Saved                      float64 // against the client's own history; negative if the turn cost more
	Priced                     bool    // the price of the model is known
}

// watched lets the watcher see something. A fault of it costs the conversation nothing.
func (g *Gateway) watched(f func()) {
	if err := g.safely("watch", func() error { f(); return nil }); err != nil {
		g.fault("watch", err)
	}
}

// watch shows a turn to the watcher.
func (x *exchange) watch() {
	if x.s.Watch == nil || x.claim == nil || x.t.count {
		return
	}
	x.watched(x.show)
}

func (x *exchange) show() {
	t := &Turn{
		Time: x.start, Conversation: x.claim.conversation, Tenant: x.key.Tenant, Agent: x.agent.Name, Model: x.r.Model,
		Profile: x.profile, Mode: x.mode, Format: formats[x.r.API], Messages: make([][]byte, len(x.r.Messages)), System: x.r.System, Tools: x.r.Tools, Tokens: x.tokens, Observe: x.s.Observe,
	}
	t.History, t.Window = x.claim.state.Estimate(x.original), x.policy.Window
	if t.DueAt = x.policy.Limit; x.policy.Threshold > 0 {
		t.DueAt = min(cmp.Or(x.policy.Limit, x.policy.Threshold), x.policy.Threshold)
	}
	for i := range t.Messages {
		t.Messages[i] = wire.Unmark(x.r.Messages[i].Raw)
	}
	if x.epoch != nil {
		e := *x.epoch
		t.Epoch, t.View, t.Journal = &e, x.view, x.journal
		defer x.shadows(t)
	}
	x.s.Watch.Turn(t)
}

// mostShadows is how many condensations for comparison may wait; those that come when so many do are left out.
const mostShadows = 16

// errNoShadow means that a condensation for comparison was left out.
var errNoShadow = errors.New("too many epochs at the same time")

// idle is how often a condensation for comparison looks whether requests still wait for theirs.
const idle = 20 * time.Millisecond

// shadows condenses what an epoch condensed with the chains of other profiles too, one after the other, next to the requests: each begins
// when no request waits for a condensation.
func (x *exchange) shadows(t *Turn) {
	job := x.shadowed
	if job == nil {
		return
	}
	for _, profile := range x.s.Shadow {
		report := func(view [][]byte, err error) { x.s.Watch.Shadow(t.Conversation, t.Time, profile, view, err) }
		select {
		case x.waiting <- struct{}{}:
		default:
			report(nil, errNoShadow)
			continue
		}
		j := *job
		j.turn.Profile, j.turn.Mode, j.journal, j.tries = profile, "", false, nil // what is not sent is not counted
		x.background.Go(func() {
			defer func() { <-x.waiting }()
			x.shading.Lock()
			defer x.shading.Unlock()
			for x.epochs.busy() && x.life.Err() == nil {
				select {
				case <-time.After(idle):
				case <-x.life.Done():
				}
			}
			ctx, cancel := context.WithTimeout(x.life, backgroundDeadline)
			defer cancel()
			var view [][]byte
			err := x.safely("shadow", func() error {
				p, err := j.run(ctx, x.host, inline) // what is not sent is not worth a model's price
				if err == nil {
					view = rawOf(p.after)
				}
				return err
			})
			x.watched(func() { report(view, err) })
		})
	}
}
