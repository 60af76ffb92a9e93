package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/transcript"
)

// formats are the names of the APIs in package transcript.
var formats = map[wire.API]string{wire.Messages: "anthropic", wire.Chat: "openai", wire.Responses: "responses"}

// document reads messages.
func document(api wire.API, messages [][]byte) (*transcript.Document, error) {
	return transcript.Read(bytes.NewReader(rawjson.Array(messages)), &transcript.ReadOptions{Format: formats[api]})
}

// rawOf returns messages as they were in the request.
func rawOf(messages []wire.Message) [][]byte {
	raw := make([][]byte, len(messages))
	for i := range messages {
		raw[i] = messages[i].Raw
	}
	return raw
}

// errNotDue means that the policy of the profile saw no reason, or no gain.
var errNotDue = errors.New("not due")

// A job is a condensation that can run next to the request.
type job struct {
	api      wire.API
	volatile []wire.Volatile
	body     []byte // of the request, with the view that is to be condensed
	turn     condense.Turn
	tokens   int // of the body, by the vendor's count
	target   int // tokens, by the vendor's count
	basis    *lineage.Basis
	block    int // messages at the front that the last epoch left
	pins     pins
	journal  bool                   // is wanted
	forced   bool                   // the vendor would refuse the body
	tries    func(*condense.Report) // counts what the providers did; nil: nothing
	named    bool                   // it has, and a provider failed: that is no other fault
	instead  string                 // why the chain of the profile came to nothing, for the one that takes its place
	client   *client                // whose model may be asked; nil for none
	order    int                    // number of that which asks for it; 0 for none
	asker    string                 // the provider of that chain that would have asked a language model
}

// Pins are the IDs of messages of a view that stay as they are because the caller says so; with all, those too that need not if there is no other way.
// Nil for none.
type pins func(view []core.Message, all bool) []string

func (x *exchange) job(d epoch.Decision, overflow bool) *job {
	j := &job{
		api: x.r.API, volatile: x.volatile, body: x.r.With(x.view), tokens: x.tokens, target: d.Target,
		turn:  condense.Turn{Profile: x.profile, Mode: x.mode, Window: x.policy.Window, MaxOutput: x.output, NoRecall: !x.recalls, API: x.holds()},
		basis: x.claim.state.Basis(x.rolling), pins: x.protected(), journal: x.s.Watch != nil, tries: x.tries(),
	}
	if e := x.claim.state.Epoch; e != nil {
		j.block = len(x.view) - (len(x.r.Messages) - min(e.Cut, len(x.r.Messages)))
	}
	if j.turn.Trigger = d.Reason.Trigger(); overflow || x.claim.overflowed() {
		j.turn.Trigger = core.TriggerOverflow
	} else {
		j.forced = d.Reason == epoch.Forced
	}
	if j.target == 0 { // it was asked for
		j.target = epoch.Target(x.facts(false), x.policy)
	}
	return j
}

// errAsks means that the chain would ask a language model, which takes too long for a request to wait.
var errAsks = errors.New("the chain asks a language model")

// How far a condensation goes.
type extent int

const (
	whole  extent = iota // to the end
	inline               // not if it would ask a language model: [errAsks]
	probe                // only to find that out
)

// run condenses the body as condense run does.
func (j *job) run(ctx context.Context, host *condense.Host, to extent) (*prepared, error) {
	r, err := wire.Parse(j.api, j.body, &wire.Options{Volatile: j.volatile})
	if err != nil {
		return nil, err
	}
	// What the model has not answered yet stays as it is: a result that is cut before the agent has
	// read it makes it ask again. If that leaves too little room, it is condensed like the rest.
	p, err := j.attempt(ctx, host, to, min(wire.OpenRound(r.Messages), len(r.Messages)-1))
	if err == nil || errors.Is(err, errAsks) || ctx.Err() != nil {
		return p, err
	}
	return j.attempt(ctx, host, to, len(r.Messages))
}

// attempt is run with the messages from an index on unchanged.
func (j *job) attempt(ctx context.Context, host *condense.Host, to extent, keep int) (*prepared, error) {
	doc, err := transcript.Read(bytes.NewReader(j.body), &transcript.ReadOptions{Format: formats[j.api]})
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil { // a large body takes a while to read
		return nil, err
	}
	c := condense.ResumeConversation(doc.Journal)
	view := c.View()
	var kept []string
	for _, m := range view[min(keep, len(view)):] {
		kept = append(kept, m.ID)
	}
	if keep < len(view) { // else everything was tried
		for _, i := range recall.Fresh(view[:max(0, keep)], j.block, j.target/2*bytesPerToken) {
			kept = append(kept, view[i].ID)
		}
	}
	if j.pins != nil {
		kept = append(kept, j.pins(view, keep < len(view))...)
	}
	if err := c.Protect(true, kept...); err != nil {
		return nil, err
	}
	t := j.turn
	t.System, t.Tools = doc.System, doc.Tools
	d, err := host.Check(c, t)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	if d.Used > 0 && j.tokens > 0 { // in the host's tokens
		ratio := min(max(float64(d.Used)/float64(j.tokens), leastRatio), mostRatio)
		t.Window, t.MaxOutput, t.Target = int(ratio*float64(t.Window)), int(math.Ceil(ratio*float64(t.MaxOutput))), int(ratio*float64(j.target))
	}
	if j.forced { // to the host it may fit, where it counts less than the bounds allow for: the vendor's count is the one that matters
		if d, err = host.Check(c, t); err != nil {
			return nil, err
		} else if !d.Act {
			t.Trigger = core.TriggerOverflow
		}
	}
	if to != whole {
		if asks, err := host.Estimate(ctx, c, t); err != nil || len(asks) > 0 {
			j.asks(asks, err)
			return nil, errors.Join(err, errAsks)
		}
	}
	if to == probe {
		return nil, nil
	}
	report, err := host.Manage(ctx, c, t)
	j.tried(report, err)
	if err != nil {
		return nil, err
	}
	if !report.Acted {
		return nil, fmt.Errorf("%w: %s", errNotDue, report.Reason)
	}
	var out bytes.Buffer
	apart := j.api != wire.Chat // many servers speak this API, and some refuse two user messages in a row
	if _, err := doc.WriteWith(&out, &transcript.WriteOptions{Format: formats[j.api], Apart: apart}); err != nil {
		return nil, err
	}
	after, err := wire.Parse(j.api, out.Bytes(), &wire.Options{Volatile: j.volatile})
	if err != nil {
		return nil, err
	}
	p := &prepared{order: j.order, basis: j.basis, after: after.Messages, handles: !t.NoRecall, passes: passesOf(report), maker: makerOf(report)}
	if j.journal {
		var text bytes.Buffer
		if _, err := doc.Write(&text, "condense"); err != nil {
			return nil, err
		}
		p.journal = text.Bytes()
	}
	return p, nil
}

// Bounds of the ratio of the host's count to the vendor's. What is outside is no count of the same.
const leastRatio, mostRatio = 0.2, 5
