package online

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/live"
)

// Evidence has the measurements of a conversation, without any of its text. It is the record in the store.
type Evidence struct {
	ID       string    `json:"id"`
	Tenant   string    `json:"tenant,omitempty"` // the tenant's name
	Agent    string    `json:"agent,omitempty"`
	Model    string    `json:"model"`
	Profile  string    `json:"profile,omitempty"`
	Mode     string    `json:"mode,omitempty"`
	Observe  bool      `json:"observe,omitempty"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Turns    int       `json:"turns"`
	Messages int       `json:"messages"` // of the client, in the last turn
	Tokens   int       `json:"tokens"`   // tokens sent in the last turn
	Window   int       `json:"window,omitempty"`
	DueAt    int       `json:"due_at,omitempty"` // tokens at which it is condensed at the latest
	Curve    []Point   `json:"curve,omitempty"`  // of its turns, at most maxPoints
	// The vendor's counts for all turns, in tokens and US dollars.
	Input    int      `json:"input"`
	Read     int      `json:"cache_read"`
	Write    int      `json:"cache_write"`
	Output   int      `json:"output"`
	Cost     float64  `json:"cost"`
	Saved    float64  `json:"cost_saved"`
	Unpriced int      `json:"unpriced,omitempty"`
	Epochs   []*Epoch `json:"epochs"` // oldest first
}

// An Epoch is a condensation of a conversation with what came of it.
type Epoch struct {
	live.Epoch

	Profile  string  `json:"profile,omitempty"`
	Mode     string  `json:"mode,omitempty"`
	Answers  int     `json:"answers"`           // since the epoch, with the vendor's counts
	Saved    float64 `json:"cost_saved"`        // US dollars since; negative until it has paid for itself
	PaidAt   int     `json:"paid_at,omitempty"` // answers until Saved was no longer negative; 0 if it still is. With several gateways, an upper bound
	Unpriced bool    `json:"unpriced,omitempty"`
	Recalls  int     `json:"recalls"`
	Recalled int     `json:"recalled"` // tokens
	// Pieces are the recalled contents, by handle; no text but the kind of each.
	Pieces []live.Recalled `json:"pieces,omitempty"`
}

// maxPieces are kept of an epoch.
const maxPieces = 100

// recalls adds recalled contents.
func (e *Epoch) recalls(more []live.Recalled) {
	for _, m := range more {
		i := slices.IndexFunc(e.Pieces, func(p live.Recalled) bool { return p.Handle == m.Handle && p.What == m.What })
		switch {
		case i >= 0:
			e.Pieces = slices.Clone(e.Pieces) // readers have the old one
			e.Pieces[i].Count += m.Count
			e.Pieces[i].Tokens += m.Tokens
		case len(e.Pieces) < maxPieces:
			e.Pieces = append(slices.Clip(e.Pieces), m)
		}
	}
}

// A Mode sums up the epochs of a mode.
type Mode struct {
	Mode          string `json:"mode,omitempty"`     // empty: all together
	Observed      bool   `json:"observed,omitempty"` // the gateway only observed: the numbers are hypothetical
	Conversations int    `json:"conversations"`
	Epochs        int    `json:"epochs"`
	Before        int    `json:"before"` // tokens, of all epochs together; so are the following numbers
	After         int    `json:"after"`
	CacheRead     int    `json:"cache_read"` // of the first request after each
	CacheWrite    int    `json:"cache_write"`
	// Mean numbers of answers, over epochs with a prediction and over epochs that have paid for themselves.
	Predicted float64 `json:"turns,omitempty"`
	PaidAfter float64 `json:"paid_after,omitempty"`
	Paid      int     `json:"paid"` // epochs that have paid for themselves
	Saved     float64 `json:"cost_saved"`
	Unpriced  int     `json:"unpriced,omitempty"` // epochs without a known price, which are not in Paid and Saved
	Recalls   int     `json:"recalls"`
	Recalled  int     `json:"recalled"`
}

// Modes sums up epochs: first the effective ones, all together and by mode, then, if there are any, the observed ones
// in the same way.
func Modes(all []*Evidence) []Mode {
	out := sum(observed(all, false))
	for _, m := range sum(observed(all, true)) {
		if m.Epochs > 0 {
			m.Observed = true
			out = append(out, m)
		}
	}
	return out
}

// observed returns the conversations whose gateway only observed, or the others.
func observed(all []*Evidence, is bool) []*Evidence {
	return slices.DeleteFunc(slices.Clone(all), func(c *Evidence) bool { return c.Observe != is })
}

func sum(all []*Evidence) []Mode {
	sums := map[string]*Mode{"": {}}
	predicted := map[string]int{}
	for _, c := range all {
		in := map[string]bool{}
		for _, e := range c.Epochs {
			scopes := []string{""}
			if e.Mode != "" {
				scopes = append(scopes, e.Mode)
			}
			for _, mode := range scopes {
				if sums[mode] == nil {
					sums[mode] = &Mode{Mode: mode}
				}
				m := sums[mode]
				if !in[mode] {
					in[mode] = true
					m.Conversations++
				}
				m.add(e)
				if e.Turns > 0 {
					predicted[mode]++
					m.Predicted += e.Turns
				}
			}
		}
	}
	out := make([]Mode, 0, len(sums))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		m := sums[name]
		m.Predicted /= float64(max(1, predicted[name]))
		m.PaidAfter /= float64(max(1, m.Paid))
		out = append(out, *m)
	}
	return out
}

// add adds the measurements of an epoch.
func (m *Mode) add(e *Epoch) {
	m.Epochs++
	m.Before += e.Before
	m.After += e.After
	m.CacheRead += e.CacheRead
	m.CacheWrite += e.CacheWrite
	if e.Unpriced {
		m.Unpriced++
	} else {
		m.Saved += e.Saved
		if e.PaidAt > 0 {
			m.Paid++
			m.PaidAfter += float64(e.PaidAt)
		}
	}
	m.Recalls += e.Recalls
	m.Recalled += e.Recalled
}

// merge returns one record per conversation, joined from all gateways that served it, the latest turn first.
func merge(all []*Evidence) []*Evidence {
	of := map[string]*Evidence{}
	out := make([]*Evidence, 0, len(all))
	for _, c := range all {
		known := of[c.ID]
		if known == nil {
			copied := *c
			copied.Epochs = []*Epoch{} // c's epochs change while the caller reads the result
			for _, e := range c.Epochs {
				epoch := *e
				copied.Epochs = append(copied.Epochs, &epoch)
			}
			of[c.ID] = &copied
			out = append(out, &copied)
			continue
		}
		known.merge(c)
	}
	for _, c := range out {
		c.Epochs = slices.DeleteFunc(c.Epochs, func(e *Epoch) bool { return e.Before == 0 }) // of a gateway that has not reported its size yet
		slices.SortFunc(c.Epochs, func(a, b *Epoch) int { return a.Time.Compare(b.Time) })
	}
	slices.SortFunc(out, func(a, b *Evidence) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID)) })
	return out
}

func (c *Evidence) merge(o *Evidence) {
	if o.Last.After(c.Last) {
		c.Agent, c.Model, c.Profile, c.Mode, c.Observe, c.Last, c.Messages, c.Tokens, c.Window, c.DueAt = o.Agent, o.Model, o.Profile, o.Mode, o.Observe, o.Last, o.Messages, o.Tokens, o.Window, o.DueAt
	}
	if o.First.Before(c.First) {
		c.First = o.First
	}
	c.Curve = slices.SortedStableFunc(slices.Values(slices.Concat(c.Curve, o.Curve)), func(a, b Point) int { return a.Time.Compare(b.Time) })
	c.Turns += o.Turns
	c.Input += o.Input
	c.Read += o.Read
	c.Write += o.Write
	c.Output += o.Output
	c.Cost += o.Cost
	c.Saved += o.Saved
	c.Unpriced += o.Unpriced
	for _, e := range o.Epochs {
		i := slices.IndexFunc(c.Epochs, func(k *Epoch) bool { return k.Time.Equal(e.Time) })
		if i < 0 {
			epoch := *e
			c.Epochs = append(c.Epochs, &epoch)
			continue
		}
		c.Epochs[i] = c.Epochs[i].merged(e)
	}
}

// merged joins two gateways' records of an epoch. Only one gateway made it, but its consequences may have been seen
// by both.
func (e *Epoch) merged(o *Epoch) *Epoch {
	if o.Before > 0 {
		e, o = o, e
	}
	sum := *e
	sum.CacheRead, sum.CacheWrite = max(e.CacheRead, o.CacheRead), max(e.CacheWrite, o.CacheWrite)
	sum.Answers += o.Answers
	sum.Saved += o.Saved
	sum.Unpriced = e.Unpriced || o.Unpriced
	sum.Recalls += o.Recalls
	sum.Recalled += o.Recalled
	sum.recalls(o.Pieces)
	if e.Answers > 0 && o.Answers > 0 { // their order is unknown
		if sum.PaidAt = 0; sum.Saved > 0 {
			sum.PaidAt = sum.Answers
		}
	} else {
		sum.PaidAt = max(e.PaidAt, o.PaidAt)
	}
	return &sum
}

// api is the API name of evidence records in the store.
const api = "evidence"

// maxStored is how many conversations [Stored] reads.
const maxStored = 100_000

// Stored returns the measurements of all gateways that use the store at an address, as far as the store still has
// them.
func Stored(ctx context.Context, address string) ([]*Evidence, error) {
	db, err := store.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // it was only read
	found, err := stored(ctx, db, time.Time{}, maxStored)
	if err != nil {
		return nil, err
	}
	return merge(slices.Collect(maps.Values(found))), nil
}

// stored returns evidence by the ID of its record.
func stored(ctx context.Context, db store.Store, since time.Time, limit int) (map[string]*Evidence, error) {
	records, err := db.Since(ctx, api, since, limit)
	if err != nil {
		return nil, err
	}
	found := map[string]*Evidence{}
	for i := range records {
		var c Evidence
		if json.Unmarshal(records[i].Data, &c) == nil { // else of another version
			found[records[i].ID] = &c
		}
	}
	return found, nil
}
