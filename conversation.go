package condense

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/internal/value/ledger"
	"github.com/condensehq/condense/tokens"
)

// A Conversation is a journal of messages and condensations, and the facts that a [Host] remembers
// of it between turns. It must not be used concurrently.
type Conversation struct {
	journal *history.Journal
	state   policy.State

	originals string // the directory for them; empty for nowhere

	tokenizer string // that the view was measured with; empty before the first time
	counted   int    // messages of the view that the tokens below cover
	pinned    int    // tokens that no condensation may remove
	summaries int    // tokens that earlier condensations inserted, if not pinned
	said      int    // tokens of all other messages

	byKind map[tokens.Kind]int // tokens of the view
	booked int                 // messages of the view that byKind covers
}

// NewConversation returns an empty conversation in memory.
func NewConversation() *Conversation { return ResumeConversation(history.New()) }

// ResumeConversation returns a conversation with the messages and condensations of a
// journal: one from a [history.File], which keeps it on disk, or from a transcript.
func ResumeConversation(j *history.Journal) *Conversation { return &Conversation{journal: j} }

// Journal returns the journal. Messages may be appended to it directly; everything that
// removes messages from the view must go through the conversation.
func (c *Conversation) Journal() *history.Journal { return c.journal }

// Append adds messages to the end: all of them or, if it returns an error, none. A message
// without an ID gets one, a UUID of version 7; the argument is not changed, and
// [Conversation.View] has the messages with their IDs. The cost does not depend on the
// length of the conversation.
func (c *Conversation) Append(messages ...core.Message) error {
	named, err := withIDs(messages)
	if err != nil {
		return err
	}
	return c.journal.Append(named...)
}

// withIDs returns the messages if each has an ID, else a copy in which each has one.
func withIDs(messages []core.Message) ([]core.Message, error) {
	unnamed := func(m core.Message) bool { return m.ID == "" }
	if !slices.ContainsFunc(messages, unnamed) {
		return messages, nil
	}
	messages = slices.Clone(messages)
	for i := range messages {
		if m := &messages[i]; unnamed(*m) {
			id, err := uuid.NewV7()
			if err != nil {
				return nil, err
			}
			m.ID = id.String()
		}
	}
	return messages, nil
}

// View returns the messages to send to the model, oldest first. It is read-only.
func (c *Conversation) View() []core.Message { return c.journal.View() }

// Rewind goes back to the message id: see [history.Journal.Rewind].
func (c *Conversation) Rewind(id string) error { return c.reset(c.journal.Rewind(id)) }

// Undo reverts the condensation id: see [history.Journal.Undo].
func (c *Conversation) Undo(id string) error { return c.reset(c.journal.Undo(id)) }

// UndoRewind reverts the latest rewind: see [history.Journal.UndoRewind].
func (c *Conversation) UndoRewind() (to string, err error) {
	to, err = c.journal.UndoRewind()
	return to, c.reset(err)
}

// Protect keeps messages, by their IDs, verbatim from now on or, if on is false, no longer: see
// [history.Journal.Protect].
func (c *Conversation) Protect(on bool, ids ...string) error {
	if err := c.journal.Protect(on, ids...); err != nil {
		return err
	}
	c.changed()
	return nil
}

// reset forgets the state and the sums of a view that has changed, unless err says that it
// has not.
func (c *Conversation) reset(err error) error {
	if err == nil {
		c.state = policy.State{}
		c.changed()
	}
	return err
}

// changed forgets the sums over a view that has changed.
func (c *Conversation) changed() {
	c.counted, c.pinned, c.summaries, c.said = 0, 0, 0, 0
	c.byKind, c.booked = nil, 0
}

// measure counts every message of the view with counter, which has that name. Messages
// that were counted before cost nothing.
func (c *Conversation) measure(name string, counter core.Counter) {
	if c.tokenizer != name {
		c.journal.Measure(counter)
		c.tokenizer = name
		c.changed()
	}
	view := c.journal.View()
	for i := c.counted; i < len(view); i++ {
		switch m := &view[i]; {
		case pinned(m):
			c.pinned += m.Tokens
		case dialog.AllInserted(m):
			c.summaries += m.Tokens
		default:
			c.said += m.Tokens
		}
	}
	c.counted = len(view)
}

// kinds returns the tokens of the view by kind, read-only. Messages that it has seen before
// cost nothing.
func (c *Conversation) kinds(r *dialog.Reader, counter *tokens.Counter) map[tokens.Kind]int {
	view := c.journal.View()
	fresh := view[min(c.booked, len(view)):]
	by := counter.BreakdownMeasured(fresh...)
	dialog.Regroup(r, by, counter, fresh...)
	for kind, n := range c.byKind {
		by[kind] += n
	}
	c.byKind, c.booked = by, len(view)
	return by
}

