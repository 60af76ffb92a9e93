// Package job condenses: a [Job] is a condensation with all that it needs, and a [Runner] runs it, for a request that
// waits or in the background, with the chain of the profile or its fallback.
package job

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/model"
)

// ErrNotDue means that the policy of the profile saw no reason to condense, or no gain.
var ErrNotDue = errors.New("not due")

// ErrLater means that a provider chose to wait. It wraps [ErrNotDue].
var ErrLater = fmt.Errorf("%w: a provider waits", ErrNotDue)

// A Job is a condensation that can run in the background, next to its request.
type Job struct {
	API      wire.API
	Volatile []wire.Volatile
	// Reminders are how texts begin of which only the newest is condensed; see [wire.Newest].
	Reminders []string
	Body      []byte // body of the request, with the view to condense
	Turn      condense.Turn
	Tokens    int // of body, by the vendor's count
	Target    int // tokens, by the vendor's count
	Basis     *lineage.Basis
	Block     int // number of messages at the front that the last epoch produced
	Pins      Pins
	Protected string // identifies the part of Pins that the user can change
	Order     int    // number of the user's order; 0 for none
	Forced    bool   // the vendor would refuse body
	Retry     int    // size in tokens below which another attempt is useless, if it fails in the background

	Owner  Owner
	Client asker                  // may ask the client's own model; nil if that is not allowed
	Tries  func(*condense.Report) // counts the attempts of the providers; nil: they are not counted
	Trace
}

// An Owner is the caller that a condensation is made for, with its mode, deadline and chain.
type Owner struct {
	Tenant   string        // the tenant, or without tokens the credential
	Mode     string        // or the profile if there is no mode
	Deadline time.Duration // for a request that waits
	Chain    *Learned
}

// An asker asks the client's own model once, until its key is forgotten.
type asker interface {
	Ask(ctx context.Context, message string, most int) (*model.Answer, error)
	Forget()
}

// A Trace is left by attempts for the fallback chain.
type Trace struct {
	Named   bool   // a provider's failure was counted, so the fault needs no other count
	instead Cause  // why the profile's chain failed
	asker   string // the provider of the profile's chain that would have asked a language model
	unsure  bool   // a provider could not tell whether it would
}

// Pins returns the IDs of messages of a view that must stay unchanged because the caller says so. With all, it
// includes messages that may be condensed if there is no other way. A nil function pins nothing.
type Pins func(view []core.Message, all bool) []string

// ErrAsks means that the chain would ask a language model, which takes too long for a waiting request.
var ErrAsks = errors.New("the chain asks a language model")

// An Extent says how far a condensation goes.
type Extent int

// The extents.
const (
	Whole  Extent = iota // to the end
	Inline               // stop with [ErrAsks] if the chain would ask a language model
	Probe                // only find out whether the chain would ask a language model
)

// Run condenses the body, like the command condense run.
func (j *Job) Run(ctx context.Context, host *condense.Host, to Extent) (*Prepared, error) {
	r, err := wire.Parse(j.API, j.Body, &wire.Options{Volatile: j.Volatile})
	if err != nil {
		return nil, err
	}
	head, n, r, err := j.ours(r)
	if err != nil {
		return nil, err
	}
	if n, r, err = n.newest(r); err != nil {
		return nil, err
	}
	defer func() { j.Trace = n.Trace }()
	// Messages that the model has not answered yet stay unchanged: if a tool result is shortened before the agent has
	// read it, the agent asks for it again. If that leaves too little room, they are condensed too.
	p, err := n.attempt(ctx, host, to, min(wire.OpenRound(r.Messages), len(r.Messages)-1))
	if err != nil && !errors.Is(err, ErrAsks) && !errors.Is(err, ErrLater) && ctx.Err() == nil {
		p, err = n.attempt(ctx, host, to, len(r.Messages))
	}
	if p != nil {
		p.After = slices.Concat(head, p.After)
	}
	return p, err
}

