// Package hindsight watches the conversations of a gateway and measures, as each goes on, what its epochs were worth: what of the history that was
// condensed the agent needed later and did not find, what the condensations of other profiles would have kept of it, and what was saved. It
// shows that in pages. The measure is that of condense compare: a conversation that goes on is a recorded session whose end has not come yet.
//
// Everything is in memory, and bounded: the newest conversations, and of those the texts that fit.
package hindsight

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// Sent is the name of what was sent, next to the names of the profiles that were not.
const Sent = "sent"

// Limits of what is remembered.
const (
	mostConversations = 500
	mostEpochs        = 2000
	mostBytes         = 64 << 20 // of texts, compressed
	mostNeeds         = 20       // that are named, of an epoch
)

// milestones are the numbers of turns after an epoch at which it is measured. The last is as far as the scorer reads.
var milestones = []int{score.TurnsAfter, 12, 24, score.TurnsOfTheFuture}

// A Watch is a [live.Watcher]. It is safe for concurrent use.
type Watch struct {
	shadows []string
	counter *tokens.Counter
	log     *slog.Logger
	pack    *zstd.Encoder
	unpack  *zstd.Decoder

	mu            sync.Mutex
	conversations map[string]*conversation
	epochs        []*epoch // the oldest first
	bytes         int      // of their texts
	changes       int      // what the pages show has changed so often

	due  chan *epoch
	done sync.WaitGroup
}

// A conversation is what is known of one. Guarded by Watch.mu, like all below.
type conversation struct {
	ID                                  string
	Tenant, Agent, Model, Profile, Mode string
	Observe                             bool
	First, Last                         time.Time
	Turns, Messages, Tokens             int
	Input, Read, Write, Output          int
	Cost, Saved                         float64
	Unpriced                            int
	epochs                              []*epoch
}

// An epoch is a condensation of a conversation and what followed.
type epoch struct {
	live.Epoch
	N            int // in its conversation, from 1
	Profile      string
	Mode         string
	format       string
	conversation *conversation

	Turns  int     // answers since
	Saved  float64 // US dollars since; negative until it has paid for itself
	PaidAt int     // turns after which Saved was not negative any more; 0 if it has not
	Priced bool

	at      int               // messages of the client that it condensed
	last    []byte            // the last of them
	history []byte            // they, compressed
	views   map[string][]byte // what was sent, and what the shadows made, compressed
	Refused map[string]string // why a shadow made nothing
	journal []byte            // compressed
	future  [][]byte          // messages after them
	seen    int               // turns of the assistant in future
	due     int               // index in milestones

	After   int // turns of the future that it was measured with; 0 if it was not yet
	Rows    []lab.Row
	Missing []score.Need // the names that were needed, and are not in what was sent
}

// New returns a watch that compares what is sent with the shadows, which are names of profiles.
func New(shadows []string, log *slog.Logger) (*Watch, error) {
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return nil, err
	}
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	unpack, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	w := &Watch{shadows: shadows, counter: tokens.NewCounter(encoding), log: log, pack: pack, unpack: unpack, conversations: map[string]*conversation{}, due: make(chan *epoch, mostEpochs)}
	w.done.Go(w.measureAll)
	return w, nil
}

// Close ends the work in the background. No method but those of the pages may be called after it.
func (w *Watch) Close() {
	close(w.due)
	w.done.Wait()
	w.unpack.Close()
}

// Turn implements [live.Watcher].
func (w *Watch) Turn(t *live.Turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes++
	c := w.conversations[t.Conversation]
	if c == nil {
		w.forgetOldest()
		c = &conversation{ID: t.Conversation, First: t.Time}
		w.conversations[t.Conversation] = c
	}
	c.Tenant, c.Agent, c.Model, c.Profile, c.Mode, c.Observe = t.Tenant, t.Agent, t.Model, t.Profile, t.Mode, t.Observe
	c.Last, c.Messages, c.Tokens = t.Time, len(t.Messages), t.Tokens
	c.Turns++
	for _, e := range c.epochs {
		w.follow(e, t.Messages)
	}
	if t.Epoch != nil && len(t.Messages) > 0 {
		w.begin(c, t)
	}
}

