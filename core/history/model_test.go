package history_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

// A model is a journal by the letter of the package comment: slow, recursive, and it
// keeps nothing that it could compute.
type model struct {
	timeline      []*modelMessage
	condensations []*modelCondensation
	clock         int
	protected     map[string]bool
	steps         []*modelStep // all that were taken
}

// A modelStep is a step that was taken, and whether it was a rewind that was undone.
type modelStep struct {
	do     func(*model)
	rewind bool
	at     int
	undone bool
}

func (m *model) step(rewind bool, do func(*model)) {
	m.steps = append(m.steps, &modelStep{do: do, rewind: rewind, at: m.clock})
	do(m)
}

// undoRewind takes every step again but for the latest rewind. It reports false if a
// condensation that was recorded since is active, or there is no rewind.
func (m *model) undoRewind() bool {
	for _, s := range slices.Backward(m.steps) {
		if !s.rewind || s.undone {
			continue
		}
		for _, c := range m.condensations {
			if !c.undone && c.at > s.at {
				return false
			}
		}
		s.undone = true
		steps := m.steps
		*m = model{protected: map[string]bool{}}
		for _, s := range steps {
			if !s.undone {
				s.at = m.clock
				s.do(m)
			}
		}
		m.steps = steps
		return true
	}
	return false
}

type modelMessage struct {
	core.Message
	by *modelCondensation
	at int
}

type modelCondensation struct {
	history.Condensation
	substitutes map[string]string // hidden message to the one that replaces it, if any
	undone      bool
	at          int
}

func (m *model) append(message core.Message) {
	m.clock++
	m.timeline = append(m.timeline, &modelMessage{Message: message, at: m.clock})
}

func (m *model) index(id string) int {
	return slices.IndexFunc(m.timeline, func(n *modelMessage) bool { return n.ID == id })
}

func (m *model) condense(c history.Condensation) {
	m.clock++
	mc := &modelCondensation{Condensation: c, substitutes: map[string]string{}, at: m.clock}
	m.condensations = append(m.condensations, mc)
	for _, in := range slices.Backward(c.Edit.Insert) {
		m.timeline = slices.Insert(m.timeline, m.index(in.After)+1, &modelMessage{Message: in.Message, by: mc, at: m.clock})
	}
	var messages []core.Message
	for _, n := range m.timeline {
		messages = append(messages, n.Message)
	}
	for _, id := range c.Edit.Hide {
		at := m.index(id)
		for _, g := range core.Groups(messages) {
			if g.Start <= at && at < g.End {
				mc.substitutes[id] = m.substitute(mc, g.End)
			}
		}
	}
}

// substitute returns the message of mc that replaces what ends before end.
func (m *model) substitute(mc *modelCondensation, end int) string {
	nearest := ""
	for i, n := range m.timeline {
		if n.by == mc && (i < end || nearest == "" || m.index(nearest) < end) {
			nearest = n.ID
		}
	}
	place := func(id string) string {
		i := slices.IndexFunc(mc.Edit.Insert, func(in core.Insert) bool { return in.Message.ID == id })
		return mc.Edit.Insert[i].After
	}
	for _, in := range mc.Edit.Insert {
		if nearest != "" && in.After == place(nearest) {
			return in.Message.ID
		}
	}
	return nearest
}

func (m *model) rewind(id string) {
	to := m.timeline[m.index(id)].at
	m.timeline = slices.DeleteFunc(m.timeline, func(n *modelMessage) bool { return n.at > to })
	m.condensations = slices.DeleteFunc(m.condensations, func(c *modelCondensation) bool { return c.at > to })
}

func (m *model) hidden(id string) bool {
	return slices.ContainsFunc(m.condensations, func(c *modelCondensation) bool {
		substitute, ok := c.substitutes[id]
		return ok && (!c.undone || substitute != "" && m.hidden(substitute))
	})
}

func (m *model) view() []core.Message {
	view := []core.Message{}
	for _, n := range m.timeline {
		if n.by != nil && n.by.undone || m.hidden(n.ID) {
			continue
		}
		message := n.Message
		if on, ok := m.protected[n.ID]; ok {
			message.Protected = on
		}
		for _, c := range m.condensations {
			for _, r := range c.Edit.Rewrite {
				if r.ID == n.ID && !c.undone {
					message.Parts, message.Tokens, message.Source = r.Parts, 0, nil
				}
			}
		}
		view = append(view, message)
	}
	return view
}

// A walk takes random steps with a journal and its model and remembers what it saw.
type walk struct {
	*rapid.T
	journal *history.Journal
	model   *model
	names   int
	undos   int
	calls   map[string][2]string // call ID to the messages of call and result
	views   []snapshot           // every view handed out
	moments map[string]snapshot  // by message: the view when it was recorded
}

// A snapshot is a view and what it was when it was taken.
type snapshot struct {
	view, copy []core.Message
	undos      int
}

func (w *walk) name(prefix string) string {
	w.names++
	return fmt.Sprintf("%s%d", prefix, w.names)
}

func (w *walk) must(err error) {
	if err != nil {
		w.Fatal(err)
	}
}

