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

// formats maps APIs to their names in package transcript.
var formats = map[wire.API]string{wire.Messages: "anthropic", wire.Chat: "openai", wire.Responses: "responses", wire.Gemini: "gemini-api", wire.Generate: "ollama"}

// document reads messages.
func document(api wire.API, messages [][]byte) (*transcript.Document, error) {
	return transcript.Read(bytes.NewReader(rawjson.Array(messages)), &transcript.ReadOptions{Format: formats[api]})
}

// rawOf returns the JSON of messages as in the request.
func rawOf(messages []wire.Message) [][]byte {
	raw := make([][]byte, len(messages))
	for i := range messages {
		raw[i] = messages[i].Raw
	}
	return raw
}

// errNotDue means that the policy of the profile saw no reason to condense, or no gain.
var errNotDue = errors.New("not due")

// A job is a condensation that can run in the background, next to its request.
type job struct {
	api      wire.API
	volatile []wire.Volatile
	body     []byte // body of the request, with the view to condense
	turn     condense.Turn
	tokens   int // of body, by the vendor's count
	target   int // tokens, by the vendor's count
	basis    *lineage.Basis
	block    int // number of messages at the front that the last epoch produced
	pins     pins
	journal  bool                   // whether a journal is wanted
	forced   bool                   // the vendor would refuse body
	tries    func(*condense.Report) // counts the attempts of the providers; nil: they are not counted
	named    bool                   // a provider's failure was counted, so the fault needs no other count
	instead  string                 // why the profile's chain failed, for the chain that stands in for it
	client   *client                // may ask the client's own model; nil if that is not allowed
	order    int                    // number of the user's order; 0 for none
	asker    string                 // the provider of the profile's chain that would have asked a language model
}

// Pins returns the IDs of messages of a view that must stay unchanged because the caller says so. With all, it
// includes messages that may be condensed if there is no other way. A nil function pins nothing.
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
	if j.target == 0 { // the caller asked for a condensation without a target
		j.target = epoch.Target(x.facts(false), x.policy)
	}
	return j
}

// errAsks means that the chain would ask a language model, which takes too long for a waiting request.
var errAsks = errors.New("the chain asks a language model")

// An extent says how far a condensation goes.
type extent int

const (
	whole  extent = iota // to the end
	inline               // stop with [errAsks] if the chain would ask a language model
	probe                // only find out whether the chain would ask a language model
)

// run condenses the body, like the command condense run.
func (j *job) run(ctx context.Context, host *condense.Host, to extent) (*prepared, error) {
	r, err := wire.Parse(j.api, j.body, &wire.Options{Volatile: j.volatile})
	if err != nil {
		return nil, err
	}
	// Messages that the model has not answered yet stay unchanged: if a tool result is shortened before the agent has
	// read it, the agent asks for it again. If that leaves too little room, they are condensed too.
	p, err := j.attempt(ctx, host, to, min(wire.OpenRound(r.Messages), len(r.Messages)-1))
	if err == nil || errors.Is(err, errAsks) || ctx.Err() != nil {
		return p, err
	}
	return j.attempt(ctx, host, to, len(r.Messages))
}

// attempt is run, but leaves the messages from index keep on unchanged.
func (j *job) attempt(ctx context.Context, host *condense.Host, to extent, keep int) (*prepared, error) {
	doc, err := transcript.Read(bytes.NewReader(j.body), &transcript.ReadOptions{Format: formats[j.api]})
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil { // reading a large body takes a while
		return nil, err
	}
	c := condense.ResumeConversation(doc.Journal)
	view := c.View()
	var kept []string
	for _, m := range view[min(keep, len(view)):] {
		kept = append(kept, m.ID)
	}
	if keep < len(view) { // otherwise everything was tried
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
	if d.Used > 0 && j.tokens > 0 { // converted to the host's count
		ratio := min(max(float64(d.Used)/float64(j.tokens), leastRatio), mostRatio)
		t.Window, t.MaxOutput, t.Target = int(ratio*float64(t.Window)), int(math.Ceil(ratio*float64(t.MaxOutput))), int(ratio*float64(j.target))
	}
	if j.forced { // the host may count fewer tokens and see no reason to condense; the vendor's count decides
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
	apart := j.api != wire.Chat // many servers speak this API, and some refuse two consecutive user messages
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

// Bounds of the ratio of the host's count to the vendor's. Outside of them the two did not count the same text.
const leastRatio, mostRatio = 0.2, 5
