package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core"
)

// A Journal holds the messages of one conversation and its condensations. It does not copy
// the content of messages, neither when it stores nor when it returns them: neither side may
// modify parts or Source afterwards.
//
// A Journal may be read concurrently. It must not be used while a method that changes it
// runs; slices that it returned before are safe to read even then.
// The zero value is not ready; use [New].
type Journal struct {
	id   string
	meta json.RawMessage

	log          []record
	nodes        map[string]*node    // by message ID, including messages dropped by a rewind
	applications map[string]*applied // by condensation ID; likewise

	first, last *node      // the timeline
	applied     []*applied // in the order of application; the undone ones too, the dropped not

	view   []core.Message
	tokens int
	pass   int // numbers the walks over nodes, so that marks need not be cleared

	counter core.Counter
	epoch   int // how many counters there were

	// store, if set, makes lines durable before they take effect.
	store    func(lines []byte, sync bool) error
	unsealed bool // the file is of version 1: its lines have no checksums
}

// A record is one line of the log. Exactly one field is set.
type record struct {
	message      *node
	condensation *applied
	undo         string   // ID of a condensation
	rewind       *rewound // a rewind
	undoRewind   *rewound // that a rewind was undone
	protect      string   // ID of a message
	unprotect    string   // likewise
}

// A rewound is a rewind that a journal holds.
type rewound struct {
	to     string // ID of a message
	undone bool
}

// A node is a message in the timeline.
type node struct {
	prev, next *node

	message  core.Message // as recorded
	epoch    int          // the counter that message.Tokens is of
	pos      int          // index in the log of the record that brought it
	by       *applied     // the condensation that inserted it; nil for an original
	rewrites []*rewrite   // oldest first
	keep     *bool        // the last [Journal.Protect], if any

	dropped bool // by a rewind
	shown   bool // it is in the view
	gone    int  // the pass that found it hidden
	mark    int  // the pass that met it last
}

type rewrite struct {
	by     *applied
	parts  []core.Part
	tokens int
	epoch  int
}

// New returns an empty journal with a random ID.
func New() *Journal { return newJournal(uuid.NewString()) }

func newJournal(id string) *Journal {
	return &Journal{id: id, nodes: map[string]*node{}, applications: map[string]*applied{}}
}

// ID returns the UUID of the journal.
func (j *Journal) ID() string { return j.id }

// Meta returns the argument of the last [Journal.SetMeta], or nil. It must not be modified.
func (j *Journal) Meta() json.RawMessage { return j.meta }

// SetMeta stores meta in the header of the journal, which does not interpret it. It fails if
// meta is not JSON. Whitespace between tokens is removed, every other byte kept. The meta of
// a [File] cannot change after it is created.
func (j *Journal) SetMeta(meta json.RawMessage) error {
	if j.store != nil {
		return errors.New("meta: the header of a file is not written twice")
	}
	var b bytes.Buffer
	if err := json.Compact(&b, meta); err != nil {
		return fmt.Errorf("meta: %w", err)
	}
	// The header nests meta in two objects, and parsers limit the depth.
	if header := appendHeader(nil, j.id, b.Bytes()); !json.Valid(header) {
		return errors.New("meta: nested too deeply")
	}
	j.meta = b.Bytes()
	return nil
}

// Append records messages at the end of the conversation: all of them or, if it returns
// an error, none. Each needs an ID that no message of this journal ever had, including hidden
// and dropped ones. The cost does not depend on the number of earlier messages.
func (j *Journal) Append(messages ...core.Message) error {
	for i := range messages {
		if messages[i].ID == "" {
			return fmt.Errorf("message %d of the %d to append has no ID: set one that is unique in the conversation; host.Conversation.Append does so by itself", i+1, len(messages))
		}
	}
	added, err := j.register(messages)
	if err != nil {
		return err
	}
	if j.store != nil { // otherwise nothing reads the records
		records := make([]record, len(added))
		for i := range added {
			records[i].message = &added[i]
		}
		if err := j.keep(false, records...); err != nil {
			j.forget(messages)
			return err
		}
	}
	j.extend(added)
	for i := range added {
		j.show(&added[i])
	}
	return nil
}

