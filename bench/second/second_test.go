// Package second_test runs second.py, an implementation of the main measures from the documents alone.
package second_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/testkit/peers"
	"github.com/condensehq/condense/internal/toolcall"
	"github.com/condensehq/condense/providers/slidingwindow"
)

// second.py has a list of its own, because it is independent; what it lists are the same facts.
func TestSecondKnowsTheSameParameters(t *testing.T) {
	text, err := os.ReadFile("second.py")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\nOLD = (")
	list, _, _ = strings.Cut(list, ")")
	var got []string
	for name := range strings.SplitSeq(list, ", ") {
		got = append(got, strings.Trim(name, `"`))
	}
	slices.Sort(got)
	want := toolcall.Names(toolcall.Old)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("OLD in second.py is %q, and toolcall has %q", got, want)
	}
}

func TestSecondAgrees(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		peers.Missing(t, "the second measurement is not tried", "there is no python3 in PATH")
	}
	items, err := lab.Find("demo:")
	if err != nil {
		t.Fatal(err)
	}
	items = slices.DeleteFunc(items, func(it lab.Item) bool {
		return !strings.Contains(it.Name, "tau-airline") && !strings.Contains(it.Name, "swe-agent")
	})
	dir := t.TempDir()
	outputs, err := os.Create(filepath.Join(dir, "outputs.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	strategies := []lab.Strategy{{Name: "window", Provider: slidingwindow.New(slidingwindow.DefaultConfig())}}
	r, err := lab.Run(t.Context(), items, strategies, &lab.Options{Outputs: outputs})
	if err != nil {
		t.Fatal(err)
	}
	if err := outputs.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := os.Create(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJSON(report); err != nil {
		t.Fatal(err)
	}
	if err := report.Close(); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), python, "second.py", report.Name(), outputs.Name()).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var got struct {
		Verdicts, Agreed int
		Examples         [][]any `json:"examples_of_disagreement"`
	}
	if err := json.Unmarshal(said, &got); err != nil {
		t.Fatal(err)
	}
	if got.Verdicts < 40 || float64(got.Agreed) < 0.95*float64(got.Verdicts) {
		t.Errorf("the second measurement agrees on %d of %d verdicts; it does not on %v", got.Agreed, got.Verdicts, got.Examples)
	}
}
