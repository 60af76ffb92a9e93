package condense

import (
	"slices"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/tokens"
)

// A Conversation is what a [Host] manages: a journal, and what the host remembers of it
// between turns. It must not be used concurrently.
type Conversation struct {
	journal *history.Journal
	state   policy.State

	originals string // the directory for them; empty for nowhere

	tokenizer string // the view is measured with; empty if it is not
	counted   int    // messages of the view that the tokens below cover
	pinned    int    // that no condensation may remove
	summaries int    // of what earlier condensations put in place of messages, if not pinned
	said      int    // of all other messages

	byKind map[tokens.Kind]int // tokens of the view
	booked int                 // messages of the view that byKind covers
}

// NewConversation returns a conversation whose messages are those of the journal: one in
// memory, or that of a [history.File], which keeps it on disk.
func NewConversation(j *history.Journal) *Conversation { return &Conversation{journal: j} }

// Journal returns the journal. Messages may be appended to it directly; what takes
// messages away must go through the conversation.
func (c *Conversation) Journal() *history.Journal { return c.journal }

// Append adds messages to the end: all of them or, if it returns an error, none. A message
// without an ID gets one, a UUID of version 7; the messages that were passed stay as they
// are, and [Conversation.View] has those with the IDs. The cost does not depend on the
// messages already there.
func (c *Conversation) Append(messages ...core.Message) error {
	named, err := withIDs(messages)
	if err != nil {
		return err
	}
	return c.journal.Append(named...)
}

// withIDs returns messages of which each has an ID: the same ones if each had one before.
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

// Undo takes the condensation id back: see [history.Journal.Undo].
func (c *Conversation) Undo(id string) error { return c.reset(c.journal.Undo(id)) }

// UndoRewind takes the latest rewind back: see [history.Journal.UndoRewind].
func (c *Conversation) UndoRewind() (to string, err error) {
	to, err = c.journal.UndoRewind()
	return to, c.reset(err)
}

// Protect has the message id kept verbatim from now on, or with on false not any more: see
// [history.Journal.Protect].
func (c *Conversation) Protect(id string, on bool) error {
	if err := c.journal.Protect(id, on); err != nil {
		return err
	}
	c.changed()
	return nil
}

// State returns what the host remembers between turns, to be stored by programs that
// outlive it.
func (c *Conversation) State() policy.State { return c.state }

// SetState restores what [Conversation.State] returned.
func (c *Conversation) SetState(s policy.State) { c.state = s }

// reset forgets what was known of a view that changed, if it did.
func (c *Conversation) reset(err error) error {
	if err == nil {
		c.state = policy.State{}
		c.changed()
	}
	return err
}

// changed forgets what was added up over a view that is now another.
func (c *Conversation) changed() {
	c.counted, c.pinned, c.summaries, c.said = 0, 0, 0, 0
	c.byKind, c.booked = nil, 0
}

// measure sees to it that every message of the view is counted by the counter, which is
// the one of that name. It costs nothing for messages that were counted before.
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

// nothingNew reports whether nothing was said since the last condensation. A file of a
// format that records none may hold summaries all the same.
func (c *Conversation) nothingNew() bool {
	return c.journal.Settled() || c.summaries > 0 && c.said == 0
}

// kinds returns the tokens of the view by kind, read-only. It costs nothing for messages
// that it was asked about before.
func (c *Conversation) kinds(counter *tokens.Counter) map[tokens.Kind]int {
	view := c.journal.View()
	by := counter.BreakdownMeasured(view[min(c.booked, len(view)):]...)
	for kind, n := range c.byKind {
		by[kind] += n
	}
	c.byKind, c.booked = by, len(view)
	return by
}

// pinned reports whether no condensation may remove m.
func pinned(m *core.Message) bool { return m.Protected || m.Role == core.RoleSystem }