// pinned reports whether no condensation may remove m.
func pinned(m *core.Message) bool { return m.Protected || m.Role == core.RoleSystem }

// KeepOriginals names the directory in which the host keeps the messages that condensations hide or
// rewrite, if the configuration says so (originals: parts): a file part-N.jsonl for each,
// see [history.EncodeOriginals]. The directory is made when it is needed. If it is empty,
// as it is at first, nothing is written.
func (c *Conversation) KeepOriginals(dir string) { c.originals = dir }

// Recall finds content by its handle, hidden or not: see [history.Journal.Recall].
func (c *Conversation) Recall(handle string) []history.Recalled { return c.journal.Recall(handle) }

// nextPart returns the path of the file that comes after those in dir, in which files can be made.
func nextPart(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	isNew := errors.Is(err, fs.ErrNotExist)
	if isNew {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", err
	}
	trial, err := os.CreateTemp(dir, ".trial-*") // before a summary says that the file is there
	if err == nil {
		err = errors.Join(trial.Close(), os.Remove(trial.Name()))
	}
	if isNew {
		err = errors.Join(err, os.Remove(dir)) // it is made when it is needed
	}
	if err != nil {
		return "", err
	}
	last := 0
	for _, e := range entries {
		digits, isPart := strings.CutPrefix(e.Name(), "part-")
		digits, isLines := strings.CutSuffix(digits, ".jsonl")
		if n, err := strconv.Atoi(digits); err == nil && isPart && isLines {
			last = max(last, n)
		}
	}
	return filepath.Abs(filepath.Join(dir, "part-"+strconv.Itoa(last+1)+".jsonl"))
}

