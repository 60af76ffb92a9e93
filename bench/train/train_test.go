package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/value"
)

// lessons are small sessions in which the agent changes what it has just read.
func lessons() []lesson {
	var out []lesson
	for i := range 12 {
		read := coretest.Conversation(
			coretest.User(core.Text(fmt.Sprintf("Mend parseHeader%d in src/header%d.go, please.", i, i))),
			coretest.Assistant(core.ToolCall{ID: "a", Name: "read_file", Args: fmt.Sprintf(`{"path":"src/header%d.go"}`, i)}),
			coretest.User(coretest.Result("a", fmt.Sprintf("func parseHeader%d(input []byte) error {\n\treturn nil\n}\nfunc unrelated%d() {}", i, i))),
		)
		after := []core.Message{coretest.Assistant(core.Text(fmt.Sprintf("I change parseHeader%d(input []byte) error so that it keeps the last line.", i)))}
		out = append(out, lesson{value.Sequel{Before: read, After: after}, fmt.Sprint("project", i%3)})
	}
	return out
}

func words(lessons []lesson) *vocabulary {
	projects := map[string][][]core.Message{}
	for _, l := range lessons {
		projects[l.Project] = append(projects[l.Project], l.Before)
	}
	return newVocabulary(projects)
}

// TestTrainReproduces trains twice: the files must be the same, and say what they hold.
func TestTrainReproduces(t *testing.T) {
	l := lessons()
	words := words(l)
	common := words.common("")
	if !strings.Contains(common, "3/3: ") || !strings.Contains(common, "please") {
		t.Errorf("words that three projects have are missing in %q", common)
	}
	if without := words.common("project1"); !strings.Contains(without, "2/2: ") || strings.Contains(without, "3/") {
		t.Errorf("a project that is left out counts in %q", without)
	}
	var files [2]string
	for i := range files {
		m, err := train(l, words, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = string(m.weights("test"))
		if _, err := value.ParseModel([]byte(files[i]), common); err != nil {
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
	words := words(l)
	m, err := train(l, words, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := m.loss(l)
	if err != nil {
		t.Fatal(err)
	}
	before, _, err := newModel(words).loss(l)
	if err != nil {
		t.Fatal(err)
	}
	if after >= before {
		t.Errorf("loss is %v, without training %v", after, before)
	}
}

func TestFolds(t *testing.T) {
	var sessions []recorded
	for _, p := range []string{"b", "a", "a", "a", "c", "c", "d"} {
		sessions = append(sessions, recorded{project: p})
	}
	folds := foldsOf(sessions, 2)
	if got := fmt.Sprint(folds); got != "[[a d] [c b]]" {
		t.Errorf("projects of the folds are %s", got)
	}
}

// TestOutcome: the means are over sessions and over projects, and differences are paired.
func TestOutcome(t *testing.T) {
	report := func(values ...float64) *lab.Report {
		r := &lab.Report{}
		for i, v := range values {
			r.Rows = append(r.Rows, lab.Row{Strategy: strategy, Budget: "10%", Session: strconv.Itoa(i / 2), Values: map[string]float64{lab.MeasurePanel: v}})
		}
		r.Rows = append(r.Rows, lab.Row{Strategy: lab.KeepLast, Budget: "10%", Session: "0", Values: map[string]float64{lab.MeasurePanel: 1}})
		return r
	}
	before, now := outcome{}, outcome{}
	before.add(report(0.1, 0.3, 0.4, 0.4, 0.6, 0.6))
	now.add(report(0.2, 0.4, 0.5, 0.5, 0.7, 0.9))
	file := filepath.Join(t.TempDir(), "before.json")
	if err := before.write(file); err != nil {
		t.Fatal(err)
	}
	before, err := readOutcome(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	now.print(&out, before, map[string]string{"0": "a", "1": "a", "2": "b"})
	for _, want := range []string{"10% panel: 0.5333 of 3, +0.1333 ± 0.0653", "10% panel, by project: 0.6000 of 2, +0.1500 ± 0.0980"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s, want %q in it", out.String(), want)
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
		{[]string{"-traces", t.TempDir(), "-folds", "1"}, "want 2 at least"},
	} {
		if err := run(c.args, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want an error with %q", c.args, err, c.want)
		}
	}
}