func (w *walk) appendSome() {
	var ms []core.Message
	add := func(role core.Role, parts ...core.Part) string {
		id := w.name("m")
		ms = append(ms, core.Message{ID: id, Role: role, Parts: parts, Tokens: w.names, Source: json.RawMessage(`{ "n": "` + id + `" }`)})
		return id
	}
	switch rapid.IntRange(0, 2).Draw(w.T, "kind") {
	case 0:
		add(core.RoleUser, core.Text("question"))
	case 1:
		c := w.name("c")
		w.calls[c] = [2]string{
			add(core.RoleAssistant, core.ToolCall{ID: c, Name: "read", Args: "{}"}),
			add(core.RoleUser, core.ToolResult{CallID: c, Content: []core.Part{core.Text("file")}}),
		}
	case 2: // two pairs, crossing
		c, d := w.name("c"), w.name("c")
		mc, md := add(core.RoleAssistant, core.ToolCall{ID: c}), add(core.RoleAssistant, core.ToolCall{ID: d})
		w.calls[c] = [2]string{mc, add(core.RoleTool, core.ToolResult{CallID: c})}
		w.calls[d] = [2]string{md, add(core.RoleTool, core.ToolResult{CallID: d})}
	}
	w.must(w.journal.Append(ms...))
	for i := range ms {
		w.model.step(false, func(m *model) { m.append(ms[i]) })
		view := w.model.view() // the journal shows them only all at once
		w.moments[ms[i].ID] = snapshot{copy: view, undos: w.undos}
	}
}

// edit draws one that hides whole groups of the view and inserts anywhere, which the
// rules for providers forbid in the middle of a group.
func (w *walk) edit() core.Edit {
	var e core.Edit
	view := w.journal.View()
	for _, g := range core.Groups(view) {
		hide := rapid.Bool().Draw(w.T, "hide")
		for i := g.Start; i < g.End; i++ {
			if hide {
				e.Hide = append(e.Hide, view[i].ID)
			} else if rapid.IntRange(0, 4).Draw(w.T, "rewrite") == 0 {
				e.Rewrite = append(e.Rewrite, core.Rewrite{ID: view[i].ID, Parts: append(slices.Clone(view[i].Parts), core.Text(w.name("+")))})
			}
		}
	}
	for range rapid.IntRange(0, 3).Draw(w.T, "inserts") {
		in := core.Insert{Message: core.Message{ID: w.name("s"), Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("summary")}, Tokens: 3}}
		if at := rapid.IntRange(-1, len(view)-1).Draw(w.T, "after"); at >= 0 {
			in.After = view[at].ID
		}
		e.Insert = append(e.Insert, in)
	}
	return e
}

func (w *walk) condense() {
	c := history.Condensation{ID: w.name("X"), Provider: "random", Edit: w.edit()}
	if c.Edit.Empty() {
		return
	}
	before := slices.Clone(w.journal.View())
	if rapid.IntRange(0, 3).Draw(w.T, "at once undone") == 0 {
		w.must(w.journal.Condense(c))
		w.must(w.journal.Undo(c.ID))
		w.same("condense and undo", w.journal.View(), before)
		w.model.step(false, func(m *model) {
			m.condense(c)
			m.condensations[len(m.condensations)-1].undone = true
		})
		return
	}
	w.must(w.journal.Condense(c))
	w.model.step(false, func(m *model) { m.condense(c) })
	want, err := c.Edit.Apply(before)
	w.must(err)
	w.same("condense", w.journal.View(), want)
	for _, in := range c.Edit.Insert {
		w.moments[in.Message.ID] = snapshot{copy: want, undos: w.undos}
	}
}

func (w *walk) undo() {
	active := w.journal.Condensations()
	if len(active) == 0 {
		return
	}
	id := rapid.SampledFrom(active).Draw(w.T, "condensation").ID
	w.must(w.journal.Undo(id))
	w.undos++
	w.model.step(false, func(m *model) {
		for _, c := range m.condensations {
			c.undone = c.undone || c.ID == id
		}
	})
}

func (w *walk) protect() {
	timeline := w.journal.Timeline()
	if len(timeline) == 0 {
		return
	}
	id, on := rapid.SampledFrom(timeline).Draw(w.T, "message").Original.ID, rapid.Bool().Draw(w.T, "on")
	w.must(w.journal.Protect(on, id))
	w.model.step(false, func(m *model) { m.protected[id] = on })
	w.undos++ // a rewind does not undo it
}

func (w *walk) undoRewind() {
	want := w.model.undoRewind()
	_, err := w.journal.UndoRewind()
	if (err == nil) != want {
		w.Fatalf("undo of a rewind: got error %v, want success: %v", err, want)
	}
	if err == nil {
		w.undos++ // what a rewind leads to is not what was there before
	}
}

func (w *walk) rewind() {
	timeline := w.journal.Timeline()
	if len(timeline) == 0 {
		return
	}
	id := rapid.SampledFrom(timeline).Draw(w.T, "message").Original.ID
	w.must(w.journal.Rewind(id))
	w.model.step(true, func(m *model) { m.rewind(id) })
	if then := w.moments[id]; then.undos == w.undos {
		w.same("rewind to "+id, w.journal.View(), then.copy)
	}
}

