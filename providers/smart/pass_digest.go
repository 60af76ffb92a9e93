package smart

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
)

type digestSettings struct {
	Tokens int `json:"tokens" doc:"largest size of the digest"`
}

// Validate says which setting is out of range.
func (s *digestSettings) Validate() error { return atLeast(60, "tokens", s.Tokens) }

var digestPass = onDemand(define("digest", classLossy, "",
	"Puts a message at the head that says what was asked, which files were touched and what became of them, the last errors and the open work. It adds tokens: list it before passes that take out more. A later condensation brings it up to date: there is one, and it keeps what it said of messages that are hidden by then.",
	digestSettings{Tokens: 400},
	func(_ context.Context, w *work, c digestSettings) error {
		at, old := -1, digestText{}
		for i := range w.msgs {
			m := &w.msgs[i]
			if w.hidden[i] || !isDigest(m) {
				continue
			}
			if m.Protected {
				return nil // it must stay as it is
			}
			if at < 0 {
				at, old = i, readDigest(markerText(m))
				continue
			}
			w.hide(group{Span: core.Span{Start: i, End: i + 1}}) // of a version that did not replace digests
		}
		if at < 0 && len(w.head) > 0 {
			return nil
		}
		now := digestFrom(w, undigested(w, old.marks))
		now.follow(&old)
		if slices.EqualFunc(now.lists[:], old.lists[:], slices.Equal[[]string]) {
			return nil
		}
		now.marks = digestMarks(w)
		m := core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(now.text(c.Tokens, w.count))}}
		m.Tokens = core.MessageTokens(w.req.Counter, m)
		if at < 0 {
			if m.Tokens*4 > w.tokens {
				return nil // no conversation to speak of
			}
			w.head = append(w.head, m)
			w.step.Changed++
			w.step.Saved["summary"] -= m.Tokens
			return nil
		}
		was := &w.msgs[at]
		w.step.Changed++
		w.step.Saved["summary"] -= m.Tokens - was.Tokens
		was.Parts, was.Tokens, was.Source = m.Parts, m.Tokens, nil
		return nil
	}))

func isDigest(m *core.Message) bool {
	if m.Kind != core.KindSummary || len(m.Parts) != 1 {
		return false
	}
	t, ok := m.Parts[0].(core.Text)
	return ok && strings.HasPrefix(string(t), digestHead)
}

// undigested returns the first message that a digest with those marks does not cover.
func undigested(w *work, marks []string) int {
	for i := len(w.msgs) - 1; i >= 0 && len(marks) > 0; i-- {
		if w.msgs[i].ID != "" && slices.Contains(marks, digestMark(w.msgs[i].ID)) {
			return i + 1
		}
	}
	return 0
}

// digestMarks returns the marks of a digest made now: of the newest message and, as later passes
// may hide that one, of the newest protected message.
func digestMarks(w *work) []string {
	var marks []string
	for i := len(w.msgs) - 1; i >= 0; i-- {
		m := &w.msgs[i]
		if m.ID == "" || len(marks) > 0 && !m.Protected {
			continue
		}
		marks = append(marks, digestMark(m.ID))
		if m.Protected {
			break
		}
	}
	return marks
}

// digestMark names a message in few tokens.
func digestMark(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "#" + hex.EncodeToString(sum[:4])
}

// digestFrom describes the messages from index from on.
func digestFrom(w *work, from int) digestText {
	var d digestText
	d.lists[digestAsked] = askedSince(w, from)
	d.lists[digestPlan] = lastPlan(w, from)
	d.lists[digestErrors], d.mended = lastErrors(w, from)
	d.lists[digestFiles] = filesTouched(w, from)
	return d
}

// askedSince quotes the user, newest messages first.
func askedSince(w *work, from int) []string {
	var out []string
	for i := len(w.segments) - 1; i >= 0 && w.message(i) >= from; i-- {
		if p := &w.segments[i]; p.kind == dialog.KindUser {
			if line := oneLine(dialog.Unwrap(p.text), 240); line != "" {
				out = append(out, line)
			}
		}
	}
	return out
}

