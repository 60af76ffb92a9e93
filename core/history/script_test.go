package history_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

// message returns a message that says its ID and has a source and a size.
func message(id string) core.Message {
	return core.Message{
		ID: id, Role: core.RoleUser, Parts: []core.Part{core.Text(id)}, Tokens: 1,
		Source: json.RawMessage(`{ "source" : "` + id + `" }`),
	}
}

func summary(id string) core.Message {
	return core.Message{ID: id, Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(id)}, Tokens: 1}
}

// condensation parses "X hide a b; insert S after b; rewrite c". A rewritten message
// says its ID and that of the condensation.
func condensation(t *testing.T, script string) history.Condensation {
	t.Helper()
	id, rest, _ := strings.Cut(script, " ")
	c := history.Condensation{ID: id, Provider: "script"}
	for clause := range strings.SplitSeq(rest, ";") {
		words := strings.Fields(clause)
		switch {
		case len(words) == 0:
		case words[0] == "hide":
			c.Edit.Hide = append(c.Edit.Hide, words[1:]...)
		case words[0] == "rewrite":
			for _, m := range words[1:] {
				c.Edit.Rewrite = append(c.Edit.Rewrite, core.Rewrite{ID: m, Parts: []core.Part{core.Text(m + "/" + id)}})
			}
		case words[0] == "insert" && len(words) == 2:
			c.Edit.Insert = append(c.Edit.Insert, core.Insert{Message: summary(words[1])})
		case words[0] == "insert" && len(words) == 4 && words[2] == "after":
			c.Edit.Insert = append(c.Edit.Insert, core.Insert{After: words[3], Message: summary(words[1])})
		default:
			t.Fatalf("no such clause: %s", clause)
		}
	}
	return c
}

// do takes a step: "append a b", "condense X …", "undo X" or "rewind a".
func do(t *testing.T, j *history.Journal, step string) error {
	t.Helper()
	verb, rest, _ := strings.Cut(step, " ")
	switch verb {
	case "append":
		var ms []core.Message
		for id := range strings.FieldsSeq(rest) {
			ms = append(ms, message(id))
		}
		return j.Append(ms...)
	case "condense":
		return j.Condense(condensation(t, rest))
	case "undo":
		return j.Undo(rest)
	case "rewind":
		return j.Rewind(rest)
	case "protect", "unprotect":
		return j.Protect(verb == "protect", rest)
	case "undo-rewind":
		_, err := j.UndoRewind()
		return err
	}
	t.Fatalf("no such step: %s", step)
	return nil
}

func run(t *testing.T, j *history.Journal, steps ...string) {
	t.Helper()
	for _, step := range steps {
		if err := do(t, j, step); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
}

func replay(t *testing.T, steps ...string) *history.Journal {
	t.Helper()
	j := history.New()
	run(t, j, steps...)
	return j
}

// exact compares everything that is in messages; [core.Message.Equal] does not.
func exact(a, b core.Message) bool {
	return a.Equal(b) && a.Time.Equal(b.Time) && a.Protected == b.Protected && a.Tokens == b.Tokens && bytes.Equal(a.Source, b.Source)
}

var exactly = cmp.Comparer(exact)

// says returns what messages say, in order.
func says(ms []core.Message) string {
	var words []string
	for i := range ms {
		for _, p := range ms[i].Parts {
			words = append(words, fmt.Sprint(p))
		}
	}
	return strings.Join(words, " ")
}
