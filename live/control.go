package live

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/secret"
)

// A user's requests for a running conversation are stored in a record of its own, a control, next to the records of its
// lineages. A [Desk] writes the control, and the gateway that receives the conversation's next request reads it. So
// orders survive a restart, and any gateway with the store can carry them out.

// An Order is a user's request to change a conversation together with its next request to the vendor.
type Order struct {
	Number int       `json:"number"` // counts the orders of the conversation, from 1
	Do     string    `json:"do"`     // [OrderNow] or [OrderUndo]
	Time   time.Time `json:"time"`

	// For [OrderNow]: the profile, or the only provider of the chain, and the target size in tokens of the request or
	// percent of the window. Empty and 0 mean the gateway's own choice.
	Profile  string  `json:"profile,omitempty"`
	Provider string  `json:"provider,omitempty"`
	Tokens   int     `json:"tokens,omitempty"`
	Percent  float64 `json:"percent,omitempty"`

	Waits string `json:"waits,omitempty"` // why the order must wait for another request; empty if it need not

	Done    time.Time `json:"done,omitzero"`
	Result  string    `json:"result,omitempty"` // why the order had no effect; empty if it had one
	Before  int       `json:"before,omitempty"` // tokens of the request before and after the order
	After   int       `json:"after,omitempty"`
	Changed bool      `json:"changed"` // whether the order changed the messages that are sent
}

// The values of Order.Do.
const (
	OrderNow  = "now"  // condense
	OrderUndo = "undo" // undo the last condensation
)

// A Protection is content that condensing must keep verbatim.
type Protection struct {
	Text    string `json:"text,omitempty"`    // protects all messages that contain it
	Message int    `json:"message,omitempty"` // or protects one message, by its number from 1 in the client's history
	At      string `json:"at,omitempty"`      // identifies that message, even if its number changes
}

// A control holds the user's settings and orders for a conversation and its branches.
type control struct {
	Family      string       `json:"family"`
	Paused      bool         `json:"paused,omitempty"`
	Protections []Protection `json:"protections,omitempty"`
	Number      int          `json:"number,omitempty"` // of the last order
	Order       *Order       `json:"order,omitempty"`  // waits for a request
	Last        *Order       `json:"last,omitempty"`   // the last one carried out
}

// controlPrefix begins the ID of a control's record.
const controlPrefix = "control:"

// change applies f to the stored control of a family, and tries again, up to 8 times, if another writer was faster. It
// returns the stored control. The error is f's or the store's.
func change(ctx context.Context, in store.Store, key store.Key, family string, now time.Time, f func(*control) error) (*control, error) {
	const tries = 8
	for n := 1; ; n++ {
		records, err := in.Load(ctx, key)
		if err != nil {
			return nil, err
		}
		r, c := &store.Record{ID: controlPrefix + family, Key: key}, &control{}
		for i := range records {
			if records[i].ID == r.ID && !records[i].Damaged && json.Unmarshal(records[i].Data, c) == nil {
				r = &records[i]
			}
		}
		c.Family = family
		if err := f(c); err != nil {
			return nil, err
		}
		if r.Data, err = json.Marshal(c); err != nil {
			return nil, err
		}
		r.Updated = now
		if err = in.Save(ctx, r); !errors.Is(err, store.ErrConflict) || n == tries {
			return c, err
		}
	}
}

