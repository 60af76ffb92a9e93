package recall_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/testkit"
)

// session is a conversation whose results r1 to rN are hidden, and whose last is not.
func session(t *testing.T, results ...string) *recall.Conversation {
	t.Helper()
	j := history.New()
	edit := core.Edit{}
	for i, text := range append(results, "the last") {
		id, n := fmt.Sprintf("r%d", i+1), fmt.Sprintf("call%d", i+1)
		if err := j.Append(
			core.Message{ID: "a" + id, Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: n, Name: "read_file", Args: fmt.Sprintf(`{"path":"src/f%d.go"}`, i+1)}}},
			core.Message{ID: id, Role: core.RoleUser, Parts: []core.Part{core.ToolResult{CallID: n, Content: []core.Part{core.Text(text)}}}},
		); err != nil {
			t.Fatal(err)
		}
		if i < len(results) {
			edit.Hide = append(edit.Hide, "a"+id, id)
		}
	}
	if err := j.Condense(history.Condensation{ID: "C", Edit: edit}); err != nil {
		t.Fatal(err)
	}
	return recall.New(j)
}

// A recalled PDF is a few words, not a megabyte of base64 in the model's window; a document that is text is its text.
func TestRecalledPDFIsNoBase64(t *testing.T) {
	text := strings.Repeat("One line of the plan.\n", 100)
	for want, m := range map[string]core.Opaque{
		"[PDF, 3 pages, ": {Kind: "document", JSON: `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` +
			base64.StdEncoding.EncodeToString(testkit.PDF(3, 700_000, true)) + `"}}`},
		text: {Kind: "document", JSON: `{"document":{"format":"txt","name":"a","source":{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"}}}`},
	} {
		j := history.New()
		if err := j.Append(core.Message{ID: "m", Role: core.RoleUser, Parts: []core.Part{m}}); err != nil {
			t.Fatal(err)
		}
		pieces := recall.New(j).Handle(core.Handle(m))
		if len(pieces) != 1 || !strings.HasPrefix(pieces[0].Text(), want) || len(pieces[0].Text()) > len(want)+100 {
			t.Errorf("want %.20q…, got %.300s", want, fmt.Sprint(pieces))
		}
	}
}

func TestPieceSaysWhereItWas(t *testing.T) {
	c := session(t, "package a\n", "package b\n")
	pieces, ok := c.Own.Message("r2")
	if !ok || len(pieces) != 1 {
		t.Fatalf("got %v", pieces)
	}
	p := pieces[0]
	if p.What != "result of read_file" || p.Path != "src/f2.go" || p.State() != "hidden by C" || p.Text() != "package b\n" {
		t.Errorf("got %+v", p)
	}
	if again := c.Handle(p.Handle); len(again) != 1 || again[0].Text() != p.Text() || again[0].Path != p.Path {
		t.Errorf("by handle: got %+v", again)
	}
	if c.Handle("0000000000") != nil {
		t.Error("an unknown handle was found")
	}
	if lost := c.Own.Lost(nil); len(lost) != 4 {
		t.Errorf("%d pieces are lost, want 4: two calls, two results", len(lost))
	}
}

// someText draws lines that are empty, long, not ASCII, with both line ends, with or without a last one.
func someText(rt *rapid.T, name string) string {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "func main() {", "grüße 世界 🎉", "\x00\x1b[31m", strings.Repeat("long ", 40), "x\r"}), 0, 30).Draw(rt, name)
	text := strings.Join(lines, "\n")
	if rapid.Bool().Draw(rt, name+" ends") {
		text += "\n"
	}
	return text
}

