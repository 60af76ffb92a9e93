// Package online measures the epochs of a running gateway's conversations: which of the condensed content the agent
// needed later and did not find, and how much money was saved. It shows the results on pages. It measures as condense compare does: an ongoing conversation
// is a recorded session without an end.
//
// Texts are in memory only, and bounded: it keeps the texts of the newest conversations that fit. The numbers are written to the
// gateway's store, as [Evidence], so that they survive the process and include all gateways with that store.
package online

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/tokens"
)

// Limits of memory.
const (
	mostConversations = 500
	mostEpochs        = 2000
	mostBytes         = 64 << 20 // of texts, compressed
	mostNeeds         = 20       // named, for each epoch
)

// milestones are the numbers of turns after an epoch at which it is measured. The last is the scorer's horizon.
var milestones = []int{score.TurnsAfter, 12, 24, score.TurnsOfTheFuture}

// A Watch is a [live.Watcher]. It is safe for concurrent use.
type Watch struct {
	counter *tokens.Counter
	log     *slog.Logger
	pack    *zstd.Encoder
	unpack  *zstd.Decoder

	store  store.Store // nil if nothing is stored
	source string      // begins the IDs of the records of this process
	end    context.CancelFunc

	mu            sync.Mutex
	conversations map[string]*conversation
	others        map[string]*Evidence // of other processes, by the ID of the record
	epochs        []*epoch             // the oldest first
	bytes         int                  // of their texts
	links         string               // begins the paths of the pages in links
	changes       int                  // version of the data that the pages show

	due             chan *epoch
	hurry           context.Context //nolint:containedctx // done when no more epochs should be measured
	stop            context.CancelFunc
	measuring, kept sync.WaitGroup
}

// A conversation is the state of one conversation. Guarded by Watch.mu, like all types below.
type conversation struct {
	Evidence

	epochs  []*epoch     // of this process
	changed bool         // since it was last written
	record  store.Record // used only by the goroutine that writes
}

// An epoch is an epoch of this process, with the texts by which it is measured.
type epoch struct {
	*Epoch

	format       string
	conversation *conversation

	at      int          // messages of the client that it condensed
	last    []byte       // the last of these messages
	history []byte       // these messages, compressed
	head    []byte       // system prompt and tools as members of the request, compressed
	view    []byte       // that was sent, compressed
	journal []byte       // compressed
	future  [][]byte     // later messages
	seen    int          // turns of the assistant in future
	due     int          // index in milestones
	missing []score.Need // needed names that the sent view does not have
}

// New returns a watch that keeps the
// numbers in the store at an address in the form of [live.Options]; empty or "memory" means memory.
func New(ctx context.Context, address string, log *slog.Logger) (*Watch, error) {
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
	w := &Watch{
		counter: tokens.NewCounter(encoding), log: log, pack: pack, unpack: unpack, conversations: map[string]*conversation{},
		due: make(chan *epoch, mostEpochs), source: strings.ToLower(rand.Text()[:firstSource]) + "-",
	}
	if address != "" && address != "memory" {
		if w.store, err = store.Open(ctx, address); err != nil {
			unpack.Close()
			return nil, err
		}
	}
	var life context.Context
	life, w.end = context.WithCancel(context.WithoutCancel(ctx))
	w.hurry, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	w.measuring.Go(w.measureAll)
	if w.store != nil {
		w.kept.Go(func() { w.keeping(life) })
	}
	return w, nil
}

// Close measures due epochs until ctx ends, and writes the results. Only the methods for pages may be called after
// it.
func (w *Watch) Close(ctx context.Context) error {
	close(w.due)
	defer context.AfterFunc(ctx, w.stop)()
	w.measuring.Wait()
	w.stop()
	w.end()
	w.kept.Wait()
	w.unpack.Close()
	if w.store == nil {
		return nil
	}
	return w.store.Close()
}

