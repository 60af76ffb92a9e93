package live

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/wire"
)

// A Watcher observes conversations: to show them on pages, and to measure later which content was worth keeping. Its
// methods are called while requests wait, so they must return soon, and from several goroutines. They must not modify
// their arguments. They may keep the messages, but these are slices of request bodies, so keeping one keeps its whole
// body in memory.
type Watcher interface { //nolint:interfacebloat // the complete life of a conversation
	// Turn is called before a turn is sent. If it has an epoch, this is the first turn sent with that condensation.
	Turn(*Turn)
	// Shadow is called with the view that another profile's chain would have sent at an epoch; see [Options.Shadow].
	// err says why there is none.
	Shadow(conversation string, epoch time.Time, profile string, view [][]byte, err error)
	// Answer is called when the vendor has reported the usage of a turn.
	Answer(conversation string, u *Used)
	// Recall is called when an agent has recalled condensed content, with its size in tokens. epoch is the beginning
	// of the epoch whose view the agent had; zero before the first.
	Recall(conversation string, epoch time.Time, tokens int)
}

// A Turn is a request that continues a conversation.
type Turn struct {
	Time         time.Time
	Conversation string // ID, the same for all turns
	Tenant       string // NAME:HASH with [Options.Tokens], else HASH; the hash is a keyed hash of the credentials
	Agent        string
	Model        string
	Profile      string   // empty for the default
	Mode         string   // empty for none
	Format       string   // format of the messages, as in package transcript
	Messages     [][]byte // the client's messages, without cache markers
	System       []byte   // JSON, like Tools; nil if the request has none, or has it as a message
	Tools        []byte
	Tokens       int // size of the request as sent, estimated in the vendor's count
	History      int // size of the client's request, in the same count
	Window       int // window of the model, in tokens
	DueAt        int // size in tokens at which the conversation is condensed at the latest; 0 if nothing is changed
	Observe      bool
	// Set only when an epoch begins, else nil. View is sent in place of Messages. Journal is the condensed
	// conversation in the format condense; it begins with the result of the previous epoch, if any.
	Epoch   *stats.Epoch
	View    [][]byte
	Journal []byte
}

// Used is the vendor's report about a turn, in tokens and US dollars.
type Used struct {
	Time                       time.Time // of the turn
	Epoch                      time.Time // beginning of the epoch whose view was sent; zero before the first
	Input, Read, Write, Output int
	Cost                       float64
	Saved                      float64 // compared to the client's own history; negative if the turn cost more
	Priced                     bool    // the price of the model is known
}

// watched calls a method of the watcher. A panic in it does not affect the conversation.
func (g *Gateway) watched(f func()) {
	if err := g.safely("watch", func() error { f(); return nil }); err != nil {
		g.fault("watch", err)
	}
}

// watch passes a turn to the watcher.
func (x *plan) watch() {
	if x.s.Watch == nil || x.claim == nil || x.t.count {
		return
	}
	x.watched(x.show)
}

func (x *plan) show() {
	t := &Turn{
		Time: x.start, Conversation: x.claim.Conversation, Tenant: x.key.Tenant, Agent: x.agent.Name, Model: x.r.Model,
		Profile: x.profile, Mode: x.mode, Format: messages.Formats[x.r.API], Messages: make([][]byte, len(x.r.Messages)), System: x.r.System, Tools: x.r.Tools, Tokens: x.tokens, Observe: x.s.Observe,
	}
	t.History, t.Window = x.claim.State.Estimate(x.original), x.policy.Window
	if t.DueAt = x.policy.Limit; x.policy.Threshold > 0 {
		t.DueAt = min(cmp.Or(x.policy.Limit, x.policy.Threshold), x.policy.Threshold)
	}
	for i := range t.Messages {
		t.Messages[i] = wire.Unmark(x.r.Messages[i].Raw)
	}
	if x.epoch != nil {
		e := *x.epoch
		t.Epoch, t.View, t.Journal = &e, x.messages, x.journal
		defer x.shadows(t)
	}
	x.s.Watch.Turn(t)
}

// compares reports whether the profiles of [Options.Shadow] condense too, for comparison.
func (s *settings) compares() bool { return s.Watch != nil && len(s.Shadow) > 0 }

// mostShadows limits the waiting condensations for comparison; further ones are skipped.
const mostShadows = 16

// errNoShadow means that a condensation for comparison was skipped.
var errNoShadow = errors.New("too many epochs at the same time")

// idle is the interval at which a condensation for comparison checks whether requests still wait for theirs.
const idle = 20 * time.Millisecond

// shadows repeats the condensation of an epoch with the chains of other profiles, in the background and one after the
// other. Each begins when no request waits for a condensation.
func (x *plan) shadows(t *Turn) {
	shadowed := x.shadowed
	if shadowed == nil {
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
		j := *shadowed
		// Do not count the attempts: a comparison is not part of the statistics.
		j.Turn.Profile, j.Turn.Mode, j.Journal, j.Tries = profile, "", false, nil
		x.background.Go(func() {
			defer func() { <-x.waiting }()
			x.shading.Lock()
			defer x.shading.Unlock()
			for x.runner.Epochs.Busy() && x.life.Err() == nil {
				select {
				case <-time.After(idle):
				case <-x.life.Done():
				}
			}
			ctx, cancel := context.WithTimeout(x.life, job.BackgroundDeadline)
			defer cancel()
			var view [][]byte
			err := x.safely("shadow", func() error {
				p, err := j.Run(ctx, x.host, job.Inline) // a comparison is not worth the price of a language model
				if err == nil {
					view = messages.Raw(p.After)
				}
				return err
			})
			x.watched(func() { report(view, err) })
		})
	}
}
