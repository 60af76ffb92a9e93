package smart

import (
	"slices"
	"strings"
)

// The form of a digest, which a later condensation reads again:
//
//	[Digest of the conversation so far, …]
//	Asked:
//	- …
//	Files:
//	- src/a.go (read)
//	(as of #0a1b2c3d)
//
// Of each list the newest entry is the last. What begins with # names the newest message
// that the digest tells of.

// digestHead begins every digest; by it an earlier one is known.
const digestHead = "[Digest of the conversation so far, made by rule, not by a model. What it lists has been done already.]"

const (
	digestAsOf = "(as of "
	digestEnd  = ")"
)

// The lists of a digest.
const (
	digestAsked = iota
	digestPlan
	digestErrors
	digestFiles
	digestLists
)

var digestTitles = [digestLists]string{"Asked", "Open work", "Last errors", "Files"}

const (
	digestAskedMost  = 4 // entries: the newest, and the first, which is the task
	digestErrorsMost = 3
)

// A digestText is what a digest says.
type digestText struct {
	lists  [digestLists][]string // newest first
	mended map[string]bool       // calls that succeeded when they were last made
	marks  []string
}

// same reports whether both say the same.
func (d *digestText) same(e *digestText) bool {
	return slices.EqualFunc(d.lists[:], e.lists[:], slices.Equal[[]string])
}

// readDigest reads what text wrote.
func readDigest(s string) digestText {
	var d digestText
	list := -1
	for line := range strings.SplitSeq(strings.TrimPrefix(s, digestHead), "\n") {
		if title, ok := strings.CutSuffix(line, ":"); ok && slices.Contains(digestTitles[:], title) {
			list = slices.Index(digestTitles[:], title)
			continue
		}
		if entry, ok := strings.CutPrefix(line, "- "); ok && list >= 0 {
			d.lists[list] = append(d.lists[list], entry)
			continue
		}
		if marks, ok := strings.CutPrefix(line, digestAsOf); ok {
			d.marks = strings.Fields(strings.TrimSuffix(marks, digestEnd))
		}
	}
	for k := range d.lists {
		slices.Reverse(d.lists[k])
	}
	return d
}

// follow adds to d, which tells what came later, what old told and what still holds.
func (d *digestText) follow(old *digestText) {
	asked := d.lists[digestAsked]
	for _, e := range old.lists[digestAsked] {
		if !slices.Contains(d.lists[digestAsked], e) {
			asked = append(asked, e)
		}
	}
	if n := len(asked); n > digestAskedMost {
		asked = append(asked[:digestAskedMost-1:digestAskedMost-1], asked[n-1])
	}
	d.lists[digestAsked] = asked
	if len(d.lists[digestPlan]) == 0 {
		d.lists[digestPlan] = old.lists[digestPlan]
	}
	failed := map[string]bool{}
	for _, e := range d.lists[digestErrors] {
		failed[callOf(e)] = true
	}
	for _, e := range old.lists[digestErrors] {
		if call := callOf(e); !d.mended[call] && !failed[call] && len(d.lists[digestErrors]) < digestErrorsMost {
			d.lists[digestErrors] = append(d.lists[digestErrors], e)
		}
	}
	touched := map[string]bool{}
	for _, e := range d.lists[digestFiles] {
		touched[pathOf(e)] = true
	}
	for _, e := range old.lists[digestFiles] {
		if !touched[pathOf(e)] {
			d.lists[digestFiles] = append(d.lists[digestFiles], e)
		}
	}
}

// callOf returns the call that an entry about an error begins with, or as much of it as can
// be told from the error.
func callOf(entry string) string {
	call, _, _ := strings.Cut(entry, ": ")
	return call
}

// pathOf returns the path in an entry about a file.
func pathOf(entry string) string {
	if i := strings.LastIndex(entry, " ("); i >= 0 {
		return entry[:i]
	}
	return entry
}

// text writes the digest in at most limit tokens: of each list the newest entries.
func (d *digestText) text(limit int, count func(string) int) string {
	asOf := ""
	if len(d.marks) > 0 {
		asOf = "\n" + digestAsOf + strings.Join(d.marks, " ") + digestEnd
	}
	var text strings.Builder
	text.WriteString(digestHead)
	room := limit - count(digestHead) - count(asOf)
	for k, entries := range d.lists {
		share := room / (len(d.lists) - k)
		if k == digestAsked {
			share = room / 2
			if n := len(entries); n > 2 { // the newest, the task, and then the others
				entries = slices.Concat(entries[:1], entries[n-1:], entries[1:n-1])
			}
		}
		var kept []string
		for _, e := range entries {
			n := count("- " + e + "\n")
			if n > share {
				break
			}
			share -= n
			room -= n
			kept = append(kept, "- "+e)
		}
		if n := len(kept); k == digestAsked && n > 2 {
			kept = slices.Concat(kept[:1], kept[2:], kept[1:2])
		}
		if len(kept) > 0 {
			slices.Reverse(kept)
			text.WriteString("\n" + digestTitles[k] + ":\n" + strings.Join(kept, "\n"))
			room -= 4
		}
	}
	return text.String() + asOf
}
