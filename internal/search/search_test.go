package search_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/search"
)

// results is a conversation of reads of src/f1.go and so on.
func results(t *testing.T, texts ...string) []recall.Piece {
	t.Helper()
	j := history.New()
	for i, text := range texts {
		id, call := fmt.Sprintf("r%d", i+1), fmt.Sprintf("call%d", i+1)
		if err := j.Append(
			core.Message{ID: "a" + id, Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: call, Name: "read_file", Args: fmt.Sprintf(`{"path":"src/f%d.go"}`, i+1)}}},
			core.Message{ID: id, Role: core.RoleUser, Parts: []core.Part{core.ToolResult{CallID: call, Content: []core.Part{core.Text(text)}}}},
		); err != nil {
			t.Fatal(err)
		}
	}
	return recall.New(j).Own.All()
}

// find returns the messages and the first line of each hit, best first.
func find(t *testing.T, pieces []recall.Piece, query string) string {
	t.Helper()
	x, err := search.NewIndex(t.Context(), pieces)
	if err != nil {
		t.Fatal(err)
	}
	q, err := search.Parse(query)
	if err != nil {
		return err.Error()
	}
	hits, _ := x.Find(q, 10)
	var s []string
	for _, h := range hits {
		s = append(s, fmt.Sprint(h.Piece.Places[0].Message.ID, ":", h.Best[0].Number))
	}
	return strings.Join(s, " ")
}

func TestFind(t *testing.T) {
	t.Parallel()
	pieces := results(t,
		strings.Repeat("func unrelated() {}\n", 200)+"func readConfigFile(path string) error {\n"+strings.Repeat("func other() {}\n", 200),
		"nothing\n", "nothing at all\n", "nothing here\n", "nothing there\n", // further than neighbours
		"the config is read elsewhere and configured by the HTTPServer\n",
		"no\n", "no one\n", "no, two\n", "no and three\n",
		"写真を検索する\n",
		"-\n", "--\n", "---\n", "- -\n",
		strings.Repeat("x", 9000)+" needle_in_one_line "+strings.Repeat("y", 9000),
		"a connection was refused: dial tcp\n", "the connection pool refused nothing; tcp is fine\n",
	)
	place := history.Recalled{Part: core.Reasoning{Encrypted: "gAAAA"}}
	pieces = append(pieces, recall.Piece{Handle: "5ea1ed0000", Part: place.Part, What: "reasoning", Places: []history.Recalled{place}})
	for query, want := range map[string]string{
		"readConfigFile":                       "r1:201",     // its words count less than all of it
		"configuring":                          "r6:1",       // stems
		"what is the config about":             "r6:1",       // stop words do not count
		"http server":                          "r6:1",       // parts of names
		"検索":                                   "r11:1",      // languages without spaces
		"needle_in_one_line":                   "r16:1",      // a line longer than a passage
		`"connection refused"`:                 "",           // phrases are runs of words
		`"connection was refused"`:             "r17:1",      //
		`"refused" connection`:                 "r17:1",      // one word is no phrase
		"file:src/f11.go":                      "r11:1",      // without words: everything about it, newest first
		"no file:f8.go":                        "r8:1 ar8:1", // with its call
		"no tool:bash":                         "",           //
		"absent":                               "",           //
		"encrypted bytes":                      "",           // what only the vendor can read
		"!?":                                   "the query has no words: name some that the text has, such as a function, a file or an error",
		strings.Repeat("x", search.MaxQuery+1): "the query has 1,001 bytes; at most 1,000 are allowed",
	} {
		if got := find(t, pieces, query); got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%q: got %q; want %q", query, got, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := search.NewIndex(ended, pieces); err == nil {
		t.Error("it ignores the end of the context")
	}
}

// The answer to a question is found although it has none of the words of the question.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	j := history.New()
	for i, text := range []string{"Hello.", "Fine.", "Did you repair the pump?", "Yes, on Tuesday.", "And then?", "Nothing.", "Rain again.", "So it goes."} {
		m := core.Message{ID: fmt.Sprint("m", i), Role: core.RoleUser, Parts: []core.Part{core.Text(text)}}
		if i%2 == 1 {
			m.Role = core.RoleAssistant
		}
		if err := j.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	if got := find(t, recall.New(j).Own.All(), "When was the pump repaired?"); !strings.HasPrefix(got, "m2:1 m3:1 m1:1") {
		t.Errorf("got %s", got)
	}
}

// A word of a text is found, in a passage that holds it or a word with the same stem.
func TestEveryWord(t *testing.T) {
	t.Parallel()
	var stemmer search.Stemmer
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zA-Z]{2,8}([_][a-z]{2,4})?`), 1, 400).Draw(rt, "words")
		text := ""
		for _, w := range words {
			text += w + rapid.SampledFrom([]string{" ", "\n", ".", "\r\n", strings.Repeat("-", 3000)}).Draw(rt, "between")
		}
		w := rapid.SampledFrom(words).Draw(rt, "word")
		x, err := search.NewIndex(t.Context(), results(t, text))
		if err != nil {
			rt.Fatal(err)
		}
		q, err := search.Parse(w)
		if err != nil {
			rt.Fatal(err)
		}
		hits, _ := x.Find(q, 10)
		if !slices.ContainsFunc(hits, func(h search.Hit) bool {
			cut, _, err := h.Lines.Cut(h.Piece.Text())
			stem, found := stemmer.Stem([]byte(strings.ToLower(w))), false
			search.Words(cut, func(word []byte, _ bool) {
				found = found || stemmer.Stem(word) == stem
			})
			return err == nil && found
		}) {
			rt.Fatalf("%q: %v", w, hits)
		}
	})
}

func TestWords(t *testing.T) {
	t.Parallel()
	var got []string
	search.Words("readConfigFile XMLHttpRequest read_file a/b_c.go v2 Ünder 写真", func(w []byte, part bool) {
		got = append(got, string(w)+map[bool]string{true: "+"}[part])
	})
	if want := "read+ config+ file+ readconfigfile xml+ http+ request+ xmlhttprequest read+ file+ read_file a b+ c+ b_c go v2 ünder 写 真"; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}