// keep makes records durable, if the journal is a file's, before they take effect.
func (j *Journal) keep(sync bool, records ...record) error {
	if j.store == nil {
		return nil
	}
	var lines []byte
	for _, r := range records {
		var err error
		if lines, err = appendRecord(lines, r, !j.unsealed); err != nil {
			return err
		}
	}
	return j.store(lines, sync)
}

// register reserves the IDs of messages. On error it reserves none.
func (j *Journal) register(messages []core.Message) ([]node, error) {
	added := make([]node, len(messages))
	for i := range messages {
		m := &messages[i]
		if err := j.fresh(m.ID); err != nil {
			j.forget(messages[:i])
			return nil, err
		}
		added[i] = node{message: *m, epoch: j.epochOf(m.Tokens)}
		j.nodes[m.ID] = &added[i]
	}
	return added, nil
}

func (j *Journal) forget(messages []core.Message) {
	for i := range messages {
		delete(j.nodes, messages[i].ID)
	}
}

// fresh reports an error if no new message may have the ID id.
func (j *Journal) fresh(id string) error {
	switch {
	case id == "":
		return errors.New("a message has no ID")
	case !utf8.ValidString(id):
		return fmt.Errorf("message %q: the ID is not valid UTF-8", id)
	case j.nodes[id] != nil:
		return fmt.Errorf("message %q: the ID was used before in this journal", id)
	}
	return nil
}

// extend puts registered messages at the end of log and timeline.
func (j *Journal) extend(added []node) {
	for i := range added {
		n := &added[i]
		n.pos = len(j.log)
		j.log = append(j.log, record{message: n})
		j.link(n, j.last)
	}
}

// link inserts n after the given node, or at the front if after is nil.
func (j *Journal) link(n, after *node) {
	n.prev = after
	if after == nil {
		n.next, j.first = j.first, n
	} else {
		n.next, after.next = after.next, n
	}
	if n.next == nil {
		j.last = n
	} else {
		n.next.prev = n
	}
}

func (j *Journal) unlink(n *node) {
	if n.prev == nil {
		j.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		j.last = n.prev
	} else {
		n.next.prev = n.prev
	}
	n.prev, n.next = nil, nil
}

// Message returns the message id as it was recorded, in the view or not. It reports
// false if there is none, or if it was dropped by a rewind or inserted by a condensation
// that is undone.
func (j *Journal) Message(id string) (core.Message, bool) {
	n := j.nodes[id]
	if n == nil || !n.inForce() {
		return core.Message{}, false
	}
	return n.message, true
}

// inForce reports whether n is part of the conversation, hidden or not.
func (n *node) inForce() bool { return !n.dropped && (n.by == nil || !n.by.undone) }

// Messages returns the conversation as it was recorded, oldest first: every message that
// was appended and not dropped by a rewind, without messages that condensations inserted.
func (j *Journal) Messages() []core.Message {
	all := slices.Grow([]core.Message(nil), len(j.nodes))
	for n := j.first; n != nil; n = n.next {
		if n.by == nil {
			all = append(all, n.message)
		}
	}
	return all
}

// Newest returns, for every active condensation of j, the ID of the newest message of the timeline that had been appended
// when it was applied. The cost is linear in the records.
func Newest(j *Journal) map[string]string {
	newest, id := map[string]string{}, ""
	for _, r := range j.log {
		switch a := r.condensation; {
		case r.message != nil && !r.message.dropped:
			id = r.message.message.ID
		case a != nil && !a.undone && !a.dropped:
			newest[a.ID] = id
		}
	}
	return newest
}

// Condensations returns the active condensations, oldest first.
func (j *Journal) Condensations() []Condensation {
	var all []Condensation
	for _, a := range j.applied {
		if !a.undone {
			all = append(all, a.Condensation)
		}
	}
	return all
}

// States returns the state of each provider that j has one of, by name: that of its newest active condensation. See [core.Result].
func States(j *Journal) map[string][]byte {
	states := map[string][]byte{}
	for _, a := range j.applied {
		if !a.undone {
			maps.Copy(states, a.States)
		}
	}
	return states
}