// ours returns the messages up to the vendor's newest compaction, and j with its request for those after it: only these are condensed,
// because the vendor may ignore an extract before it. All are j's if most of the window is before it.
func (j *Job) ours(r *wire.Request) ([]wire.Message, *Job, *wire.Request, error) {
	cut := len(r.Messages)
	for cut > 0 && !r.Messages[cut-1].Compaction {
		cut--
	}
	head := slices.Clone(r.Messages[:cut])
	above := plain.Sum(head, func(m wire.Message) int { return count.Tokens(m.Raw) }) * j.Tokens / max(1, count.Tokens(j.Body))
	if cut == 0 || cut == len(r.Messages) || above > j.Turn.Window/2 {
		return nil, j, r, nil
	}
	for i := range head {
		head[i].Raw = bytes.Clone(head[i].Raw)
	}
	n, least := *j, 4
	n.Body, n.Tokens, n.Block = r.With(messages.Raw(r.Messages[cut:])), j.Tokens-above, max(0, j.Block-cut)
	n.Target, n.Turn.Window = max(j.Target-above, n.Tokens/least), j.Turn.Window-above
	n.Turn.Numbers, n.Turn.Cached.Messages = j.Turn.Numbers[min(cut, len(j.Turn.Numbers)):], max(0, j.Turn.Cached.Messages-cut)
	rest, err := wire.Parse(n.API, n.Body, &wire.Options{Volatile: n.Volatile})
	return head, &n, rest, err
}

// newest returns j without the agent's reminders that newer ones replace, and its request. The caller still has them.
func (j *Job) newest(r *wire.Request) (*Job, *wire.Request, error) {
	view, origin := wire.Newest(r.Messages, j.Reminders, j.pinned(r.Messages))
	body := r.With(view)
	if len(body) == len(j.Body) {
		return j, r, nil
	}
	n := *j
	n.Body, n.Block = body, sort.SearchInts(origin, j.Block)
	n.Turn.Numbers = make([]int, len(origin))
	for i, from := range origin {
		if n.Turn.Numbers[i] = j.Turn.Numbers[from]; from != i || !bytes.Equal(view[i], r.Messages[i].Raw) {
			n.Turn.Cached.Messages = min(n.Turn.Cached.Messages, i)
		}
	}
	r, err := wire.Parse(n.API, body, &wire.Options{Volatile: n.Volatile})
	return &n, r, err
}

// pinned returns a function that reports whether message i must stay unchanged.
func (j *Job) pinned(all []wire.Message) func(i int) bool {
	return func(i int) bool {
		if j.Pins == nil {
			return false
		}
		doc, err := messages.Read(j.API, [][]byte{all[i].Raw})
		return err != nil || len(j.Pins(doc.Journal.View(), true)) > 0
	}
}

// attempt is run, but leaves the messages from index keep on unchanged.
func (j *Job) attempt(ctx context.Context, host *condense.Host, to Extent, keep int) (*Prepared, error) {
	doc, err := messages.ReadRequest(j.API, j.Body)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil { // reading a large body takes a while
		return nil, err
	}
	c := condense.ResumeConversation(doc.Journal)
	view := c.View()
	t := j.Turn
	if t.Kept, err = j.protect(c, view, keep); err != nil {
		return nil, err
	}
	if t.System, t.Tools = doc.System, doc.Tools; len(view) != len(t.Numbers) {
		t.Numbers, t.Cached = []int{}, core.Cached{} // the API's messages are not those of the journal
	}
	d, err := host.Check(c, t)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	if d.Used > 0 && j.Tokens > 0 { // converted to the host's count
		ratio := min(max(float64(d.Used)/float64(j.Tokens), minRatio), maxRatio)
		t.Window, t.MaxOutput, t.Target = int(ratio*float64(t.Window)), int(math.Ceil(ratio*float64(t.MaxOutput))), int(ratio*float64(j.Target))
	}
	if j.Forced { // the host may count fewer tokens and see no reason to condense; the vendor's count decides
		if d, err = host.Check(c, t); err != nil {
			return nil, err
		} else if !d.Act {
			t.Trigger = core.TriggerOverflow
		}
	}
	if to != Whole {
		if t.Skip, err = j.slow(ctx, host, c, t, to); err != nil || to == Probe {
			return nil, err
		}
	}
	report, err := host.Manage(ctx, c, t)
	if (len(t.Skip) > 0 || j.unsure) && j.lacking(report, err) {
		return nil, ErrAsks
	}
	j.tried(report, err)
	if err != nil {
		return nil, err
	}
	if report.Later != "" {
		return nil, fmt.Errorf("%w: %s", ErrLater, report.Later)
	}
	if !report.Acted {
		return nil, fmt.Errorf("%w: %s", ErrNotDue, report.Reason)
	}
	return j.prepared(doc, report)
}