// fromDir returns path relative to dir if it is below it.
func fromDir(dir, path string) string {
	if dir == "" {
		return path
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// keepOriginals writes the messages that a condensation hides or rewrites, which is about to be recorded, as they were
// recorded, to a file that must not exist and is written whole or not at all. Its path is empty if there was nothing to
// write. Undo removes it.
func (p *plan) keepOriginals(c *Conversation, e *core.Edit) (path string, undo func() error, err error) {
	none := func() error { return nil }
	touched := plain.Set(e.Hide)
	for i := range e.Rewrite {
		touched[e.Rewrite[i].ID] = true
	}
	if p.part == "" || len(touched) == 0 {
		return "", none, nil
	}
	var messages []core.Message
	for _, m := range c.View() { // for their order
		if touched[m.ID] {
			if m, ok := c.journal.Message(m.ID); ok {
				messages = append(messages, m)
			}
		}
	}
	if err = os.MkdirAll(filepath.Dir(p.part), 0o700); err == nil {
		err = disk.Create(p.part, func(w io.Writer) error { return history.EncodeOriginals(w, messages) })
	}
	if err != nil {
		return "", none, err
	}
	return p.part, func() error { return os.Remove(p.part) }, nil
}

// names reports whether a message that is not from the conversation names a path.
func names(messages []core.Message, path string) bool {
	return slices.ContainsFunc(messages, func(m core.Message) bool {
		return m.Kind != core.KindOriginal && slices.ContainsFunc(m.Parts, func(p core.Part) bool {
			t, ok := p.(core.Text)
			return ok && strings.Contains(string(t), path)
		})
	})
}

// hidden returns [core.Request.Hidden] for a view: the originals of the journal that active condensations hide or rewrite, and the earlier
// messages of the turn. A redacted message stays redacted, and secrets are removed, because a provider may insert a text, which is then
// sent. Own is [recorded].
func (p *plan) hidden(own func() (all, lacking []core.Message), t Turn) func(ids ...string) ([]core.Message, error) {
	known := sync.OnceValues(func() ([]core.Message, error) {
		all, err := p.unseen(t.Earlier)
		_, lacking := own()
		all = slices.Concat(lacking, all)
		for i := range all {
			all[i] = core.Message{ID: all[i].ID, Role: all[i].Role, Kind: all[i].Kind, Time: all[i].Time, Parts: scrubbed(all[i].Parts)}
		}
		core.Measure(p.set.counter, all)
		return all, err
	})
	return func(ids ...string) (out []core.Message, _ error) {
		all, err := known()
		named := plain.Set(ids)
		for _, m := range all {
			if len(ids) == 0 {
				m.Parts = nil
			} else if !named[m.ID] {
				continue
			}
			delete(named, m.ID)
			out = append(out, m.Clone())
		}
		for id := range named {
			return nil, fmt.Errorf("no message %q is hidden", id)
		}
		return out, err
	}
}

// recorded returns the messages of a timeline as they were, redacted ones redacted, and those that the view lacks or shortens.
func recorded(timeline []history.Entry, done []history.Condensation) (all, lacking []core.Message) {
	redacted := map[string][]core.Part{}
	for i := range done {
		for _, r := range done[i].Edit.Rewrite {
			if redacts(r.Parts) {
				redacted[r.ID] = r.Parts
			}
		}
	}
	for _, e := range timeline {
		if m := e.Original; e.InsertedBy == "" {
			if redacted[m.ID] != nil {
				m.Parts = redacted[m.ID]
			}
			if all = append(all, m); len(e.HiddenBy) > 0 || e.RewrittenBy != "" {
				lacking = append(lacking, m)
			}
		}
	}
	return all, lacking
}

// file returns [core.Request.File] for a view: what the journal and the earlier messages of the turn show, which the view may only repeat
// shortened. Own is [recorded]; its files are read when a provider asks.
func (p *plan) file(own func() (all, lacking []core.Message), t Turn) func(path string) ([]core.FilePiece, error) {
	shown := sync.OnceValues(func() (*ledger.Ledger, error) {
		var all []core.Message
		var err error
		if t.Earlier != nil {
			all, err = t.Earlier()
		}
		last, numbers, redacted := 0, map[string]int{}, map[int]bool{}
		for i := range p.view {
			m := &p.view[i]
			numbers[m.ID], redacted[m.Number] = m.Number, redacted[m.Number] || redacts(m.Parts)
		}
		all = slices.DeleteFunc(all, func(m core.Message) bool {
			last = max(last, m.Number)
			return m.Number > 0 && redacted[m.Number]
		})
		mine, _ := own()
		all = append(all, plain.Only(mine, func(m core.Message) bool { n := numbers[m.ID]; return last == 0 || n == 0 || n > last })...)
		l := &ledger.Ledger{}
		l.Replay(all, dialog.Read(all), 0, len(all))
		return l, err
	})
	return func(path string) (pieces []core.FilePiece, _ error) {
		l, err := shown()
		if f := l.Known(path); f != nil {
			for _, r := range f.Runs {
				piece := core.FilePiece{First: r.First}
				var text strings.Builder
				for _, line := range r.Lines {
					text.WriteString(line.Text + "\n")
					piece.Unsure = piece.Unsure || line.Seen < f.Unsure
				}
				piece.Text = secret.Scrub(text.String())
				pieces = append(pieces, piece)
			}
		}
		return pieces, err
	}
}

// unseen returns the messages whose content is not in the view, nor redacted there, under IDs that no message of the view has.
func (p *plan) unseen(earlier func() ([]core.Message, error)) (out []core.Message, _ error) {
	if earlier == nil {
		return nil, nil
	}
	of := func(m *core.Message) string { return string(m.Role) + core.Handle(core.ToolResult{Content: m.Parts}) }
	seen, numbers := map[string]bool{}, map[int]bool{}
	for i := range p.view {
		m := &p.view[i]
		seen[of(m)], numbers[m.Number] = true, numbers[m.Number] || m.Number > 0 && redacts(m.Parts)
	}
	all, err := earlier()
	for _, m := range all {
		if !seen[of(&m)] && !numbers[m.Number] {
			m.ID = "earlier-" + m.ID
			out = append(out, m)
		}
	}
	return out, err
}

// redacts reports whether parts have the mark of a redaction.
func redacts(parts []core.Part) bool {
	return slices.ContainsFunc(parts, func(p core.Part) bool {
		r, isResult := p.(core.ToolResult)
		t, _ := p.(core.Text)
		return isResult && redacts(r.Content) || strings.Contains(string(t), core.Redacted)
	})
}

// scrubbed returns parts without secrets.
func scrubbed(parts []core.Part) []core.Part {
	out := slices.Clone(parts)
	for i, p := range out {
		switch p := p.(type) {
		case core.Text:
			out[i] = core.Text(secret.Scrub(string(p)))
		case core.ToolCall:
			out[i] = core.ToolCall{ID: p.ID, Name: p.Name, Args: secret.Scrub(p.Args)}
		case core.ToolResult:
			out[i] = core.ToolResult{CallID: p.CallID, Content: scrubbed(p.Content), IsError: p.IsError}
		case core.Opaque:
			out[i] = core.Opaque{Kind: p.Kind, JSON: secret.Scrub(p.JSON)}
		case core.Reasoning:
			out[i] = core.Reasoning{Text: secret.Scrub(p.Text), Signature: p.Signature, Encrypted: p.Encrypted}
		case core.Image: // holds no text that others read
		}
	}
	return out
}