// Turn implements [live.Watcher].
func (w *Watch) Turn(t *live.Turn) {
	var begins *epoch
	if t.Epoch != nil && len(t.Messages) > 0 { // compress before locking w, for which all requests wait
		begins = &epoch{
			format: t.Format, at: len(t.Messages), last: bytes.Clone(t.Messages[len(t.Messages)-1]), history: w.packed(t.Messages), head: w.compressed(headOf(t)),
			journal: w.compressed(t.Journal), view: w.packed(t.View),
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes++
	c := w.conversations[t.Conversation]
	if c == nil {
		w.forgetOldest()
		c = &conversation{Evidence: Evidence{ID: t.Conversation, First: t.Time, Epochs: []*Epoch{}}}
		c.record = store.Record{ID: w.source + t.Conversation, Key: store.Key{Tenant: t.Tenant, API: api, Session: t.Conversation}}
		if name, _, named := strings.Cut(t.Tenant, ":"); named {
			c.Tenant = name
		}
		w.conversations[t.Conversation] = c
	}
	c.changed = true
	c.Agent, c.Model, c.Profile, c.Mode, c.Observe = t.Agent, t.Model, t.Profile, t.Mode, t.Observe
	c.Last, c.Messages, c.Tokens = t.Time, len(t.Messages), t.Tokens
	c.Turns++
	c.point(t)
	for _, e := range c.epochs {
		w.follow(e, t.Messages)
	}
	if e := begins; e != nil {
		e.conversation, e.Epoch = c, c.epoch(t.Epoch.Time)
		e.Epoch.Epoch, e.Profile, e.Mode = *t.Epoch, t.Profile, t.Mode
		c.epochs = append(c.epochs, e)
		w.epochs = append(w.epochs, e)
		w.bytes += len(e.last) + len(e.history) + len(e.head) + len(e.journal) + len(e.view)
	}
	w.shrink()
}

// epoch returns the epoch that began at a time, creating it if this process does not have it yet.
func (c *conversation) epoch(began time.Time) *Epoch {
	i := slices.IndexFunc(c.Epochs, func(e *Epoch) bool { return e.Time.Equal(began) })
	if i < 0 {
		i = len(c.Epochs)
		c.Epochs = append(c.Epochs, &Epoch{Epoch: live.Epoch{Time: began, Lineage: c.ID}})
	}
	return c.Epochs[i]
}

// follow adds the messages of the client's history after an epoch.
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
	if i := slices.IndexFunc(c.Curve, func(p Point) bool { return p.Time.Equal(u.Time) }); i >= 0 {
		c.Curve[i].Saved = c.Saved
	}
	if !u.Priced {
		c.Unpriced++
	}
	c.changed = true
	if !u.Epoch.IsZero() { // these savings are due to the epoch
		e := c.epoch(u.Epoch)
		if e.Time.Equal(u.Time) {
			e.CacheRead, e.CacheWrite = u.Read, u.Write
		}
		e.Answers++
		e.Saved += u.Saved
		e.Unpriced = e.Unpriced || !u.Priced
		if e.PaidAt == 0 && e.Saved > 0 {
			e.PaidAt = e.Answers
		} else if e.Saved < 0 {
			e.PaidAt = 0
		}
	}
}

// Recall implements [live.Watcher].
func (w *Watch) Recall(id string, began time.Time, tokens int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.conversations[id]
	if c == nil || began.IsZero() {
		return
	}
	w.changes++
	c.changed = true
	e := c.epoch(began)
	e.Recalls++
	e.Recalled += tokens
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
	w.remove(oldest)
}

// remove forgets a conversation.
func (w *Watch) remove(c *conversation) {
	for _, e := range c.epochs {
		w.drop(e)
	}
	w.epochs = slices.DeleteFunc(w.epochs, func(e *epoch) bool { return e.conversation == c })
	delete(w.conversations, c.ID)
	w.changes++
}

// shrink drops the texts of the oldest epochs until the rest fits. Their measurements stay.
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
	w.bytes -= len(e.last) + len(e.history) + len(e.head) + len(e.journal) + len(e.view)
	for _, m := range e.future {
		w.bytes -= len(m)
	}
	e.last, e.history, e.head, e.journal, e.view, e.future, e.missing = nil, nil, nil, nil, nil, nil, nil
}

// packed compresses messages.
func (w *Watch) packed(messages [][]byte) []byte {
	return w.compressed(rawjson.Array(messages))
}

// compressed returns a compressed copy of text of its own size: the encoder returns an array as large as the text,
// mostly unused.
func (w *Watch) compressed(text []byte) []byte { return bytes.Clone(w.pack.EncodeAll(text, nil)) }