// lastPlan quotes the newest list of open work.
func lastPlan(w *work, from int) []string {
	for _, u := range slices.Backward(w.uses) {
		if u.Info.Family != dialog.FamilyPlan || !u.Called || u.Message < from || isStub(w.segments[u.call].text) {
			continue
		}
		text := w.segments[u.call].text
		if strings.HasPrefix(text, "<") {
			text = cmp.Or(dialog.Element(text, "todos"), text)
		}
		return []string{oneLine(text, 600)}
	}
	return nil
}

// lastErrors quotes the results of the newest calls that failed and that did not succeed later.
// It also returns the calls that succeeded when they were last made.
func lastErrors(w *work, from int) (quoted []string, mended map[string]bool) {
	mended = map[string]bool{}
	seen := map[string]bool{}
	for _, u := range slices.Backward(w.uses) {
		if u.Message < from || u.results.Start == u.results.End {
			continue
		}
		call := oneLine(u.Name, 80) + " " + digest(u.Info.Target)
		if seen[call] {
			continue
		}
		seen[call] = true
		if !u.IsError() {
			mended[callOf(call+": ")] = true
			continue
		}
		if len(quoted) < digestErrorsMost {
			quoted = append(quoted, call+": "+oneLine(w.segments[u.results.Start].text, 200))
		}
	}
	return quoted, mended
}

// filesTouched lists files with the last operation on each, most recent first.
func filesTouched(w *work, from int) []string {
	done := map[dialog.Family]string{dialog.FamilyRead: "read", dialog.FamilyWrite: "written", dialog.FamilyEdit: "edited"}
	var out []string
	seen := map[string]bool{}
	for _, u := range slices.Backward(w.uses) {
		verb := done[u.Info.Family]
		if verb == "" || u.Message < from {
			continue
		}
		if u.IsError() {
			verb += ", failed"
		}
		for _, f := range u.Info.Files {
			if !seen[f.Path] {
				seen[f.Path] = true
				out = append(out, oneLine(f.Path, 200)+" ("+verb+")")
			}
		}
	}
	return out
}

// oneLine returns at most n bytes of s on one line.
func oneLine(s string, n int) string {
	cut := len(s) > 2*n
	if cut {
		s = s[:2*n]
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	if len(s) > n {
		s, cut = strings.ToValidUTF8(s[:n], ""), true
	}
	if cut {
		s += "…"
	}
	return s
}

// The form of a digest, which a later condensation parses:
//
//	[Digest of the conversation so far, …]
//	Asked:
//	- …
//	Files:
//	- src/a.go (read)
//	(as of #0a1b2c3d)
//
// The newest entry of each list is the last. The words that begin with # are marks of the newest
// messages that the digest covers.

// digestHead begins every digest and identifies it.
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

// A digestText is the content of a digest.
type digestText struct {
	lists  [digestLists][]string // newest first
	mended map[string]bool       // calls that succeeded when they were last made
	marks  []string
}

// readDigest parses the output of text.
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

// follow adds to d the entries of old, an earlier digest, that still hold.
func (d *digestText) follow(old *digestText) {
	asked := d.lists[digestAsked]
	asked = append(asked, plain.Only(old.lists[digestAsked], func(e string) bool { return !slices.Contains(d.lists[digestAsked], e) })...)
	if n := len(asked); n > digestAskedMost {
		asked = append(asked[:digestAskedMost-1:digestAskedMost-1], asked[n-1])
	}
	d.lists[digestAsked] = asked
	if len(d.lists[digestPlan]) == 0 {
		d.lists[digestPlan] = old.lists[digestPlan]
	}
	failed := plain.Set(plain.Each(d.lists[digestErrors], callOf))
	for _, e := range old.lists[digestErrors] {
		if call := callOf(e); !d.mended[call] && !failed[call] && len(d.lists[digestErrors]) < digestErrorsMost {
			d.lists[digestErrors] = append(d.lists[digestErrors], e)
		}
	}
	touched := plain.Set(plain.Each(d.lists[digestFiles], pathOf))
	d.lists[digestFiles] = append(d.lists[digestFiles], plain.Only(old.lists[digestFiles],
		func(e string) bool { return !touched[pathOf(e)] })...)
}

// callOf returns the call that an entry about an error begins with, up to the first ": ".
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

// text writes the digest in at most limit tokens, with the newest entries of each list.
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
