package history

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// A Condensation is a record of how a conversation was shortened.
type Condensation struct {
	// ID names it in its journal; a UUID, unless it comes from a foreign file.
	ID       string       `json:"id"`
	Provider string       `json:"provider,omitempty"` // the provider of the result
	Trigger  core.Trigger `json:"trigger,omitempty"`
	Time     time.Time    `json:"time,omitzero"`
	// TokensBefore and TokensAfter are measured by the host, with the same scope.
	TokensBefore int `json:"tokens_before,omitempty"`
	TokensAfter  int `json:"tokens_after,omitempty"`
	// Attempts has a report for every provider of the chain.
	Attempts []core.Attempt `json:"attempts,omitempty"`
	// Originals is the file with a copy of the messages that it hid or rewrote, as
	// [EncodeOriginals] writes it; empty if there is none.
	Originals string    `json:"originals,omitempty"`
	Edit      core.Edit `json:"edit"`
	// States are what providers leave for their next requests about the conversation, by provider: see [States].
	States map[string][]byte `json:"states,omitempty"`
	// Substitutes are, for a journal that was restored, the inserted messages that replace a hidden one, if their
	// positions do not determine them: see [Journal.Substitutes]. Other entries are ignored.
	Substitutes map[string][]string `json:"substitutes,omitempty"`
	// Newest is, for a journal that was restored, the newest message that existed when it was applied: see
	// [Newest]. Empty if that is not known.
	Newest string `json:"newest,omitempty"`
}

// An applied condensation is one that a journal holds.
type applied struct {
	Condensation
	pos      int // index in the log
	hides    []hiding
	inserts  []*node // in the order of Edit.Insert
	rewrites []*node
	undone   bool
	dropped  bool // by a rewind
}

// A hiding is a message hidden by a condensation and the message that replaces it, which the
// same condensation inserted; nil if it inserted none.
type hiding struct{ node, substitute *node }

// Condense records and applies c, or returns an error and changes nothing. c.ID must be
// new to the journal, as must be the IDs of inserted messages; the edit must change
// something and may name, each once, only messages of the view. The cost is linear in the
// timeline.
func (j *Journal) Condense(c Condensation) error {
	if c.Edit.Empty() {
		return fmt.Errorf("condensation %q changes nothing", c.ID)
	}
	if err := j.check(&c, (*node).inView); err != nil {
		return err
	}
	if err := j.keep(true, record{condensation: &applied{Condensation: c}}); err != nil {
		return err
	}
	j.apply(c)
	j.refresh()
	return nil
}

func (n *node) inView() string {
	switch {
	case n.dropped:
		return "was dropped by a rewind"
	case !n.shown:
		return "is not in the view"
	}
	return ""
}

// inTimeline is the weaker check for the messages that a foreign or stored condensation
// names.
func (n *node) inTimeline() string {
	if n.dropped {
		return "was dropped by a rewind"
	}
	return ""
}

// check returns an error if c cannot be applied. Fault returns the fault of a message that c names, or "".
func (j *Journal) check(c *Condensation, fault func(*node) string) error {
	switch {
	case c.ID == "":
		return errors.New("a condensation has no ID")
	case !utf8.ValidString(c.ID):
		return fmt.Errorf("condensation %q: the ID is not valid UTF-8", c.ID)
	case j.applications[c.ID] != nil:
		return fmt.Errorf("condensation %q: the ID was used before in this journal", c.ID)
	}
	j.pass++ // marks the messages that are hidden or rewritten
	named := func(verb, id string, once bool) error {
		n := j.nodes[id]
		if n == nil {
			return fmt.Errorf("condensation %q %s message %q, which does not exist", c.ID, verb, id)
		}
		if f := fault(n); f != "" {
			return fmt.Errorf("condensation %q %s message %q, which %s", c.ID, verb, id, f)
		}
		if once {
			if n.mark == j.pass {
				return fmt.Errorf("condensation %q %s message %q, which it names before", c.ID, verb, id)
			}
			n.mark = j.pass
		}
		return nil
	}
	for _, id := range c.Edit.Hide {
		if err := named("hides", id, true); err != nil {
			return err
		}
	}
	for _, r := range c.Edit.Rewrite {
		if err := named("rewrites", r.ID, true); err != nil {
			return err
		}
	}
	inserted := make(map[string]bool, len(c.Edit.Insert))
	for i := range c.Edit.Insert {
		in := &c.Edit.Insert[i]
		if in.After != "" {
			if err := named("inserts after", in.After, false); err != nil {
				return err
			}
		}
		if err := j.fresh(in.Message.ID); err != nil {
			return fmt.Errorf("condensation %q inserts: %w", c.ID, err)
		}
		if inserted[in.Message.ID] {
			return fmt.Errorf("condensation %q inserts message %q twice", c.ID, in.Message.ID)
		}
		inserted[in.Message.ID] = true
	}
	return nil
}