// control returns the user's control of the conversation; never nil.
func (x *exchange) control() *control {
	c := x.claim
	if c == nil || c.state == nil || c.state.Family == "" {
		return &control{}
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if found := c.session.controls[c.state.Family]; found != nil {
		return found
	}
	return &control{}
}

// order returns the waiting order of the kind do that this request must carry out, or nil. A request that leaves the
// branch, such as a side question, carries out no order.
func (x *exchange) order(do string) *Order {
	c := x.claim
	o := x.control().Order
	if o == nil || o.Do != do || o.Number <= c.state.Orders || c.unread || x.s.Observe || c.kind != lineage.Continue && c.kind != lineage.Rewind {
		return nil
	}
	return o
}

// paused reports whether the user has paused all epochs except those without which the vendor refuses a request.
func (x *exchange) paused() bool { return x.control().Paused }

// obeyed notes that an order was carried out, or else, in result, why it had no effect.
func (x *exchange) obeyed(o *Order, result string) {
	done := *o
	done.Waits, done.Done, done.Result, done.Before = "", x.start, result, x.tokens
	x.obeys = &done
}

// dropped notes that an order is given up, and why.
func (x *exchange) dropped(o *Order, why string) {
	x.obeyed(o, why)
	x.obeys.After = x.tokens
	x.claim.state.Orders, x.durable = o.Number, true
}

// waits notes why an order has to wait for another request.
func (x *exchange) waits(o *Order, why string) {
	if o.Waits != why {
		waiting := *o
		waiting.Waits = why
		x.obeys = &waiting
	}
}

// reportOrder stores the outcome of an order for the user to see. Whether the order counts as done is in the lineage's
// state.
func (x *exchange) reportOrder(ctx context.Context) {
	o := x.obeys
	if x.obeys = nil; o == nil {
		return
	}
	c := x.claim
	known, err := change(ctx, x.store, c.session.key, c.state.Family, x.start, func(all *control) error {
		same := all.Order != nil && all.Order.Number == o.Number
		switch {
		case !o.Done.IsZero():
			all.Last = o
			if same {
				all.Order = nil
			}
		case same:
			all.Order.Waits = o.Waits
		}
		return nil
	})
	if err != nil {
		x.fault("order", err)
		return
	}
	c.session.mu.Lock()
	c.session.addControl(known)
	c.session.mu.Unlock()
	if !o.Done.IsZero() {
		x.s.Logger.InfoContext(ctx, "order", "do", o.Do, "changed", o.Changed, "before", o.Before, "after", o.After, "result", o.Result)
	}
}

func (s *session) addControl(c *control) {
	if s.controls == nil {
		s.controls = map[string]*control{}
	}
	s.controls[c.Family] = c
}

// undoIfAsked undoes the last epoch if the user ordered that, and reports whether it did.
func (x *exchange) undoIfAsked() (bool, error) {
	o := x.order(OrderUndo)
	if o == nil {
		return false, nil
	}
	c := x.claim
	next, err := c.state.Undo(c.former(), x.r, x.rolling, x.start)
	switch {
	case errors.Is(err, lineage.ErrNothing):
		x.dropped(o, "there is no condensation to undo")
		return false, nil
	case errors.Is(err, lineage.ErrRound):
		x.waits(o, "the model thinks in this turn: it can be had when the turn is over")
		return false, nil
	case err != nil:
		return false, err
	}
	trial := x.planOf(next)
	size := trial.tokens
	if size > x.policy.Limit || size > x.policy.Window {
		x.dropped(o, fmt.Sprintf("without it the request has about %d tokens, and at most %d fit", size, min(x.policy.Limit, x.policy.Window)))
		return false, nil
	}
	if x.check(&trial) != nil {
		x.waits(o, "the vendor would refuse the request in the middle of this turn")
		return false, nil //nolint:nilerr // another request will do
	}
	next.Orders = o.Number
	x.next, x.undone = next, true
	x.obeyed(o, "")
	x.obeys.Before, x.obeys.After, x.obeys.Changed = x.tokens, size, true
	x.plan = trial
	return true, nil
}

// former returns the state before the latest epoch, or nil if it is no longer in memory.
func (c *claim) former() *lineage.State {
	if c.state.Epoch == nil || c.state.Epoch.Over == "" {
		return nil
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	for _, e := range c.session.entries {
		if e.id == c.state.Epoch.Over {
			return e.state
		}
	}
	return nil
}

// wished adjusts a decision to the user's wishes. It returns the order that the decision carries out, or nil.
func (x *exchange) wished(d epoch.Decision, overflow bool) (epoch.Decision, *Order) {
	c, o := x.claim, x.order(OrderNow)
	refused := overflow || c.overflowed() || x.tokens > x.policy.Window
	switch {
	case o != nil && d.Reason != epoch.Forced:
		d.Reason, d.Wait, d.Turns = epoch.Asked, false, 0
	case o != nil:
	case x.paused() && !refused, c.state.Held && d.Reason != epoch.Forced:
		d.Reason = epoch.None
	}
	if o != nil {
		if d.Target = o.Tokens; o.Percent > 0 {
			d.Target = int(o.Percent / 100 * float64(x.policy.Window))
		}
	}
	return d, o
}

// hostFor returns the host for an order: one with only the order's provider, or the gateway's own. The caller must call
// leave when done.
func (x *exchange) hostFor(ctx context.Context, o *Order) (host *condense.Host, leave func() error, err error) {
	none := func() error { return nil }
	if o.Provider == "" {
		return x.host, none, nil
	}
	c := x.host.Config()
	p, err := c.Provider(o.Provider)
	if err != nil {
		return nil, none, err
	}
	host, err = x.host.With(context.WithoutCancel(ctx), c.Override(config.Override{Chain: []config.Provider{*p}}))
	if err != nil {
		return nil, none, err
	}
	return host, host.Close, nil
}

// orderedJob returns the job that carries out an order to condense.
func (x *exchange) orderedJob(d epoch.Decision, o *Order, overflow bool) *job {
	j := x.job(d, overflow)
	j.order = o.Number
	if o.Profile != "" {
		j.turn.Profile, j.turn.Mode = o.Profile, ""
	}
	return j
}

// obey condenses as an order asks. If that needs a language model, it runs in the background and a later request uses
// the result: then the error is [errAsks].
func (x *exchange) obey(ctx context.Context, j *job, o *Order) (*prepared, error) {
	if o.Profile != "" && !slices.Contains(x.host.Config().Profiles(), o.Profile) {
		return nil, fmt.Errorf("this gateway has no profile %q", plain.Clip(o.Profile))
	}
	host, leave, err := x.hostFor(ctx, o)
	if err != nil {
		return nil, err
	}
	p, err := x.runner.nextTurn(ctx, j, func(ctx context.Context) (*prepared, error) { return j.run(ctx, host, inline) })
	if !errors.Is(err, errAsks) {
		return p, errors.Join(err, leave())
	}
	if !x.mayAsk() {
		return nil, errors.Join(errors.New("the limit of condensations by a language model is reached"), leave())
	}
	started := x.prepareWith(j, func(ctx context.Context) (*prepared, error) { //nolint:contextcheck // it outlives the request
		p, err := j.run(ctx, host, whole)
		return p, errors.Join(err, leave())
	})
	if !started {
		return nil, errors.Join(errAsks, leave())
	}
	return nil, errAsks
}

// A failure is the reason why the background condensation for an order failed.
type failure struct {
	order int
	why   string
}

// failure returns why the background condensation for the order failed; empty if it did not.
func (c *claim) failure(o *Order) string {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if c.failed.order == o.Number {
		return c.failed.why
	}
	return ""
}

// unordered drops a prepared condensation that was not made for the order.
func (c *claim) unordered(o *Order) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if c.prepared != nil && c.prepared.order != o.Number {
		c.prepared = nil
	}
}

// reasonOf returns, as one line, why a condensation that was ordered had no result.
func reasonOf(err error) string {
	if errors.Is(err, errNotDue) {
		return stats.Shown(strings.TrimPrefix(err.Error(), errNotDue.Error()+": "))
	}
	return stats.Shown(err.Error())
}

// protected returns the request's pins combined with the user's protections.
func (x *exchange) protected() pins {
	all := x.control().Protections
	if len(all) == 0 {
		return x.pins
	}
	own := x.pins
	var texts []string
	is := map[string]bool{}
	for _, p := range all {
		if p.Text != "" {
			texts = append(texts, p.Text)
			continue
		}
		at := slices.IndexFunc(x.rolling, func(h wire.Hash) bool { return atOf(h) == p.At })
		if at < 0 {
			continue // the client went back to a point before the message
		}
		doc, err := document(x.r.API, [][]byte{x.r.Messages[at].Raw})
		if err != nil {
			continue
		}
		for _, m := range doc.Journal.View() {
			is[identity(m)] = true
		}
	}
	return func(view []core.Message, rest bool) []string {
		var ids []string
		if own != nil {
			ids = own(view, rest)
		}
		for _, m := range view {
			said := saidIn(m.Parts)
			if is[identity(m)] || slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(said, t) }) {
				ids = append(ids, m.ID)
			}
		}
		return ids
	}
}

