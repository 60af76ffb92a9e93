package history_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

// States are those of the newest condensations that are active, after every undo and rewind, and after reading the file again.
func TestStates(t *testing.T) {
	j := history.New()
	say := func(id string) {
		t.Helper()
		if err := j.Append(core.Message{ID: id, Role: core.RoleUser, Parts: []core.Part{core.Text(id)}}); err != nil {
			t.Fatal(err)
		}
	}
	shorten := func(id, hides string, states map[string][]byte) {
		t.Helper()
		if err := j.Condense(history.Condensation{ID: id, Edit: core.Edit{Hide: []string{hides}}, States: states}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when, want string) {
		t.Helper()
		var file bytes.Buffer
		if err := history.Encode(&file, j); err != nil {
			t.Fatal(err)
		}
		again, _, err := history.Decode(&file)
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range []*history.Journal{j, again} {
			if got := fmt.Sprintf("%q", history.States(of)); got != want {
				t.Errorf("%s: got %s, want %s", when, got, want)
			}
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	say("a")
	say("b")
	check("at first", `map[]`)
	shorten("c1", "a", map[string][]byte{"p": []byte("1\xff"), "q": []byte("Q")})
	say("c")
	shorten("c2", "b", map[string][]byte{"p": []byte("2")})
	say("d")
	shorten("c3", "c", nil)
	check("after three", `map["p":"2" "q":"Q"]`)
	must(j.Undo("c3"))
	check("a condensation without states is undone", `map["p":"2" "q":"Q"]`)
	must(j.Undo("c2"))
	check("the newest state is undone", `map["p":"1\xff" "q":"Q"]`)
	shorten("c4", "b", map[string][]byte{"p": []byte("4")})
	check("another one", `map["p":"4" "q":"Q"]`)
	must(j.Rewind("c"))
	check("back to before it", `map["p":"1\xff" "q":"Q"]`)
	_, err := j.UndoRewind()
	must(err)
	check("and forward", `map["p":"4" "q":"Q"]`)
	must(j.Undo("c1"))
	check("the first is undone", `map["p":"4"]`)
}
