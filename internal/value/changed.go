package value

import (
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/outline"
	"github.com/condensehq/condense/internal/value/ledger"
)

// The entry of a file has so many changed names, or lines.
const (
	changedNames = 4
	changedLines = 2
)

// changed returns an entry for each file that the conversation changed, most recently changed first: its path, the
// number of changes, and the names of the changed definitions. Entries of an earlier extract about other files follow.
func (pre *preface) changed() (out []string) {
	pre.root = pre.r.folder
	files := slices.DeleteFunc(slices.Clone(pre.r.replayed.Files), func(f *ledger.File) bool { return f.Edited < 0 })
	slices.SortStableFunc(files, func(a, b *ledger.File) int { return b.Edited - a.Edited })
	said := map[string]bool{}
	for _, f := range files {
		name := shortPath(f.Path, pre.root)
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
		} else if lines := newestIn(f); len(lines) > 0 {
			about = append(about, strings.Join(lines, "; "))
		}
		e := changedName + name
		if len(about) > 0 {
			e += " (" + strings.Join(about, ": ") + ")"
		}
		out = append(out, oneLine(e, openLong))
	}
	for _, line := range slices.Backward(pre.r.c.open) {
		rest, ok := strings.CutPrefix(line, changedName)
		name, _, _ := strings.Cut(rest, " ")
		if ok && !said[name] {
			said[name] = true
			out = append(out, line)
		}
	}
	return out[:min(len(out), openChanged)]
}

// definedIn returns the names of the definitions whose lines were changed, most recently changed first. The outline has them: a word
// after "type" may be one of a comment, a string or the key of an object.
func definedIn(f *ledger.File) (out []string) {
	edited := map[string]int{}
	for _, r := range f.Runs {
		var text strings.Builder
		for i := range r.Lines {
			text.WriteString(r.Lines[i].Text + "\n")
		}
		owner := make([]string, len(r.Lines)) // the innermost definition with each line
		for _, d := range outline.Definitions(outline.Language(f.Path), text.String()) {
			for i := d.Start - 1; i < min(d.End, len(owner)); i++ {
				owner[i] = d.Name
			}
		}
		for i, name := range owner {
			if at := r.Lines[i].Edited; at >= 0 && name != "" {
				if _, known := edited[name]; !known {
					out = append(out, name)
				}
				edited[name] = max(edited[name], at)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return edited[b] - edited[a] })
	return out[:min(len(out), changedNames)]
}

// newestIn returns the lines of a file without definitions that were changed last, unless a later change is not known.
func newestIn(f *ledger.File) (out []string) {
	last := max(f.Unsure, 0)
	for _, r := range f.Runs {
		for i := range r.Lines {
			at, text := r.Lines[i].Edited, strings.TrimSpace(r.Lines[i].Text)
			if at < last || !hasWord(text) {
				continue
			}
			if at > last {
				last, out = at, nil
			}
			if len(out) < changedLines {
				out = append(out, text)
			}
		}
	}
	return out
}