// isProtected reports whether a message contains a text that the user protects, or cannot be parsed.
func (x *exchange) isProtected(raw []byte) bool {
	all := x.control().Protections
	if !slices.ContainsFunc(all, func(p Protection) bool { return p.Text != "" }) {
		return false
	}
	doc, err := document(x.r.API, [][]byte{raw})
	if err != nil {
		return true
	}
	for _, m := range doc.Journal.View() {
		said := saidIn(m.Parts)
		if slices.ContainsFunc(all, func(p Protection) bool { return p.Text != "" && strings.Contains(said, p.Text) }) {
			return true
		}
	}
	return false
}

// atOf returns the ID of a message, for Protection.At, from its rolling hash.
func atOf(h wire.Hash) string { return hex.EncodeToString(h[:]) }

// identity returns a key that is equal for messages with the same content, whatever the model's thinking, images and
// opaque parts.
func identity(m core.Message) string {
	var b bytes.Buffer
	b.WriteString(string(m.Role))
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.ToolCall:
			fmt.Fprintf(&b, "\x00call %s %s %s", p.ID, p.Name, p.Args)
		case core.ToolResult:
			fmt.Fprintf(&b, "\x00result %s %s", p.CallID, saidIn(p.Content))
		case core.Text:
			b.WriteString("\x00" + string(p))
		case core.Image, core.Reasoning, core.Opaque:
		}
	}
	return b.String()
}