// begin remembers an epoch.
func (w *Watch) begin(c *conversation, t *live.Turn) {
	e := &epoch{
		Epoch: *t.Epoch, N: len(c.epochs) + 1, Profile: t.Profile, Mode: t.Mode, format: t.Format, conversation: c, Priced: true,
		at: len(t.Messages), last: bytes.Clone(t.Messages[len(t.Messages)-1]), history: w.packed(t.Messages), journal: w.pack.EncodeAll(t.Journal, nil),
		views: map[string][]byte{Sent: w.packed(t.View)}, Refused: map[string]string{},
	}
	c.epochs = append(c.epochs, e)
	w.epochs = append(w.epochs, e)
	w.bytes += len(e.history) + len(e.journal) + len(e.views[Sent])
	w.shrink()
}

// follow adds what the client's history has after an epoch.
func (w *Watch) follow(e *epoch, messages [][]byte) {
	if e.history == nil || len(messages) <= e.at || !bytes.Equal(messages[e.at-1], e.last) { // a branch from before it
		return
	}
	for _, m := range messages[min(len(messages), e.at+len(e.future)):] {
		if e.seen >= score.TurnsOfTheFuture {
			break
		}
		e.future = append(e.future, bytes.Clone(m))
		w.bytes += len(m)
		if rawjson.Text(rawjson.Field(m, "role")) == string(core.RoleAssistant) || isOutput(m) {
			e.seen++
		}
	}
	for e.due < len(milestones) && e.seen >= milestones[e.due] {
		e.due++
		select {
		case w.due <- e:
		default: // too many are waiting: the next milestone
		}
	}
}

// isOutput reports whether an item of the Responses API is a call, which is a turn of its own there.
func isOutput(m []byte) bool {
	t := rawjson.Text(rawjson.Field(m, "type"))
	return t == "function_call" || t == "custom_tool_call" || t == "local_shell_call"
}

// Shadow implements [live.Watcher].
func (w *Watch) Shadow(id string, at time.Time, profile string, view [][]byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes++
	c := w.conversations[id]
	if c == nil {
		return
	}
	i := slices.IndexFunc(c.epochs, func(e *epoch) bool { return e.Time.Equal(at) })
	if i < 0 {
		return
	}
	e := c.epochs[i]
	switch {
	case err != nil:
		e.Refused[profile] = err.Error()
	case e.history != nil:
		e.views[profile] = w.packed(view)
		w.bytes += len(e.views[profile])
		w.shrink()
	}
}

// Answer implements [live.Watcher].
func (w *Watch) Answer(id string, u *live.Used) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes++
	c := w.conversations[id]
	if c == nil {
		return
	}
	c.Input += u.Input
	c.Read += u.Read
	c.Write += u.Write
	c.Output += u.Output
	c.Cost += u.Cost
	c.Saved += u.Saved
	if !u.Priced {
		c.Unpriced++
	}
	if n := len(c.epochs); n > 0 { // what is saved now is due to the newest
		e := c.epochs[n-1]
		if e.Time.Equal(u.Time) {
			e.CacheRead, e.CacheWrite = u.Read, u.Write
		}
		e.Turns++
		e.Saved += u.Saved
		e.Priced = e.Priced && u.Priced
		if e.PaidAt == 0 && e.Saved > 0 {
			e.PaidAt = e.Turns
		} else if e.Saved < 0 {
			e.PaidAt = 0
		}
	}
}

// forgetOldest makes room for a conversation.
func (w *Watch) forgetOldest() {
	if len(w.conversations) < mostConversations {
		return
	}
	var oldest *conversation
	for _, c := range w.conversations {
		if oldest == nil || c.Last.Before(oldest.Last) {
			oldest = c
		}
	}
	for _, e := range oldest.epochs {
		w.drop(e)
	}
	w.epochs = slices.DeleteFunc(w.epochs, func(e *epoch) bool { return e.conversation == oldest })
	delete(w.conversations, oldest.ID)
}

// shrink drops the texts of the oldest epochs until the rest fits. What was measured stays.
func (w *Watch) shrink() {
	for i := 0; w.bytes > mostBytes && i < len(w.epochs)-1; i++ {
		w.drop(w.epochs[i])
	}
	for len(w.epochs) > mostEpochs {
		w.drop(w.epochs[0])
		c := w.epochs[0].conversation
		c.epochs = slices.DeleteFunc(c.epochs, func(e *epoch) bool { return e == w.epochs[0] })
		w.epochs = w.epochs[1:]
	}
}