// apply enters the condensation c, which was checked, without refreshing the view.
func (j *Journal) apply(c Condensation) {
	a := &applied{Condensation: c, pos: len(j.log)}
	j.log = append(j.log, record{condensation: a})
	j.applications[c.ID] = a
	j.applied = append(j.applied, a)

	added := make([]node, len(c.Edit.Insert))
	behind := map[string]*node{} // the last message inserted at a place
	for i := range c.Edit.Insert {
		in := &c.Edit.Insert[i]
		n := &added[i]
		*n = node{message: in.Message, epoch: j.epochOf(in.Message.Tokens), pos: a.pos, by: a}
		j.nodes[in.Message.ID] = n
		after := behind[in.After]
		if after == nil && in.After != "" {
			after = j.nodes[in.After]
		}
		j.link(n, after)
		behind[in.After] = n
		a.inserts = append(a.inserts, n)
	}
	for _, r := range c.Edit.Rewrite {
		n := j.nodes[r.ID]
		n.rewrites = append(n.rewrites, &rewrite{by: a, parts: r.Parts, epoch: -1})
		a.rewrites = append(a.rewrites, n)
	}
	a.hides = append(a.hides, plain.Each(c.Edit.Hide, func(id string) hiding { return hiding{node: j.nodes[id]} })...)
	j.assign(a)
}

// assign determines for each hidden message the inserted one that replaces it.
func (j *Journal) assign(a *applied) {
	heads := map[string]*node{} // the first message inserted at a place
	for i, n := range a.inserts {
		if place := a.Edit.Insert[i].After; heads[place] == nil {
			heads[place] = n
		}
	}
	substitute := func(*node) *node { return nil }
	switch {
	case len(heads) == 1:
		substitute = func(*node) *node { return a.inserts[0] }
	case len(heads) > 1:
		substitutes := j.substitutes(a, heads)
		substitute = func(n *node) *node { return substitutes[n] }
	}
	for i := range a.hides {
		a.hides[i].substitute = substitute(a.hides[i].node)
	}
	j.assignNamed(a)
}

// assignNamed sets the substitutes that the condensation names.
func (j *Journal) assignNamed(a *applied) {
	if len(a.Substitutes) == 0 {
		return
	}
	var more []hiding // of messages with several
	for i := range a.hides {
		h := &a.hides[i]
		ids, named := a.Substitutes[h.node.message.ID]
		var all []*node
		for _, id := range ids {
			if id == "" {
				all = append(all, nil)
			} else if n := j.nodes[id]; n != nil && n.by == a {
				all = append(all, n)
			}
		}
		if !named || len(all) == 0 {
			continue
		}
		h.substitute = all[0]
		more = append(more, plain.Each(all[1:], func(n *node) hiding { return hiding{h.node, n} })...)
	}
	a.hides = append(a.hides, more...)
}

// substitutes is assign for a condensation that inserted messages at several places.
func (j *Journal) substitutes(a *applied, heads map[string]*node) map[*node]*node {
	head := make(map[*node]*node, len(a.inserts))
	for i, n := range a.inserts {
		head[n] = heads[a.Edit.Insert[i].After]
	}
	var timeline []*node
	var messages []core.Message
	var substitute *node // for hidden messages after all inserted ones
	for n := j.first; n != nil; n = n.next {
		timeline, messages = append(timeline, n), append(messages, n.message)
		if h := head[n]; h != nil {
			substitute = h
		}
	}
	substitutes := map[*node]*node{}
	groups := core.Groups(messages)
	for _, g := range slices.Backward(groups) {
		// A group has one substitute even if a message was inserted within it: with two, a
		// call could be restored to the view without its result.
		whole := substitute
		for i := g.End - 1; i >= g.Start; i-- {
			if h := head[timeline[i]]; h != nil {
				substitute = h
			}
			substitutes[timeline[i]] = whole
		}
	}
	return substitutes
}
