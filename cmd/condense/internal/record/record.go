// Package record keeps a gateway's conversations as journals, one for each, so that a team can inspect and compare
// its own live sessions.
//
// A journal has the client's messages, the messages sent in their place as condensations, and rewinds. It has no
// header of a request and so no credentials.
package record

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/transcript"
)

const (
	maxWaiting = 16 // exchanges that wait to be written
	maxOpen    = 64 // journals that are open at a time
)

// A Recorder writes journals to a folder, one exchange after the other, in a goroutine of its own. It
// is safe for concurrent use.
type Recorder struct {
	dir  string
	log  *slog.Logger
	open []*lineage // by last use, the latest last; for the goroutine only

	mu      sync.Mutex
	closed  bool
	waiting []*live.Exchange
	more    chan struct{} // holds one if waiting or closed has changed
	done    chan struct{}
}

// A lineage is a conversation with its branches, which have a journal each.
type lineage struct {
	key      string
	name     string // of the files, without number and extension
	journals []*history.File
}

// path returns the path of the journal with index n.
func (l *lineage) path(n int) string {
	if n == 0 {
		return l.name + ".jsonl"
	}
	return fmt.Sprintf("%s-%d.jsonl", l.name, n+1)
}

func (l *lineage) close() error { return errors.Join(plain.Each(l.journals, (*history.File).Close)...) }

// New returns a recorder that writes to the folder dir, which it makes if there is none. Only its
// owner may read the files.
func New(dir string, log *slog.Logger) (*Recorder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder for recordings: %w", err)
	}
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	r := &Recorder{dir: dir, log: log, more: make(chan struct{}, 1), done: make(chan struct{})}
	go r.run()
	return r, nil
}

// Record passes e on to be written; it never waits. If too many wait already, an earlier request of a conversation whose later one
// waits too is left out, because that one has all its messages again: what is recorded lags behind, but ends with what was sent
// last. E must not change afterwards.
func (r *Recorder) Record(ctx context.Context, e *live.Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.waiting = append(r.waiting, e)
	if len(r.waiting) > maxWaiting {
		least := slices.IndexFunc(r.waiting, func(old *live.Exchange) bool { return old.Epoch == nil && old != e && keyOf(old) == keyOf(e) })
		if least < 0 {
			least = maxWaiting
			r.log.WarnContext(ctx, "a request was not recorded: too many wait", "lineage", e.Lineage)
		}
		r.waiting = slices.Delete(r.waiting, least, least+1)
	}
	r.signal()
}