// drop frees the texts of an epoch.
func (w *Watch) drop(e *epoch) {
	w.bytes -= len(e.history) + len(e.journal)
	for _, v := range e.views {
		w.bytes -= len(v)
	}
	for _, m := range e.future {
		w.bytes -= len(m)
	}
	e.history, e.journal, e.views, e.future, e.Missing = nil, nil, nil, nil, nil
}

// packed compresses messages.
func (w *Watch) packed(messages [][]byte) []byte {
	return w.pack.EncodeAll(rawjson.Array(messages), nil)
}

// measureAll measures the epochs that are due, one after the other.
func (w *Watch) measureAll() {
	for e := range w.due {
		if err := w.measure(e); err != nil {
			w.log.Warn("an epoch could not be measured", "err", err)
		}
	}
}

// measure measures an epoch by what has followed so far.
func (w *Watch) measure(e *epoch) (err error) {
	defer func() { // the texts are anyone's
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	w.mu.Lock()
	c, history, future, seen, packed := e.conversation, e.history, slices.Clone(e.future), e.seen, maps.Clone(e.views)
	w.mu.Unlock()
	if history == nil {
		return nil // dropped meanwhile
	}
	before, err := w.read(e.format, history, nil)
	if err != nil {
		return err
	}
	all, err := w.read(e.format, history, future)
	if err != nil {
		return err
	}
	s := &score.Session{ID: c.ID, Source: c.ID, Format: e.format, Mode: e.Mode, Messages: all}
	if e.Mode != "" {
		s.ID += " in " + e.Mode
	}
	var views []lab.View
	for _, name := range append([]string{Sent}, w.shadows...) {
		if packed[name] == nil {
			continue
		}
		view, err := w.read(e.format, packed[name], nil)
		if err != nil {
			return err
		}
		views = append(views, lab.View{Strategy: name, Messages: view})
	}
	rows, needs := lab.Judge(s, len(before), views, w.counter)
	needs = slices.DeleteFunc(needs, func(n score.Need) bool { return n.Present || n.Verdict == score.Reachable })
	w.mu.Lock()
	defer w.mu.Unlock()
	e.After, e.Rows = seen, rows
	if e.history != nil {
		e.Missing = needs[:min(len(needs), mostNeeds)]
	}
	w.changes++
	return nil
}

// read returns packed messages and what follows them, measured.
func (w *Watch) read(format string, packed []byte, more [][]byte) ([]core.Message, error) {
	text, err := w.unpack.DecodeAll(packed, nil)
	if err != nil {
		return nil, err
	}
	var messages [][]byte
	for m := range rawjson.Elements(text) {
		messages = append(messages, m)
	}
	d, err := transcript.Read(bytes.NewReader(rawjson.Array(append(messages, more...))), &transcript.ReadOptions{Format: format})
	if err != nil {
		return nil, err
	}
	view := d.Journal.View()
	for i := range view {
		view[i].Source = nil
	}
	core.Measure(w.counter, view)
	return view, nil
}

// document returns the condensed conversation of an epoch; nil if it was dropped.
func (w *Watch) document(conversation string, n int) (*transcript.Document, error) {
	w.mu.Lock()
	var journal []byte
	if c := w.conversations[conversation]; c != nil {
		for _, e := range c.epochs {
			if e.N == n {
				journal = e.journal
			}
		}
	}
	w.mu.Unlock()
	if journal == nil {
		return nil, nil //nolint:nilnil // there is none any more
	}
	text, err := w.unpack.DecodeAll(journal, nil)
	if err != nil {
		return nil, err
	}
	return transcript.Read(bytes.NewReader(text), &transcript.ReadOptions{Format: "condense"})
}

// Report returns the comparison of what was sent with the shadows, on all measured epochs.
func (w *Watch) Report() *lab.Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	var rows []lab.Row
	for _, e := range w.epochs {
		rows = append(rows, e.Rows...)
	}
	return lab.Judged(rows, append([]string{Sent}, w.shadows...), tokens.O200kBase)
}
