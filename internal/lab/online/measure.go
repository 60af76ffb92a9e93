package online

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/transcript"
)

// measureAll measures the epochs that are due, one after the other.
func (w *Watch) measureAll() {
	for e := range w.due {
		if w.hurry.Err() != nil {
			continue
		}
		if err := w.measure(e); err != nil {
			w.log.Warn("an epoch could not be measured", "err", err)
		}
	}
}

// measure measures an epoch by the messages so far.
func (w *Watch) measure(e *epoch) (err error) {
	defer func() { // the texts are untrusted
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	w.mu.Lock()
	c, head, history, future, seen, packed := e.conversation, e.head, e.history, slices.Clone(e.future), e.seen, e.view
	w.mu.Unlock()
	if history == nil {
		return nil // dropped meanwhile
	}
	before, err := w.read(e.format, head, history, nil)
	if err != nil {
		return err
	}
	s, err := w.read(e.format, head, history, future)
	if err != nil {
		return err
	}
	s.ID, s.Source, s.Mode = c.ID, c.ID, e.Mode
	if e.Mode != "" {
		s.ID += " in " + e.Mode
	}
	view, err := w.read(e.format, head, packed, nil)
	if err != nil {
		return err
	}
	rows, needs := lab.Judge(s, len(before.Messages), []lab.View{{Strategy: "sent", Messages: view.Messages}}, w.counter)
	for i := range rows {
		rows[i].KindsBefore, rows[i].KindsAfter = nil, nil
		maps.DeleteFunc(rows[i].Values, func(name string, _ float64) bool { return !slices.Contains(keptMeasures, name) })
	}
	needed := len(needs)
	needs = slices.DeleteFunc(needs, func(n score.Need) bool { return n.Present || n.Verdict == score.Reachable })
	rereads, reread := lab.Rereads(s.Messages, len(before.Messages), view.Messages, w.counter)
	w.mu.Lock()
	defer w.mu.Unlock()
	e.Rereads, e.Reread = rereads, reread
	e.Followed, e.Rows, e.Needed, e.Missing = seen, rows, needed, len(needs)
	c.changed = true
	if e.history != nil {
		e.missing = needs[:min(len(needs), mostNeeds)]
	}
	w.changes++
	return nil
}

// headOf returns the members of a request other than its messages, in the form of a JSON object's beginning.
func headOf(t *live.Turn) []byte {
	system := "system"
	if t.Format == "responses" {
		system = "instructions"
	}
	var out []byte
	if t.System != nil {
		out = fmt.Appendf(out, "%q:%s,", system, t.System)
	}
	if t.Tools != nil {
		out = fmt.Appendf(out, "%q:%s,", "tools", t.Tools)
	}
	return out
}

// read converts packed messages and the ones after them to a session for package lab: with the system prompt and the
// tools, which the conversation itself may lack, and with the authors of texts.
func (w *Watch) read(format string, head, packed []byte, more [][]byte) (*score.Session, error) {
	body, err := w.unpack.DecodeAll(head, []byte("{"))
	if err != nil {
		return nil, err
	}
	text, err := w.unpack.DecodeAll(packed, nil)
	if err != nil {
		return nil, err
	}
	var messages [][]byte
	for m := range rawjson.Elements(text) {
		messages = append(messages, m)
	}
	member := "messages"
	if format == "responses" {
		member = "input"
	}
	body = fmt.Appendf(body, "%q:%s}", member, rawjson.Array(append(messages, more...)))
	d, err := transcript.Read(bytes.NewReader(body), &transcript.ReadOptions{Format: format})
	if err != nil {
		return nil, err
	}
	return lab.SessionOf(d, w.counter), nil
}

// document returns the condensed conversation of an epoch; nil if it was dropped.
func (w *Watch) document(conversation string, n int) (*transcript.Document, error) {
	w.mu.Lock()
	var journal []byte
	if _, texts := w.find(conversation); n > 0 && n <= len(texts) && texts[n-1] != nil {
		journal = texts[n-1].journal
	}
	w.mu.Unlock()
	if journal == nil {
		return nil, nil //nolint:nilnil // it was dropped
	}
	text, err := w.unpack.DecodeAll(journal, nil)
	if err != nil {
		return nil, err
	}
	return transcript.Read(bytes.NewReader(text), &transcript.ReadOptions{Format: "condense"})
}

// find returns all gateways' record of a conversation, nil if there is none, and the texts of each of its epochs, nil
// for epochs of other processes. The caller holds w.mu.
func (w *Watch) find(id string) (*Evidence, []*epoch) {
	var parts []*Evidence
	for _, c := range w.others {
		if c.ID == id {
			parts = append(parts, c)
		}
	}
	c := w.conversations[id]
	if c != nil {
		parts = append(parts, &c.Evidence)
	}
	if len(parts) == 0 {
		return nil, nil
	}
	known := merge(parts)[0]
	texts := make([]*epoch, len(known.Epochs))
	for i, e := range known.Epochs {
		if c != nil {
			if own := slices.IndexFunc(c.epochs, func(o *epoch) bool { return o.Time.Equal(e.Time) }); own >= 0 {
				texts[i] = c.epochs[own]
			}
		}
	}
	return known, texts
}
