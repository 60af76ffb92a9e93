package recall

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/toolcall"
	"github.com/condensehq/condense/internal/value/ledger"
)

// A FileAt names a file, or the end of its path.
type FileAt struct {
	Name    string
	At      string // the number of the message after which its text is wanted; empty for the newest text
	Changes bool   // its changes are wanted, in order
}

// Text returns the text of a file as far as the conversation's calls and results show it, or the calls that changed it.
// The error is for a model.
func (s *Source) Text(want *FileAt) ([]Piece, error) {
	all := s.Journal.Messages()
	if want.At != "" {
		refs := ParseRefs(want.At)
		if len(refs) != 1 || refs[0].Handle != "" {
			return nil, fmt.Errorf("at: %q is no number of a message, such as m41", want.At)
		}
		if _, err := s.Numbered(refs[0]); err != nil {
			return nil, err
		}
		all = all[:refs[0].To]
	}
	d, known := dialog.Read(all), new(ledger.Ledger)
	known.Replay(all, d, 0, len(all))
	f, err := fileIn(known, want.Name)
	if err != nil {
		return nil, err
	}
	text, changes := textOfFile(f), []Piece(nil)
	if want.Changes {
		changes = s.changes(all, d, f)
	}
	switch {
	case changes != nil:
		return changes, nil
	case want.Changes:
		return nil, fmt.Errorf("no call that is known changed %s", f.Path)
	case text == "":
		return nil, fmt.Errorf("no text of %s is known there, it was removed or reset; try at with an earlier message, or changes", f.Path)
	}
	m := all[f.Touched]
	p := Piece{
		Part: core.Text(text), What: "file as it is known there,", Path: f.Path, File: s.File,
		Places: []history.Recalled{{Part: core.Text(text), Message: m}}, Numbers: []string{s.number(s.at[m.ID], -1)},
	}
	if slices.ContainsFunc(f.Blocks(), ledger.Block.Past) {
		p.What = fmt.Sprintf("file as it is known there (m%d changed it in a way that is not),", f.Unsure+1)
	}
	return []Piece{p}, nil
}

// ErrSeveral says that a name is that of several files.
var ErrSeveral = errors.New("is the end of several paths")

// fileIn returns the only file whose path ends with a name.
func fileIn(known *ledger.Ledger, name string) (found *ledger.File, err error) {
	name = "/" + toolcall.CleanPath(name)
	var paths, bases, matches []string
	best := 0
	for _, f := range known.Files {
		paths, bases = append(paths, f.Path), append(bases, path.Base(f.Path))
		at, fits := "/"+f.Path, 0
		switch {
		case at == name:
			fits = 3
		case strings.HasSuffix(at, name), strings.HasSuffix(name, at):
			fits = 2
		case strings.HasSuffix(strings.ToLower(at), strings.ToLower(name)):
			fits = 1
		}
		if fits > best {
			best, matches = fits, nil
		}
		if fits > 0 && fits == best {
			found, matches = f, append(matches, f.Path)
		}
	}
	switch {
	case len(matches) == 1:
		return found, nil
	case len(matches) > 1:
		return nil, fmt.Errorf("%s %w; name one of: %s", name[1:], ErrSeveral, strings.Join(matches, ", "))
	}
	const most = 20
	latest := strings.Join(paths[max(0, len(paths)-most):], ", ")
	return nil, fmt.Errorf("no call read or changed a file %s%s; the latest of %s: %s", name[1:], suggest.DidYouMean(path.Base(name), bases), size.Plural(len(paths), "file"), latest)
}

// textOfFile returns the known lines of a file, and lines in brackets for the others.
func textOfFile(f *ledger.File) string {
	var b strings.Builder
	next := 1
	for _, r := range f.Runs {
		switch {
		case r.First == 0:
			b.WriteString("[from here on: where these lines are is not known]\n")
		case r.First > next:
			fmt.Fprintf(&b, "[lines %d-%d are not known]\n", next, r.First-1)
		}
		for i := range r.Lines {
			b.WriteString(r.Lines[i].Text + "\n")
		}
		next = r.First + len(r.Lines)
	}
	return b.String()
}

// changes returns the calls that changed a file, in order, with the numbers of their results.
func (s *Source) changes(all []core.Message, d *dialog.Dialog, f *ledger.File) (pieces []Piece) {
	replay, done := new(ledger.Ledger), 0
	for i := range all {
		for k, p := range all[i].Parts {
			r, is := p.(core.ToolResult)
			use := d.Messages[i][k].Use
			if !is || use == nil || use.IsError || use.Info.Family == dialog.FamilyRead {
				continue
			}
			at := s.at[all[i].ID]
			_, call := s.callOf(at, r.CallID)
			if call == nil || !strings.Contains(call.Text(), path.Base(f.Path)) {
				continue
			}
			replay.Replay(all, d, done, i+1)
			if done = i + 1; replay.File(f.Path).Edited == i {
				call.Numbers = []string{s.number(at, k)}
				pieces = append(pieces, *call)
			}
		}
	}
	return pieces
}
