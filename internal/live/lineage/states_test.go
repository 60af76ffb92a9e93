package lineage_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/lineage"
)

// What providers leave is stored with the epoch: a later one adds to it, undoing it brings the former back, a branch goes on from its own.
func TestStatesOfEpochs(t *testing.T) {
	r, rolling := parse(t, conversation(9))
	shorten := func(s *lineage.State, summary string, states map[string][]byte) *lineage.State {
		t.Helper()
		after, _ := parse(t, append([]string{fmt.Sprintf(`{"role":"user","content":%q}`, summary)}, conversation(9)[5:]...))
		e, err := s.Freeze(r, rolling, lineage.Condensed{After: after.Messages, States: states}, begin)
		if err != nil {
			t.Fatal(err)
		}
		e.Sent(r, rolling, begin.Add(time.Second))
		data, err := json.Marshal(e)
		if err = errors.Join(err, json.Unmarshal(data, e)); err != nil {
			t.Fatal(err)
		}
		e.ID = summary
		return e
	}
	check := func(s *lineage.State, want string) {
		t.Helper()
		if got := fmt.Sprintf("%q", s.Epoch.States); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	raw, _ := lineage.Follow(nil, r, rolling)
	first := shorten(raw, "One.", map[string][]byte{"p": []byte("1"), "q": []byte("Q\xff")})
	second := shorten(first, "Two.", map[string][]byte{"p": []byte("2")})
	check(second, `map["p":"2" "q":"Q\xff"]`)
	check(first, `map["p":"1" "q":"Q\xff"]`)
	undone, err := second.Undo(first, r, rolling, begin)
	if err != nil {
		t.Fatal(err)
	}
	check(undone, `map["p":"1" "q":"Q\xff"]`)
	all, err := first.Undo(raw, r, rolling, begin)
	if err != nil {
		t.Fatal(err)
	}
	check(all, `map[]`)
	more, hashes := parse(t, append(conversation(7), `{"role":"user","content":"Another way."}`))
	branch, kind := lineage.Follow([]*lineage.State{second}, more, hashes)
	if kind != lineage.Fork {
		t.Fatalf("got kind %v, want Fork", kind)
	}
	check(branch, `map["p":"2" "q":"Q\xff"]`)
}
