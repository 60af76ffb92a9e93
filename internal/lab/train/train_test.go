package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/value"
)

// lessons are small sessions in which the agent changes what it has just read.
func lessons() []Lesson {
	var out []Lesson
	for i := range 12 {
		read := coretest.Conversation(
			coretest.User(core.Text(fmt.Sprintf("Mend parseHeader%d in src/header%d.go, please.", i, i))),
			coretest.Assistant(core.ToolCall{ID: "a", Name: "read_file", Args: fmt.Sprintf(`{"path":"src/header%d.go"}`, i)}),
			coretest.User(coretest.Result("a", fmt.Sprintf("func parseHeader%d(input []byte) error {\n\treturn nil\n}\nfunc unrelated%d() {}", i, i))),
		)
		after := []core.Message{coretest.Assistant(core.Text(fmt.Sprintf("I change parseHeader%d(input []byte) error so that it keeps the last line.", i)))}
		out = append(out, Lesson{value.Sequel{Before: read, After: after}, fmt.Sprint("project", i%3)})
	}
	return out
}

func common(lessons []Lesson) string {
	projects := map[string][][]core.Message{}
	for _, l := range lessons {
		projects[l.Project] = append(projects[l.Project], l.Before)
	}
	return Common(projects)
}

// TestTrainReproduces trains twice: the files must be the same, and say what they hold.
func TestTrainReproduces(t *testing.T) {
	l := lessons()
	words := common(l)
	if !strings.Contains(words, "3: ") || !strings.Contains(words, "please") {
		t.Errorf("words that three projects have are missing in %q", words)
	}
	var files [2]string
	for i := range files {
		m, err := Train(l, words, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = string(m.Weights("test"))
		if _, err := value.ParseModel([]byte(files[i]), words); err != nil {
			t.Errorf("its own file cannot be read: %v", err)
		}
	}
	if files[0] != files[1] {
		t.Error("the same lessons gave different weights")
	}
}

// TestTrainLearns checks that the loss on lessons is less than that of the model that
// comes with the package with its weights at zero.
func TestTrainLearns(t *testing.T) {
	l := lessons()
	words := common(l)
	m, err := Train(l, words, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := m.Loss(l)
	if err != nil {
		t.Fatal(err)
	}
	before, _, err := NewModel(words).Loss(l)
	if err != nil {
		t.Fatal(err)
	}
	if after >= before {
		t.Errorf("loss is %v, without training %v", after, before)
	}
}

func TestParseFold(t *testing.T) {
	has, err := parseFold("1/3")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false, false, true} {
		if has(i) != want {
			t.Errorf("session %d is in fold 1/3: %v, want %v", i, has(i), want)
		}
	}
	if has, err := parseFold(""); err != nil || has(0) {
		t.Errorf("no fold: has session 0 or fails with %v", err)
	}
	for _, s := range []string{"1", "3/3", "-1/3", "0/1", "a/b", "1/3/5", "1/"} {
		if _, err := parseFold(s); err == nil {
			t.Errorf("fold %q is accepted", s)
		}
	}
}

func TestWrongUse(t *testing.T) {
	t.Setenv("CONDENSE_TRACES_DIR", "")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "no sessions"},
		{[]string{"-traces", t.TempDir(), "-out", t.TempDir()}, "no transcript in it"},
		{[]string{"-fold", "x"}, "want K/N"},
	} {
		if err := run(c.args, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want an error with %q", c.args, err, c.want)
		}
	}
}
