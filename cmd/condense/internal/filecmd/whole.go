package filecmd

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/sessions"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/recall"
)

// A whole is the conversation of a session from its beginning. If the session's file began with the condensed view of another one, the
// journal of that one is beside the file, and the numbers in the view count its messages.
type whole struct {
	journal *history.Journal
	ids     map[string]string // in journal, of messages of the session; nil if it is the session's own
}

// wholeOf returns the conversation of a session in a file: the kept one and what was said since, or else the session itself.
func wholeOf(path string, session *history.Journal) (*whole, error) {
	data, err := os.ReadFile(sessions.Whole(path))
	if errors.Is(err, fs.ErrNotExist) {
		return &whole{journal: session}, nil
	}
	if err != nil {
		return nil, err
	}
	w := &whole{ids: map[string]string{}}
	if w.journal, _, err = history.Decode(bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("%s: %w", sessions.Whole(path), err)
	}
	rewrites := map[string][]form{}
	for _, c := range w.journal.Condensations() {
		for _, r := range c.Edit.Rewrite {
			rewrites[r.ID] = append(rewrites[r.ID], form{r.ID, contentOf(r.Parts)})
		}
	}
	var before []form
	for _, e := range w.journal.Timeline() {
		before = append(append(before, form{e.Message.ID, contentOf(e.Original.Parts)}), rewrites[e.Message.ID]...)
	}
	places := map[string][]int{} // in before, by content
	for i, f := range before {
		places[f.content] = append(places[f.content], i)
	}
	all, old, from := session.Messages(), 0, 0
	for i := range all {
		at := places[contentOf(all[i].Parts)]
		if k, _ := slices.BinarySearch(at, from); k < len(at) {
			id := before[at[k]].id
			w.ids[all[i].ID], old = id, i+1
			for from = at[k]; from < len(before) && before[from].id == id; {
				from++
			}
		}
	}
	if old == 0 { // it is beside another file of that name
		return &whole{journal: session}, nil
	}
	for _, m := range all[old:] {
		own := m.ID
		m.ID, m.Source = w.unused(own), nil
		w.ids[own] = m.ID
		if err := w.journal.Append(m); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// A form is the content of a message, as recorded or rewritten.
type form struct{ id, content string }

// contentOf returns the handles of parts, without the reasoning, which copies of sessions leave out.
func contentOf(parts []core.Part) (handles string) {
	for _, p := range parts {
		if _, thinks := p.(core.Reasoning); !thinks || len(parts) == 1 {
			handles += core.Handle(p)
		}
	}
	return handles
}

// unused returns an ID that no message of the journal has: the given one if possible.
func (w *whole) unused(id string) string {
	if _, taken := w.journal.Message(id); taken {
		return rand.Text()
	}
	return id
}

// numbers returns the numbers of messages of the session, 0 for none; nil if they are the session's own.
func (w *whole) numbers(view []core.Message) (all []int) {
	places := map[string]int{}
	for i, m := range w.journal.Messages() {
		places[m.ID] = i + 1
	}
	for i := 0; i < len(view) && w.ids != nil; i++ {
		all = append(all, places[w.ids[view[i].ID]])
	}
	return all
}

// hasNumbers reports whether a view leads to messages by their numbers.
func hasNumbers(view []core.Message) bool {
	all := recall.Mentioned(view)
	maps.DeleteFunc(all, func(r recall.Ref, _ bool) bool { return r.Handle != "" })
	return len(all)+len(recall.Trailing(view)) > 0
}

// keep writes the whole beside a file with the view of the session.
func (w *whole) keep(session *history.Journal, path string) error {
	if c := session.Condensations(); w.ids != nil && len(c) > 0 {
		shown := plain.Set(plain.Each(w.journal.View(), func(m core.Message) string { return m.ID }))
		after := slices.Clone(session.View())
		for i := range after {
			m := &after[i]
			if m.Source = nil; shown[w.ids[m.ID]] {
				m.ID = w.ids[m.ID]
			} else {
				m.ID = w.unused(m.ID)
			}
		}
		last := c[len(c)-1]
		last.ID, last.Edit = rand.Text(), core.Diff(w.journal.View(), after)
		if err := w.journal.Condense(last); err != nil && !last.Edit.Empty() {
			return err
		}
	}
	var b bytes.Buffer
	if err := errors.Join(history.Encode(&b, w.journal), os.MkdirAll(originalsDir(path), 0o700)); err != nil {
		return err
	}
	return cli.WriteFile(sessions.Whole(path), b.Bytes(), cli.PrivateMode)
}