// TestPagesAreTheContent: whatever is selected, of however many pieces and in pages of whatever
// size, the pages put together are the selection byte for byte, and never cut a character.
func TestPagesAreTheContent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var pieces []recall.Piece
		for i := range rapid.IntRange(1, 4).Draw(rt, "pieces") {
			pieces = append(pieces, recall.Piece{Part: core.Text(someText(rt, fmt.Sprint("text ", i)))})
		}
		var s recall.Selection
		if rapid.Bool().Draw(rt, "some lines") {
			s.Lines.From = rapid.IntRange(0, 12).Draw(rt, "from")
			s.Lines.To = rapid.SampledFrom([]int{0, s.Lines.From, s.Lines.From + 3, 1 << 62}).Draw(rt, "to")
		}
		switch rapid.IntRange(0, 2).Draw(rt, "end") {
		case 1:
			s.Head = rapid.IntRange(1, 12).Draw(rt, "head")
		case 2:
			s.Tail = rapid.IntRange(1, 12).Draw(rt, "tail")
		}
		if rapid.Bool().Draw(rt, "grep") {
			s.Grep, _ = recall.ParsePattern(rapid.SampledFrom([]string{"", "a", "^$", "世", `\d`, "x$"}).Draw(rt, "pattern"))
		}
		want, failed := "", 0
		for i := range pieces {
			text, _, err := s.Of(t.Context(), pieces[i].Text())
			if err != nil {
				failed++
				continue
			}
			if s.Grep == nil && !strings.Contains(pieces[i].Text(), text) {
				rt.Fatalf("%q is no part of %q", text, pieces[i].Text())
			}
			want += text
		}
		limit := rapid.IntRange(1, 300).Draw(rt, "limit")
		got, offset := "", 0
		for {
			page, err := recall.Select(t.Context(), pieces, &s, offset, limit)
			if err != nil {
				if failed < len(pieces) {
					rt.Fatal(err)
				}
				return
			}
			size := 0
			for _, c := range page.Chunks {
				got += c.Text
				size += len(c.Text)
				if !utf8.ValidString(c.Text) {
					rt.Fatalf("cut inside of a character: %q", c.Text)
				}
			}
			if page.Total != len(want) || size >= limit+utf8.UTFMax {
				rt.Fatalf("page of %d bytes at %d, limit %d, %d in all; want %d", size, offset, limit, page.Total, len(want))
			}
			if page.Next == 0 {
				break
			}
			if page.Next <= offset {
				rt.Fatalf("the next page after %d is %d", offset, page.Next)
			}
			offset = page.Next
		}
		if got != want {
			rt.Fatalf("got %q; want %q", got, want)
		}
	})
}

// TestRanges: the lines of a range are those that a naive reading gives, however large the range is.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := someText(rt, "text")
		lines := strings.SplitAfter(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		from := rapid.SampledFrom([]int{1, 2, 5, 40, 1 << 40}).Draw(rt, "from")
		to := from + rapid.SampledFrom([]int{0, 1, 7, 1 << 50}).Draw(rt, "more")
		r, err := recall.ParseLines(fmt.Sprintf("%d-%d", from, to))
		if err != nil {
			rt.Fatal(err)
		}
		got, is, err := r.Cut(text)
		if from > len(lines) {
			if err == nil {
				rt.Fatalf("got %q", got)
			}
			return
		}
		to = min(to, len(lines))
		if want := strings.Join(lines[from-1:to], ""); err != nil || got != want || is != (recall.Lines{From: from, To: to}) {
			rt.Fatalf("got %q, %v, %v; want %q", got, is, err, want)
		}
	})
	for _, wrong := range []string{"-", "0", "4-2", "a-b", "1-2-3", "-0", "--5", " 1", "99999999999999999999-", "1-99999999999999999999"} {
		if r, err := recall.ParseLines(wrong); err == nil {
			t.Errorf("%q is %v", wrong, r)
		}
	}
}

// TestGrepIsWhatRegexpFinds: line by line, with the numbers of the whole text.
func TestGrepIsWhatRegexpFinds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := someText(rt, "text")
		pattern := rapid.SampledFrom([]string{"", "a", "^$", "^a$", "(?i)FUNC", `\bm`, "世.*🎉", "x$", "(a|b)*g"}).Draw(rt, "pattern")
		p, err := recall.ParsePattern(pattern)
		if err != nil {
			rt.Fatal(err)
		}
		s := recall.Selection{Grep: p}
		got, _, err := s.Of(t.Context(), text)
		if err != nil {
			rt.Fatal(err)
		}
		want := ""
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if text != "" && regexp.MustCompile(pattern).MatchString(strings.TrimRight(line, "\r")) {
				want += fmt.Sprintf("%d:%s\n", i+1, line)
			}
		}
		if got != want {
			rt.Fatalf("got %q; want %q", got, want)
		}
	})
}