func (w *walk) same(what string, got, want []core.Message) {
	if !slices.EqualFunc(want, got, exact) {
		w.Fatalf("%s: got (+) and want (-) differ:\n%s", what, cmp.Diff(want, got, exactly, cmpopts.EquateEmpty()))
	}
}

// check holds after every step.
func (w *walk) check() {
	view := w.journal.View()
	w.same("view", view, w.model.view())
	w.views = append(w.views, snapshot{view: view, copy: slices.Clone(view)})

	tokens, shown := 0, map[string]bool{}
	for i := range view {
		tokens += view[i].Tokens
		shown[view[i].ID] = true
	}
	if w.journal.Tokens() != tokens || w.journal.Len() != len(view) {
		w.Fatalf("got %d messages with %d tokens, want %d with %d", w.journal.Len(), w.journal.Tokens(), len(view), tokens)
	}
	for c, pair := range w.calls {
		_, call := w.journal.Message(pair[0])
		_, result := w.journal.Message(pair[1])
		if call && result && shown[pair[0]] != shown[pair[1]] {
			w.Fatalf("call %s is torn: call in the view: %v, result: %v", c, shown[pair[0]], shown[pair[1]])
		}
	}
	for _, e := range w.journal.Timeline() {
		if shown[e.Original.ID] != (len(e.HiddenBy) == 0) {
			w.Fatalf("message %s: in the view: %v, hidden by %v", e.Original.ID, shown[e.Original.ID], e.HiddenBy)
		}
	}
}

// nothingIsLost holds when no condensation is active: every message that was ever appended
// is in the conversation or among what was dropped, and comes back when all rewinds are undone.
func (w *walk) nothingIsLost() {
	dropped := map[string]bool{}
	for _, e := range w.journal.Dropped() {
		dropped[e.Original.ID] = true
	}
	for id := range w.moments {
		if _, there := w.journal.Message(id); there == dropped[id] && strings.HasPrefix(id, "m") {
			w.Fatalf("message %s: in the conversation: %v, dropped: %v", id, there, dropped[id])
		}
	}
	for {
		for len(w.journal.Condensations()) > 0 {
			w.undo()
		}
		if _, err := w.journal.UndoRewind(); err != nil {
			break
		}
	}
	w.decoded()
	all := 0
	for id := range w.moments {
		if strings.HasPrefix(id, "m") {
			all++
		}
	}
	if got := len(w.journal.View()); got != all || len(w.journal.Dropped()) > 0 {
		w.Fatalf("all rewinds undone: got %d messages, want %d; dropped %v", got, all, w.journal.Dropped())
	}
}

func (w *walk) encoded() []byte {
	var b bytes.Buffer
	w.must(history.Encode(&b, w.journal))
	return b.Bytes()
}

// decoded checks that the journal survives storage, and that a view computed from the
// whole log is the one that grew step by step.
func (w *walk) decoded() {
	lines := w.encoded()
	j, recovery, err := history.Decode(bytes.NewReader(lines))
	if err != nil || recovery != nil {
		w.Fatalf("decode: %v, %v", recovery, err)
	}
	w.same("decoded view", j.View(), w.journal.View())
	w.same("decoded messages", j.Messages(), w.journal.Messages())
	if diff := cmp.Diff(w.journal.Timeline(), j.Timeline(), exactly); diff != "" {
		w.Fatalf("decoded timeline:\n%s", diff)
	}
	if diff := cmp.Diff(w.journal.Condensations(), j.Condensations(), exactly); diff != "" {
		w.Fatalf("decoded condensations:\n%s", diff)
	}
	w.journal = j
	if again := w.encoded(); !bytes.Equal(again, lines) {
		w.Fatalf("got %s\nwant %s", again, lines)
	}
}

func TestJournalAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &walk{T: t, journal: history.New(), model: &model{protected: map[string]bool{}}, calls: map[string][2]string{}, moments: map[string]snapshot{}}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"append", "append", "append", "condense", "condense", "undo", "rewind", "undo rewind", "protect", "decode"}).Draw(t, "step") {
			case "append":
				w.appendSome()
			case "condense":
				w.condense()
			case "undo":
				w.undo()
			case "rewind":
				w.rewind()
			case "protect":
				w.protect()
			case "undo rewind":
				w.undoRewind()
			case "decode":
				w.decoded()
			}
			w.check()
		}
		w.decoded()
		for len(w.journal.Condensations()) > 0 {
			w.undo()
			w.check()
		}
		if len(w.model.protected) == 0 {
			w.same("all undone", w.journal.View(), w.journal.Messages())
		}
		w.nothingIsLost()
		for _, m := range w.journal.View() {
			if want := `{ "n": "` + m.ID + `" }`; string(m.Source) != want || strings.HasPrefix(m.ID, "s") {
				w.Fatalf("message %s: got source %s, want %s", m.ID, m.Source, want)
			}
		}
		for i, s := range w.views {
			w.same(fmt.Sprintf("view %d, looked at again", i), s.view, s.copy)
		}
	})
}
