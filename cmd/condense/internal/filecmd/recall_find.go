package filecmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/recall"
)

// A recalling is a search of a conversation and its files of originals.
type recalling struct {
	condensation string
	lines        recall.Lines
	file         recall.FileAt

	near         bool // read no files that the conversation names, only those next to its file
	path, format string
	conversation *recall.Conversation
	parts        bool // whether the files of originals were read
}

var partForm = plain.Pattern(`^part-[0-9]+(\.jsonl)?$`)

// pieces returns all lost content, the text of a file, or the pieces that the arguments name.
func (r *recalling) pieces(names []string, lost bool) ([]recall.Piece, error) {
	switch {
	case lost:
		return r.lost()
	case r.file.Name != "":
		return r.conversation.Own.Text(&r.file)
	}
	return r.named(names)
}

// named returns the pieces that the arguments name, or an error for each that names none.
func (r *recalling) named(names []string) ([]recall.Piece, error) {
	var (
		found []recall.Piece
		errs  []error
	)
	for _, name := range names {
		pieces, err := r.find(name)
		errs = append(errs, err)
		for _, p := range pieces {
			if !slices.ContainsFunc(found, func(q recall.Piece) bool {
				return q.Handle == p.Handle && core.EqualParts([]core.Part{q.Part}, []core.Part{p.Part})
			}) {
				found = append(found, p)
			}
		}
	}
	return found, errors.Join(errs...)
}

func (r *recalling) find(name string) (found []recall.Piece, err error) {
	own := r.conversation.Own
	refs := recall.ParseRefs(name)
	named, is := own.Message(name)
	switch {
	case is && (refs == nil || refs[0].Handle != ""):
		return named, nil
	case partForm().MatchString(name):
		s, err := addOriginals(r.conversation, filepath.Join(originalsDir(r.path), strings.TrimSuffix(name, ".jsonl")+".jsonl"))
		if err != nil {
			return nil, err
		}
		return s.All(), nil
	case refs == nil:
		if text, err := own.Text(&recall.FileAt{Name: name}); err == nil || errors.Is(err, recall.ErrSeveral) {
			return text, err
		}
		_, err := messageNamed(own.Journal, name)
		return nil, fmt.Errorf("%w; a number is such as m41 or m41.2, a handle has ten digits of 0-9 and a-f; %s; the output for all of them can be searched with grep", err, own.Has())
	}
	for _, ref := range refs {
		pieces, err := r.referred(ref)
		if err != nil && !is {
			return nil, err
		}
		if found = append(found, pieces...); r.lines != (recall.Lines{}) {
			found = slices.DeleteFunc(found, func(p recall.Piece) bool { return p.Context })
		}
	}
	return append(found, named...), nil // the ID of a message can look like the number of another
}

// referred returns the content of a reference.
func (r *recalling) referred(ref recall.Ref) ([]recall.Piece, error) {
	own := r.conversation.Own
	if ref.Handle == "" {
		return own.Numbered(ref)
	}
	if pieces := r.conversation.Named(ref); pieces != nil {
		return pieces, nil
	}
	if err := r.readParts(); err != nil {
		return nil, err
	}
	if pieces := r.conversation.Named(ref); pieces != nil {
		return pieces, nil
	}
	if len(own.Journal.Condensations()) == 0 {
		return nil, fmt.Errorf("no content with the handle %s, and this file records no condensation: try the file that was condensed", ref.Handle)
	}
	return nil, fmt.Errorf("no content with the handle %s; 'condense recall FILE --hidden' lists what is hidden", ref.Handle)
}

// readParts reads the files of originals of the conversation.
func (r *recalling) readParts() error {
	if r.parts || r.path == "-" {
		return nil
	}
	paths, err := filepath.Glob(filepath.Join(disk.Pattern(originalsDir(r.path)), "part-*.jsonl"))
	if err != nil {
		return err
	}
	for _, c := range r.conversation.Own.Journal.Condensations() {
		if r.near {
			break
		}
		if _, err := os.Stat(c.Originals); err == nil && c.Originals != "" && !slices.Contains(paths, c.Originals) {
			paths = append(paths, c.Originals)
		}
	}
	for _, path := range paths {
		if _, err := addOriginals(r.conversation, path); err != nil {
			return err
		}
	}
	r.parts = true
	return nil
}

// addOriginals adds a file of originals to a conversation.
func addOriginals(c *recall.Conversation, path string) (*recall.Source, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d, err := originals(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c.Add(path, d.Journal), nil
}

// lost returns hidden and rewritten content, of one condensation if one is named.
func (r *recalling) lost() ([]recall.Piece, error) {
	if r.condensation == "" {
		return r.conversation.Own.Lost(nil), nil
	}
	all := r.conversation.Own.Journal.Condensations()
	id, err := condensationNamed(all, r.condensation, r.format)
	if err != nil {
		return nil, err
	}
	c := all[slices.IndexFunc(all, func(c history.Condensation) bool { return c.ID == id })]
	touched := plain.Set(c.Edit.Hide)
	for i := range c.Edit.Rewrite {
		touched[c.Edit.Rewrite[i].ID] = true
	}
	return r.conversation.Own.Lost(touched), nil
}

// elsewhere returns the handles in the view whose content is neither in the conversation nor in its files of
// originals, because it was removed before the file was written. Each is listed once.
func (r *recalling) elsewhere() []string {
	_ = r.readParts() // without them more is elsewhere
	return r.conversation.Elsewhere()
}