// TestHostilePatterns: no pattern keeps the search beyond the end of its context, in one line of 8 MB.
func TestHostilePatterns(t *testing.T) {
	text := strings.Repeat("a", 8<<20) + "!"
	for _, pattern := range []string{
		`(a+)+$`, `(a|aa)+$`, `(.*)*(.*)*(.*)*b`, `((a{0,30}){0,30})b`, strings.Repeat(`(a?){1000}`, 90) + "b",
	} {
		p, err := recall.ParsePattern(pattern)
		if err != nil {
			continue // refused is well
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		s := recall.Selection{Grep: p}
		_, _, err = s.Of(ctx, text) // hangs the test if it does not end
		cancel()
		if err != nil && !strings.Contains(err.Error(), "too long") {
			t.Errorf("%.20s: %v", pattern, err)
		}
	}
	for pattern, want := range map[string]string{
		strings.Repeat("a", recall.MaxPattern+1): "at most 1,000",
		`(a)\1`:                                  "no back references",
		`(?=a)`:                                  "look-around",
		`(`:                                      "missing closing",
	} {
		if _, err := recall.ParsePattern(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v; want %s", pattern, err, want)
		}
	}
}

func TestSelectRefuses(t *testing.T) {
	pieces := []recall.Piece{{Part: core.Text("one\ntwo\n")}, {Part: core.Text("é")}}
	for name, tt := range map[string]struct {
		s      recall.Selection
		offset int
		want   string
	}{
		"head and tail":       {recall.Selection{Head: 1, Tail: 1}, 0, "not both"},
		"negative":            {recall.Selection{Head: -1}, 0, "1 or more"},
		"offset after it":     {recall.Selection{}, 10, "there are 10 bytes"},
		"negative offset":     {recall.Selection{}, -1, "there are 10 bytes"},
		"inside a character":  {recall.Selection{}, 9, "inside of a character"},
		"lines after the end": {recall.Selection{Lines: recall.Lines{From: 3}}, 0, "the text has 1 line"},
	} {
		if page, err := recall.Select(t.Context(), pieces, &tt.s, tt.offset, 100); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %+v, %v; want %s", name, page, err, tt.want)
		}
	}
}

// A handle followed by + names everything from there on, in order, also what is not hidden.
func TestNamedOnward(t *testing.T) {
	c := session(t, "one", "two", "one", "three")
	all := c.Own.All()
	at := slices.IndexFunc(all, func(p recall.Piece) bool { return p.Text() == "two" })
	handle := all[at].Handle
	if got := c.Named(ref(t, "h:"+handle)); len(got) != 1 || got[0].Text() != "two" {
		t.Errorf("without +: %v", got)
	}
	var want []string
	for _, p := range all[at:] {
		want = append(want, p.Text())
	}
	var got []string
	for _, p := range c.Named(ref(t, "[… h:"+handle+"+]")) {
		got = append(got, p.Text())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := c.Named(ref(t, "0123456789+")); got != nil {
		t.Errorf("a handle of nothing: %v", got)
	}
}

func ref(t *testing.T, text string) recall.Ref {
	t.Helper()
	refs := recall.ParseRefs(text)
	if len(refs) != 1 {
		t.Fatalf("%s has %d references", text, len(refs))
	}
	return refs[0]
}

// A match in a line of many thousand bytes does not cost all of them.
func TestMatchInALongLine(t *testing.T) {
	line := `{"content":"` + strings.Repeat("é lorem ipsum ", 2000) + "the needle" + strings.Repeat(" dolor é", 2000) + `"}`
	p, err := recall.ParsePattern("needle")
	if err != nil {
		t.Fatal(err)
	}
	s := recall.Selection{Grep: p, Short: true}
	got, _, err := s.Of(t.Context(), "first line\n"+line+"\nlast needle")
	if err != nil || len(got) > 700 || !strings.HasPrefix(got, "2:…") || !strings.Contains(got, "the needle dolor") || !strings.HasSuffix(got, "…\n3:last needle\n") || !utf8.ValidString(got) {
		t.Errorf("%d bytes, %v: %s", len(got), err, got)
	}
}
