package score_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/tokens"
)

var update = flag.Bool("update", false, "write common.bin from the sessions of CONDENSE_TRACES_DIR")

// A background survives being written and read, without the names that only one source has.
func TestBackground(t *testing.T) {
	session := func(source, text string) *score.Session {
		return &score.Session{Source: source, Messages: []core.Message{user(text)}}
	}
	b := score.NewBackground([]*score.Session{
		session("one", "sharedName and oneName"), session("two", "sharedName"), session("two", "twoName twice"), session("three", "nothing"),
	})
	if *update {
		list, _ := scorers(t, tokens.Chars4)
		var sessions []*score.Session
		for _, s := range list {
			sessions = append(sessions, s.Cut().Session)
		}
		b = score.NewBackground(sessions)
	}
	var file bytes.Buffer
	if _, err := b.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("common.bin", file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	data := bytes.Clone(file.Bytes())
	got, err := score.ReadBackground(&file)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"sharedName": 1, "oneName": 0, "twoName": 0, "unknownName": 0} {
		if n := got.Others(name, "one"); n != want {
			t.Errorf("%s: %d other sources, want %d", name, n, want)
		}
	}
	if n := got.Others("sharedName", "elsewhere"); n != 2 {
		t.Errorf("sharedName, from a source that the background does not know: %d other sources, want 2", n)
	}
	if _, err := score.ReadBackground(bytes.NewReader(data[:len(data)/2])); err == nil {
		t.Error("half a file is read without an error")
	}
}