// saidIn returns the text of parts, including the arguments of calls and the text of results.
func saidIn(parts []core.Part) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			b.WriteString(string(p) + "\n")
		case core.ToolCall:
			b.WriteString(p.Args + "\n")
		case core.ToolResult:
			b.WriteString(saidIn(p.Content))
		case core.Image, core.Reasoning, core.Opaque:
		}
	}
	return b.String()
}

// An about holds a gateway's description of a conversation at its last request, apart from its state. Sizes are tokens
// by the vendor's count, estimated.
type about struct {
	Agent     string  `json:"agent,omitempty"`
	Folder    string  `json:"folder,omitempty"`
	Title     string  `json:"title,omitempty"`
	Profile   string  `json:"profile,omitempty"`
	Provider  string  `json:"provider,omitempty"` // the one that made the last epoch
	Chain     string  `json:"chain,omitempty"`    // the first provider of the chain
	Window    int     `json:"window,omitempty"`
	Limit     int     `json:"limit,omitempty"`
	Threshold int     `json:"threshold,omitempty"`
	Tokens    int     `json:"tokens,omitempty"`
	Original  int     `json:"original,omitempty"` // size of the client's own history
	Grows     int     `json:"grows,omitempty"`    // tokens that each answer adds
	Input     float64 `json:"input,omitempty"`    // US dollars per token: sent, cache write, cache read; 0: not known
	Write     float64 `json:"write,omitempty"`
	Read      float64 `json:"read,omitempty"`
}

// describe updates the conversation's description, before its state is stored.
func (x *exchange) describe() {
	c := x.claim
	a := about{}
	c.session.mu.Lock()
	if c.about != nil {
		a = *c.about
	}
	c.session.mu.Unlock()
	if a.Agent == "" {
		a.Folder, a.Title = folderOf(x.r), titleOf(x.r)
	}
	a.Agent, a.Profile, a.Window, a.Limit, a.Threshold = x.agent.Name, cmp.Or(x.mode, x.profile), x.policy.Window, x.policy.Limit, x.policy.Threshold
	a.Tokens, a.Original = x.tokens, c.state.Estimate(x.original)
	f := x.facts(false)
	a.Grows = f.Grown / f.Answers
	if len(x.resolved.Chain) > 0 {
		a.Chain = x.resolved.Chain[0].Name
	}
	if x.epoch != nil {
		a.Provider = x.epoch.Provider
	}
	if p, known := x.prices(x.tokens); known {
		a.Input, a.Write, a.Read = p.input, p.write, p.read
	}
	c.session.mu.Lock()
	c.about = &a
	c.session.mu.Unlock()
}

// Limits of the search for a folder or a title, and of the length of the result. Sizes are in bytes.
const (
	mostRead    = 256 << 10
	mostMessage = 4 // messages at the front that are searched
	longestName = 80
)

// folders matches the phrases with which agents name their working directory.
var folders = regexp.MustCompile(`(?:[Ww]orking directory: |<cwd>)([^<\\"\n]+)`)

// folderOf returns the agent's working directory, if the request names it.
func folderOf(r *wire.Request) string {
	texts := [][]byte{r.System}
	for i := range min(mostMessage, len(r.Messages)) {
		texts = append(texts, r.Messages[i].Raw)
	}
	for _, text := range texts {
		if m := folders.FindSubmatch(text[:min(len(text), mostRead)]); m != nil {
			return shortName(string(m[1]))
		}
	}
	return ""
}

// titleOf returns the beginning of the user's first message.
func titleOf(r *wire.Request) string {
	for i := range min(mostMessage, len(r.Messages)) {
		m := &r.Messages[i]
		if m.Role != "user" || len(m.Raw) > mostRead {
			continue
		}
		doc, err := document(r.API, [][]byte{m.Raw})
		if err != nil {
			continue
		}
		for _, m := range doc.Journal.View() {
			for _, p := range m.Parts {
				// Text that begins with < was written by a program.
				if t, ok := p.(core.Text); ok && t != "" && !strings.HasPrefix(strings.TrimSpace(string(t)), "<") {
					return shortName(string(t))
				}
			}
		}
	}
	return ""
}

func shortName(text string) string {
	text = strings.TrimSpace(secret.Redact(plain.Line(text[:min(len(text), mostRead)])))
	if len(text) > longestName {
		text = strings.ToValidUTF8(text[:longestName], "") + "…"
	}
	return text
}