func (r *Recorder) signal() {
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// keyOf names the conversation of e.
func keyOf(e *live.Exchange) string {
	return strings.Join([]string{e.Tenant, e.API, e.Agent, e.Session, e.Lineage}, "\x00")
}

// Close writes pending exchanges and closes the files.
func (r *Recorder) Close() error {
	r.mu.Lock()
	r.closed = true
	r.signal()
	r.mu.Unlock()
	<-r.done
	err := errors.Join(plain.Each(r.open, (*lineage).close)...)
	r.open = nil
	return err
}

func (r *Recorder) run() {
	defer close(r.done)
	for range r.more {
		for {
			r.mu.Lock()
			closed, waiting := r.closed, r.waiting
			if len(waiting) > 0 {
				r.waiting = waiting[1:]
			}
			r.mu.Unlock()
			if len(waiting) == 0 {
				if closed {
					return
				}
				break
			}
			if err := r.write(waiting[0]); err != nil {
				r.log.Warn("a request was not recorded", "lineage", waiting[0].Lineage, "error", err)
			}
		}
	}
}

// write adds e to the journal of its conversation.
func (r *Recorder) write(e *live.Exchange) error {
	received, err := read(e, e.Received)
	if err != nil {
		return err
	}
	said := received.Journal.View()
	if len(said) == 0 {
		return nil
	}
	sent := said
	if !bytes.Equal(e.Sent, e.Received) {
		d, err := read(e, e.Sent)
		if err != nil {
			return err
		}
		sent = d.Journal.View()
	}
	l, err := r.lineage(e)
	if err != nil {
		return err
	}
	j, err := l.find(received, said)
	if err != nil {
		return err
	}
	if n := shared(j.Messages(), said); n == len(said) && n < len(j.Messages()) && e.Epoch == nil {
		return nil // an earlier request again; if the client goes on from there, it will show
	}
	if err := add(j, e, said); err != nil {
		return err
	}
	return condense(j, e, sent)
}

func read(e *live.Exchange, body []byte) (*transcript.Document, error) {
	return transcript.Read(bytes.NewReader(body), &transcript.ReadOptions{Format: wire.Of(wire.API(e.API)).Format})
}

// find returns the journal that said continues: the one with most of its messages. It creates a journal if none has
// any of them, or if the journal already continued differently from there, so that the conversation has branches.
func (l *lineage) find(d *transcript.Document, said []core.Message) (*history.File, error) {
	var best *history.File
	longest, whole := 0, false
	for _, j := range l.journals {
		has := j.Messages()
		n := shared(has, said)
		if all := n == len(has); n > 0 && (all && !whole || all == whole && n > longest) {
			best, longest, whole = j, n, all
		}
	}
	if best != nil && (whole || longest == len(said) || !slices.ContainsFunc(best.Dropped(), func(e history.Entry) bool { return equal(e.Original, said[longest]) })) {
		return best, nil
	}
	j, err := history.Create(l.path(len(l.journals)), d.Journal.Meta())
	if err != nil {
		return nil, err
	}
	l.journals = append(l.journals, j)
	return j, nil
}

var nonAlnum = plain.Pattern(`[^a-z0-9]+`)

// lineage returns the lineage of e, with its journals.
func (r *Recorder) lineage(e *live.Exchange) (*lineage, error) {
	key := keyOf(e)
	if i := slices.IndexFunc(r.open, func(l *lineage) bool { return l.key == key }); i >= 0 {
		l := r.open[i]
		r.open = append(slices.Delete(r.open, i, i+1), l)
		return l, nil
	}
	if len(r.open) == maxOpen {
		if err := r.open[0].close(); err != nil {
			r.log.Warn("a recording was not closed", "error", err)
		}
		r.open = slices.Delete(r.open, 0, 1)
	}
	agent := cmp.Or(strings.Trim(nonAlnum().ReplaceAllString(strings.ToLower(e.Agent), "-"), "-"), "agent")
	sum := sha256.Sum256([]byte(key))
	l := &lineage{key: key, name: filepath.Join(r.dir, fmt.Sprintf("%.32s-%x", agent, sum[:8]))}
	for {
		j, _, err := history.Open(l.path(len(l.journals)))
		if errors.Is(err, fs.ErrNotExist) {
			r.open = append(r.open, l)
			return l, nil
		}
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		l.journals = append(l.journals, j)
	}
}

// add makes the client's messages in the journal equal to those in e.
func add(j *history.File, e *live.Exchange, said []core.Message) error {
	has := j.Messages()
	n := shared(has, said)
	if n < len(has) { // the client went back
		if err := j.Rewind(has[n-1].ID); err != nil {
			return err
		}
	}
	added := slices.Clone(said[n:])
	for i := range added {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		added[i].ID, added[i].Time = id.String(), e.Time
	}
	return j.Append(added...)
}

// condense makes the view equal to sent. Messages that are sent in full again undo their condensation.
func condense(j *history.File, e *live.Exchange, sent []core.Message) error {
	for {
		view := j.View()
		after, err := align(view, sent)
		if err != nil {
			return err
		}
		active := j.Condensations()
		if len(active) > 0 && bringsBack(j.Timeline(), after) {
			if err := j.Undo(active[len(active)-1].ID); err != nil {
				return err
			}
			continue
		}
		edit := core.Diff(view, after)
		if edit.Empty() {
			return nil
		}
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		c := history.Condensation{ID: id.String(), Provider: "ingest", Trigger: core.TriggerAutomatic, Time: e.Time, Edit: edit}
		if e.Epoch != nil {
			c.Provider, c.TokensBefore, c.TokensAfter = "epoch", e.Epoch.Before, e.Epoch.After
		}
		return j.Condense(c)
	}
}

// bringsBack reports whether a new message in after is one that is hidden.
func bringsBack(timeline []history.Entry, after []core.Message) bool {
	hidden := plain.Each(plain.Only(timeline, func(e history.Entry) bool { return len(e.HiddenBy) > 0 && e.InsertedBy == "" }),
		func(e history.Entry) core.Message { return e.Original })
	return slices.ContainsFunc(after, func(m core.Message) bool {
		return m.Kind == core.KindSummary && slices.ContainsFunc(hidden, func(h core.Message) bool { return equal(h, m) })
	})
}

// align gives messages of sent the IDs of their counterparts in view, rewritten or not: first equal messages, then
// messages with the same calls and results, then, between two of these, messages with equal number and roles. Others
// get new IDs.
func align(view, sent []core.Message) ([]core.Message, error) {
	after := slices.Clone(sent)
	at := make([]int, len(after)) // the index in view; -1 if there is none
	next := 0
	byRef := map[string]int{}
	for i := range view {
		if ref := reference(view[i]); ref != "" {
			byRef[ref] = i
		}
	}
	for i := range after {
		at[i] = -1
		if k, ok := byRef[reference(after[i])]; ok && k >= next {
			at[i] = k
		} else if reference(after[i]) == "" {
			if k := slices.IndexFunc(view[next:], func(m core.Message) bool { return equal(m, after[i]) }); k >= 0 {
				at[i] = next + k
			}
		}
		if at[i] >= 0 {
			next = at[i] + 1
		}
	}
	for i := 0; i < len(after); { // gaps
		if at[i] >= 0 {
			i++
			continue
		}
		end, from, to := i, 0, len(view)
		for end < len(after) && at[end] < 0 {
			end++
		}
		if i > 0 {
			from = at[i-1] + 1
		}
		if end < len(after) {
			to = at[end]
		}
		same := slices.EqualFunc(view[from:to], after[i:end], func(a, b core.Message) bool { return a.Role == b.Role })
		for k := i; same && k < end; k++ {
			at[k] = from + k - i
		}
		i = end
	}
	for i := range after {
		if at[i] < 0 {
			id, err := uuid.NewV7()
			if err != nil {
				return nil, err
			}
			after[i].ID, after[i].Kind = id.String(), core.KindSummary
			continue
		}
		m := view[at[i]]
		if !equal(m, after[i]) {
			m.Parts, m.Source = after[i].Parts, nil
		}
		after[i] = m
	}
	return after, nil
}

// reference names the calls and results of m; it is empty if there are none.
func reference(m core.Message) string {
	var ref strings.Builder
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.ToolCall:
			fmt.Fprintf(&ref, "call %q ", p.ID)
		case core.ToolResult:
			fmt.Fprintf(&ref, "result %q ", p.CallID)
		case core.Text, core.Image, core.Reasoning, core.Opaque:
		}
	}
	return ref.String()
}

// shared returns how many messages a and b begin with alike.
func shared(a, b []core.Message) int {
	n := 0
	for n < min(len(a), len(b)) && equal(a[n], b[n]) {
		n++
	}
	return n
}

// equal reports whether a and b say the same. Cache markers, which clients move, make no
// difference.
func equal(a, b core.Message) bool {
	return a.Role == b.Role && len(a.Parts) == len(b.Parts) && slices.EqualFunc(a.Parts, b.Parts, func(a, b core.Part) bool {
		return core.EqualParts([]core.Part{unmarked(a)}, []core.Part{unmarked(b)})
	})
}

func unmarked(p core.Part) core.Part {
	switch q := p.(type) {
	case core.Opaque:
		q.JSON = string(rawjson.DropField([]byte(q.JSON), "cache_control"))
		return q
	case core.ToolResult:
		q.Content = plain.Each(q.Content, unmarked)
		return q
	case core.Text, core.Image, core.Reasoning, core.ToolCall:
	}
	return p
}
