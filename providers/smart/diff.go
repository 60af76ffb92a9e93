package smart

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/toolcall"
)

// unifiedDiff returns the hunks of a unified diff without context that turns a into b, with the
// line numbers of GNU diff -U0. It is a patience diff: it matches the lines that occur once in
// both texts, in their longest common order, and then recurses between them. Where there is no
// such line, everything is replaced, so the diff is correct but not always the smallest. The cost
// is n log n in the number of lines.
func unifiedDiff(a, b string) string {
	d := differ{a: splitLines(a), b: splitLines(b)}
	d.walk(0, len(d.a), 0, len(d.b))
	var out strings.Builder
	for _, h := range d.hunks {
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", hunkRange(h.a0, h.a1), hunkRange(h.b0, h.b1))
		for _, l := range d.a[h.a0:h.a1] {
			diffLine(&out, '-', l)
		}
		for _, l := range d.b[h.b0:h.b1] {
			diffLine(&out, '+', l)
		}
	}
	return out.String()
}

const noNewline = "\\ No newline at end of file\n"

func diffLine(out *strings.Builder, sign byte, line string) {
	out.WriteByte(sign)
	out.WriteString(line)
	if !strings.HasSuffix(line, "\n") {
		out.WriteString("\n" + noNewline)
	}
}

func hunkRange(from, to int) string {
	switch n := to - from; n {
	case 0:
		return strconv.Itoa(from) + ",0"
	case 1:
		return strconv.Itoa(from + 1)
	default:
		return strconv.Itoa(from+1) + "," + strconv.Itoa(n)
	}
}

func splitLines(s string) []string { return slices.Collect(strings.Lines(s)) }

type hunk struct{ a0, a1, b0, b1 int }

type differ struct {
	a, b  []string
	hunks []hunk
}

