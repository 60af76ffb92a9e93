package value

import (
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/value/ledger"
)

// changedNames is the number of changed names in the entry of a file.
const changedNames = 4

// changed returns an entry for each file that the conversation changed, most recently changed first: its path, the
// number of changes, and the names that changed lines define. Entries of an earlier extract about other files follow.
func (w *preface) changed() (out []string) {
	l := w.ledger()
	root := w.root
	files := slices.DeleteFunc(slices.Clone(l.Files), func(f *ledger.File) bool { return f.Edited < 0 })
	slices.SortStableFunc(files, func(a, b *ledger.File) int { return b.Edited - a.Edited })
	said := map[string]bool{}
	for _, f := range files {
		name := shortPath(f.Path, root)
		if name == "" || said[name] {
			continue
		}
		said[name] = true
		var about []string
		if n := f.Edits; n > 1 {
			about = append(about, strconv.Itoa(n)+" edits")
		} else if n == 0 {
			about = append(about, "written")
		}
		if names := definedIn(f); len(names) > 0 {
			about = append(about, strings.Join(names, ", "))
		}
		e := changedName + name
		if len(about) > 0 {
			e += " (" + strings.Join(about, ": ") + ")"
		}
		out = append(out, oneLine(e, openLong))
	}
	for _, line := range slices.Backward(w.c.open) {
		rest, ok := strings.CutPrefix(line, changedName)
		name, _, _ := strings.Cut(rest, " ")
		if ok && !said[name] {
			said[name] = true
			out = append(out, line)
		}
	}
	return out[:min(len(out), openChanged)]
}

// definedIn returns names that the changed lines of a file define, most recently changed first.
func definedIn(f *ledger.File) (out []string) {
	type defined struct {
		name   string
		edited int
	}
	var all []defined
	for _, r := range f.Runs {
		for i := range r.Lines {
			if line := &r.Lines[i]; line.Edited >= 0 {
				for name, before := range names(line.Text) {
					if defining[before] {
						all = append(all, defined{name, line.Edited})
					}
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b defined) int { return b.edited - a.edited })
	for _, d := range all {
		if len(out) < changedNames && !slices.Contains(out, d.name) {
			out = append(out, d.name)
		}
	}
	return out
}