// protect keeps the messages from keep on, the block's and the newest ones that a reader may still need, and pinned messages. It
// returns the reasons: see [condense.Turn].
func (j *Job) protect(c *condense.Conversation, view []core.Message, keep int) (map[string]string, error) {
	kept := map[string]string{}
	for _, m := range view[min(keep, len(view)):] {
		kept[m.ID] = "request"
	}
	if keep < len(view) { // otherwise everything was tried
		for _, i := range dialog.Fresh(view[:max(0, keep)], j.Block, j.Target/2*count.BytesPerToken) {
			kept[view[i].ID] = "recalled"
		}
	}
	if j.Pins != nil {
		for _, id := range j.Pins(view, keep < len(view)) {
			kept[id] = "pin"
		}
	}
	return kept, c.Protect(true, slices.Sorted(maps.Keys(kept))...)
}

// prepared writes the condensed conversation as messages of the API.
func (j *Job) prepared(doc *codec.File, report *condense.Report) (*Prepared, error) {
	out, err := messages.Write(j.API, doc, wire.Of(j.API).Apart)
	if err != nil {
		return nil, err
	}
	after, err := wire.Parse(j.API, bytes.Clone(out), &wire.Options{Volatile: j.Volatile}) // it is kept, and the buffer is twice as large
	if err != nil {
		return nil, err
	}
	return &Prepared{
		Order: j.Order, Basis: j.Basis, After: after.Messages, Handles: !j.Turn.NoRecall, Passes: passesOf(report),
		Maker: makerOf(report), Protected: j.Protected, States: report.States,
	}, nil
}

// Bounds of the ratio of the host's count to the vendor's. Outside of them the two did not count the same text.
const minRatio, maxRatio = 0.2, 5

// A Maker is the provider that made a view, and the reason if another one should have made it.
type Maker struct {
	Provider, Outcome string
	setback           Cause // the first failure of a provider
	Cause             Cause // empty unless the provider stood in for another one
	Lost              int   // tokens of the user's words that the view does not have any more
}

// A Cause is why something failed: a text for people, without keys, and the status of HTTP of the answer that said so; 0 if there was none.
type Cause struct { //nolint:errname // it is why, and seldom travels as an error
	Why    string
	Status int
}

// Error returns the text.
func (c Cause) Error() string { return c.Why }

// CauseOf returns the cause that an error names, with the status of a model's refusal.
func CauseOf(err error) Cause {
	c := Cause{Why: secret.Safe(err.Error())}
	if refusal := (*remote.Error)(nil); errors.As(err, &refusal) {
		c.Status = refusal.Status
	} else if named := (Cause{}); errors.As(err, &named) {
		c.Status = named.Status
	}
	return c
}