// walk finds the hunks of a[a0:a1] and b[b0:b1].
func (d *differ) walk(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && d.a[a1-1] == d.b[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	if a0 == a1 && b0 == b1 {
		return
	}
	anchors := d.anchors(a0, a1, b0, b1)
	if len(anchors) == 0 {
		d.hunks = append(d.hunks, hunk{a0, a1, b0, b1})
		return
	}
	for _, m := range anchors {
		d.walk(a0, m[0], b0, m[1])
		a0, b0 = m[0]+1, m[1]+1
	}
	d.walk(a0, a1, b0, b1)
}

// anchors returns the lines that occur once in both, as pairs of indices, in their longest common
// order.
func (d *differ) anchors(a0, a1, b0, b1 int) [][2]int {
	type seen struct{ inA, inB, a, b int }
	lines := make(map[string]*seen, a1-a0)
	for i := a0; i < a1; i++ {
		s := lines[d.a[i]]
		if s == nil {
			s = &seen{}
			lines[d.a[i]] = s
		}
		s.inA, s.a = s.inA+1, i
	}
	for i := b0; i < b1; i++ {
		if s := lines[d.b[i]]; s != nil {
			s.inB, s.b = s.inB+1, i
		}
	}
	var unique [][2]int
	for i := a0; i < a1; i++ {
		if s := lines[d.a[i]]; s.inA == 1 && s.inB == 1 {
			unique = append(unique, [2]int{s.a, s.b})
		}
	}
	return increasing(unique)
}

// increasing returns the longest run of pairs whose second numbers ascend; the first ones
// ascend already.
func increasing(pairs [][2]int) [][2]int {
	var tails []int // index of the last pair of the best run of each length
	before := make([]int, len(pairs))
	for i, p := range pairs {
		n := sort.Search(len(tails), func(k int) bool { return pairs[tails[k]][1] > p[1] })
		before[i] = -1
		if n > 0 {
			before[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	out := make([][2]int, len(tails))
	if len(tails) > 0 {
		for i, k := len(tails)-1, tails[len(tails)-1]; k >= 0; i, k = i-1, before[k] {
			out[i] = pairs[k]
		}
	}
	return out
}

var errHunk = errors.New("not a unified diff of this text")

// patch applies a diff that [unifiedDiff] made to a.
func patch(a, diff string) (string, error) {
	lines := splitLines(a)
	var out strings.Builder
	next := 0
	for diff != "" {
		var head string
		head, diff, _ = strings.Cut(diff, "\n")
		var from, to string
		if n, _ := fmt.Sscanf(head, "@@ -%s +%s @@", &from, &to); n != 2 {
			return "", errHunk
		}
		start, count, err := parseHunkRange(from)
		if err != nil || start < next || start+count > len(lines) {
			return "", errHunk
		}
		for ; next < start; next++ {
			out.WriteString(lines[next])
		}
		for diff != "" && !strings.HasPrefix(diff, "@@ ") {
			var line string
			i := strings.IndexByte(diff, '\n') + 1
			line, diff = diff[:i], diff[i:]
			if rest, ok := strings.CutPrefix(diff, noNewline); ok {
				line, diff = strings.TrimSuffix(line, "\n"), rest
			}
			switch {
			case strings.HasPrefix(line, "+"):
				out.WriteString(line[1:])
			case strings.HasPrefix(line, "-") && next < len(lines) && lines[next] == line[1:]:
				next++
			default:
				return "", errHunk
			}
		}
		if next != start+count {
			return "", errHunk
		}
	}
	for ; next < len(lines); next++ {
		out.WriteString(lines[next])
	}
	return out.String(), nil
}

func parseHunkRange(s string) (start, count int, err error) {
	first, n, several := strings.Cut(s, ",")
	if start, err = strconv.Atoi(first); err != nil {
		return 0, 0, err
	}
	count = 1
	if several {
		if count, err = strconv.Atoi(n); err != nil {
			return 0, 0, err
		}
	}
	if count > 0 {
		start--
	}
	return start, count, nil
}

type nearSettings struct {
	Tokens int     `json:"tokens" doc:"size below which a result is not changed"`
	Share  float64 `json:"share" doc:"largest diff, as a share of what it replaces"`
}

// Validate says which setting is out of range.
func (s *nearSettings) Validate() error {
	if !(s.Share > 0 && s.Share <= 1) {
		return fmt.Errorf("share: %v is not above 0 and at most 1", s.Share)
	}
	return atLeast(0, "tokens", s.Tokens)
}

var nearPass = referring(define("near_duplicates", classLossless, "",
	"Keeps the newest result of equal calls with equal arguments. Older ones become a unified diff from the newest, if that is much smaller. Every diff is verified before it is used.",
	nearSettings{Tokens: 100, Share: 0.5},
	func(ctx context.Context, w *work, c nearSettings) error {
		type key struct{ name, target, path string }
		newest := map[key]int{}
		for i := len(w.segments) - 1; i >= 0; i-- {
			p := &w.segments[i]
			if p.kind != dialog.KindToolResult || p.gone || p.use == nil || p.tokens < c.Tokens || w.hidden[w.message(i)] {
				continue
			}
			u := p.use
			if u.Info.Target == "" && p.of.File.Path == "" {
				continue
			}
			k := key{u.Name, u.Info.Target, p.of.File.Path}
			at, ok := newest[k]
			if hasStub(p.text) {
				if ok && strings.Contains(p.text, stubMark+": "+patchThe) {
					w.segments[at].needed = true // for an earlier condensation's diff
				}
				continue
			}
			w.visited(1)
			if !ok {
				newest[k] = i
				continue
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			asDiff(w, i, at, c.Share)
		}
		return nil
	}))

// asDiff replaces segment i by a diff that turns the later segment at into it.
func asDiff(w *work, i, at int, share float64) bool {
	p, newer := &w.segments[i], w.segments[at].text
	if p.fixed || p.text == newer {
		return false
	}
	diff := unifiedDiff(newer, p.text)
	if float64(len(diff)) >= share*float64(len(p.text)) {
		return false
	}
	if back, err := patch(newer, diff); err != nil || back != p.text {
		return false
	}
	s := stub{where: refer(w, i, patchThe, at) + " with this diff"}
	w.describe(i, &s)
	text := s.String() + "\n" + diff
	if float64(w.count(text)) >= share*float64(p.tokens) || !w.put(i, text) {
		return false
	}
	w.segments[at].needed = true
	return true
}

type duplicatesSettings struct {
	Tokens int `json:"tokens" doc:"size below which a repeated text is not changed"`
}

// Validate says which setting is out of range.
func (s *duplicatesSettings) Validate() error { return atLeast(0, "tokens", s.Tokens) }

var duplicatesPass = referring(define("duplicates", classLossless, "",
	"Keeps the newest copy of tool results, injected texts and long texts of the assistant that appear more than once, verbatim.",
	duplicatesSettings{Tokens: 40},
	func(_ context.Context, w *work, c duplicatesSettings) error {
		seed := maphash.MakeSeed()
		newest := map[uint64][]int{} // by hash, segments of different text
		for i := len(w.segments) - 1; i >= 0; i-- {
			p := &w.segments[i]
			if p.gone || p.needed || w.hidden[w.message(i)] || p.tokens < c.Tokens || !repeats(p.kind) || hasStub(p.text) {
				continue
			}
			w.visited(1)
			h := maphash.String(seed, p.text)
			at := -1
			for _, k := range newest[h] {
				if w.segments[k].text == p.text {
					at = k
					break
				}
			}
			if at < 0 {
				newest[h] = append(newest[h], i)
				continue
			}
			w.leave(i, stub{where: refer(w, i, sameText, at)})
		}
		return nil
	}))

// repeats reports whether texts of kind k are replaced by a reference to an equal one. Text that the user typed
// is kept where it was typed.
func repeats(k dialog.Kind) bool {
	return k == dialog.KindToolResult || k == dialog.KindInjected || k == dialog.KindProjectRules || k == dialog.KindAssistant
}

// How a reference begins.
const (
	sameText = "same text in the"
	seeNewer = "see the newer"
	patchThe = "patch the"
)

// refer says, for the stub of segment i, where the later segment at is: "same text in the
// read_file src/a.go below".
func refer(w *work, i int, what string, at int) string {
	of, _ := w.label(&w.segments[at])
	switch {
	case w.blocks[w.segments[i].block].users:
		of = "one"
	case w.segments[at].use == nil:
		of = "text"
	}
	return what + " " + of + " below"
}

type supersededSettings struct {
	Reads  bool `json:"reads" doc:"remove what a read showed if a later read shows the same lines of the file or more"`
	Writes bool `json:"writes" doc:"remove what a call wrote if a later read shows the whole file"`
	By     bool `json:"by_writes" doc:"count a later call that writes the whole file as a read of it"`
	Runs   bool `json:"runs" doc:"remove the result of a command, list or search if the same call was made again later, whatever its result was"`
}

var supersededPass = referring(define("superseded", classSuperseded, "",
	"Removes old states of files of which a newer state appears later. Ranges of lines are respected.",
	supersededSettings{Reads: true, Writes: true},
	func(_ context.Context, w *work, c supersededSettings) error {
		// From the newest on: which lines of each file are shown below, and where.
		type sight struct {
			file dialog.File
			at   int
		}
		folder := dialog.Folder(w.msgs)
		below := map[string][]sight{} // by the last element of the path
		covered := func(f dialog.File) int {
			for _, s := range below[path.Base(f.Path)] {
				is, sure := toolcall.SameFile(folder, s.file.Path, f.Path)
				if is && (sure || strings.Contains(s.file.Path, "/") && strings.Contains(f.Path, "/")) && s.file.Range.Covers(f.Range) {
					return s.at
				}
			}
			return -1
		}
		if c.Runs {
			supersedeRuns(w)
		}
		for i := len(w.segments) - 1; i >= 0; i-- {
			p := &w.segments[i]
			if p.use == nil || p.gone || w.hidden[w.message(i)] {
				continue
			}
			u := p.use
			switch {
			case p.kind == dialog.KindToolResult && u.Info.Family == dialog.FamilyRead && p.of.File.Path != "" && !u.IsError():
				if isStub(p.text) {
					continue
				}
				w.visited(1)
				if at := covered(p.of.File); at >= 0 && c.Reads {
					what := seeNewer
					if w.segments[at].text == p.text {
						what = sameText
					}
					w.leave(i, stub{where: refer(w, i, what, at)})
					continue
				}
				if base := path.Base(p.of.File.Path); p.of.File.Range != dialog.SeveralRanges && !unreadable(p.text) && len(below[base]) < maxSights {
					below[base] = append(below[base], sight{p.of.File, i})
				}
			case p.kind == dialog.KindToolCall && u.Info.Family == dialog.FamilyWrite && len(u.Info.Files) == 1 && !u.IsError():
				w.visited(1)
				f := dialog.File{Path: u.Info.Files[0].Path}
				if at := covered(f); at >= 0 && c.Writes {
					w.shortenCall(i, 0, refer(w, i, seeNewer, at))
					continue
				}
				if u.results.Start < u.results.End && c.By {
					below[path.Base(f.Path)] = append(below[path.Base(f.Path)], sight{f, i})
				}
			}
		}
		return nil
	}))

// unreadable reports whether the answer to a read is the complaint of a tool that does not
// mark its errors as such: such an answer shows no state of the file.
func unreadable(text string) bool { return len(text) < 400 && wrong(text) > worthLittle }

// supersedeRuns removes the results of calls that were made again with the same arguments. Failures stay: they
// may be the reason for the later call.
func supersedeRuns(w *work) {
	type run struct{ name, args string }
	newest := map[run]int{}
	for k := len(w.uses) - 1; k >= 0; k-- {
		u := &w.uses[k]
		switch u.Info.Family {
		case dialog.FamilyCommand, dialog.FamilyList, dialog.FamilySearch:
		case dialog.FamilyUnknown, dialog.FamilyRead, dialog.FamilyWrite, dialog.FamilyEdit, dialog.FamilyWeb, dialog.FamilyPlan, dialog.FamilyAsk, dialog.FamilyDelegate, dialog.FamilyDone:
			continue
		}
		if !u.Called || u.IsError() || u.results.End-u.results.Start != 1 || w.hidden[u.Message] {
			continue
		}
		r := run{u.Name, w.segments[u.call].text}
		at, again := newest[r]
		if !again {
			newest[r] = u.results.Start
			continue
		}
		w.visited(1)
		w.leave(u.results.Start, stub{where: refer(w, u.results.Start, seeNewer, at)})
	}
}

// maxSights bounds the work on a file that is read in ever new pieces.
const maxSights = 64