// makerOf returns the provider that condensed, according to a report.
func makerOf(r *condense.Report) Maker {
	m := Maker{Lost: max(0, r.Words.Before-r.Words.After)}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		switch {
		case a.Err != nil:
			why := a.Provider + " " + string(a.Outcome) + ": " + secret.Safe(a.Reason)
			m.setback = cmp.Or(m.setback, Cause{Why: why, Status: CauseOf(a.Err).Status})
		case a.Outcome == core.OutcomeApplied, a.Outcome == core.OutcomeInsufficient:
			m.Provider, m.Outcome = a.Provider, string(a.Outcome)
			if m.Cause = m.setback; m.Cause.Why == "" && i > 0 && a.Provider == condense.Truncation {
				last := &r.Attempts[i-1]
				m.Cause.Why = last.Provider + " " + string(last.Outcome) + ": " + secret.Safe(last.Reason)
			}
		}
	}
	return m
}

// tried counts the attempts of a job's providers, and records the reason if its chain failed.
func (j *Job) tried(r *condense.Report, err error) {
	if r != nil && j.Tries != nil {
		j.Tries(r)
	}
	switch {
	case r != nil && r.Acted:
		return
	case r != nil && makerOf(r).setback.Why != "":
		j.instead, j.Named = makerOf(r).setback, j.Tries != nil
	case err != nil:
		j.instead = CauseOf(err)
	default:
		j.instead = Cause{Why: secret.Safe(r.Reason)}
	}
	j.asker = ""
}

// slow returns the providers of the chain that would ask a language model, if the request must not wait for one and the rest
// of the chain can condense without them. The error is [ErrAsks] if it cannot, or need not.
func (j *Job) slow(ctx context.Context, host *condense.Host, c *condense.Conversation, t condense.Turn, to Extent) ([]string, error) {
	all, err := host.Estimate(ctx, c, t)
	if err != nil {
		j.asker, j.instead = "", CauseOf(err)
		return nil, errors.Join(err, ErrAsks)
	}
	var slow []string
	for i := range all {
		switch {
		case all[i].Problem == "":
			slow = append(slow, all[i].Provider)
		case to == Probe:
			return nil, ErrNotEarly // asked in earnest, the provider says what is wrong
		default:
			j.unsure = true
		}
	}
	if len(slow) == 0 {
		return nil, nil
	}
	j.asker = slow[0]
	j.instead = Cause{Why: j.asker + " " + string(Replaced) + ": it asks a language model, and nothing was prepared"}
	if must := j.Forced || j.Turn.Trigger == core.TriggerOverflow; !must || to == Probe || len(slow) >= len(j.Owner.Chain.Names) {
		return nil, ErrAsks
	}
	return slow, nil
}

// lacking reports whether a chain did not condense although some of its providers could not be waited for: the built-in chain
// is better than truncation then.
func (j *Job) lacking(r *condense.Report, err error) bool {
	if r == nil || err == nil && r.Acted && makerOf(r).Provider != condense.Truncation {
		return false
	}
	done := *r
	if n := len(r.Attempts); n > 0 && r.Attempts[n-1].Provider == condense.Truncation {
		done.Attempts = r.Attempts[:n-1]
	}
	if why := makerOf(&done).setback; j.asker == "" && why.Why != "" {
		j.instead, j.Named = why, j.Tries != nil
	}
	if j.Tries != nil {
		j.Tries(&done)
	}
	return true
}

// Setback returns why a provider failed whose failure was counted; nil if none did.
func (j *Job) Setback() error {
	if !j.Named {
		return nil
	}
	return j.instead
}

// passesOf returns the pass that left each handle, by handle.
func passesOf(r *condense.Report) map[string]string {
	of := map[string]string{}
	for _, a := range r.Attempts {
		if a.Outcome != core.OutcomeApplied {
			continue
		}
		for _, s := range a.Steps {
			for _, h := range s.Handles {
				if of[h] == "" {
					of[h] = a.Provider + "/" + s.Name
				}
			}
		}
	}
	return of
}

// ReasonOf returns, as one line, why a condensation that was ordered had no result.
func ReasonOf(err error) string {
	if errors.Is(err, ErrNotDue) {
		return secret.Safe(strings.TrimPrefix(err.Error(), ErrNotDue.Error()+": "))
	}
	return secret.Safe(err.Error())
}
