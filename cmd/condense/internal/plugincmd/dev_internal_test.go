package plugincmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/lab/judge"
	"github.com/condensehq/condense/internal/testkit/misbehaving"
)

// For every broken rule the author learns which, where and what to do.
func TestFaultsNameTheRepair(t *testing.T) {
	release := make(chan struct{})
	close(release)
	for _, m := range misbehaving.All(release) {
		if m.Outcome != core.OutcomeRejected {
			continue
		}
		req := coretest.HalfRequest(m.Session())
		req.Abilities = core.AbilitiesOf(m.Provider)
		res, err := m.Provider.Condense(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		var b bytes.Buffer
		printFaults(&b, fmt.Errorf("plugin x: %w", core.Verify(req, res)))
		if !strings.Contains(b.String(), "    "+m.Rule+": ") || !strings.Contains(b.String(), judge.NewFinding(m.Rule, "", "", "").Repair) {
			t.Errorf("%s breaks %s; printed:\n%s", m.Name, m.Rule, b.String())
		}
	}
}

// With --ingest every round of results is asked about by itself, as new ones, and the edits of all are shown.
func TestDevAsksForNewResults(t *testing.T) {
	req := coretest.HalfRequest(coretest.Session())
	h := &heardPlugin{ingest: true, Plugin: cutsNew{}}
	if _, err := h.Condense(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	printEdits(&b, req, h.answer)
	if n := strings.Count(b.String(), "rewritten"); n < 2 || strings.Contains(b.String(), "hidden") {
		t.Errorf("%d results are rewritten:\n%s", n, b.String())
	}
}

// cutsNew cuts new results, and refuses other requests.
type cutsNew struct{ judge.Plugin }

func (cutsNew) Condense(_ context.Context, req *core.Request) (*core.Result, error) {
	if req.Trigger != core.TriggerIngest {
		return nil, core.ErrUnavailable
	}
	messages := req.Clone().Messages
	for i := range messages {
		for j, p := range messages[i].Parts {
			if r, ok := p.(core.ToolResult); ok && core.ContentBytes(r.Content...) > 100 {
				r.Content = []core.Part{core.Text("[cut]")}
				messages[i].Parts[j] = r
			}
		}
	}
	return &core.Result{Messages: messages}, nil
}

func (cutsNew) Abilities() core.Abilities { return 0 }
func (cutsNew) PeakMemory() int64         { return 0 }

func TestOtherFaultsAreQuoted(t *testing.T) {
	var b bytes.Buffer
	printFaults(&b, errors.New("plugin x: no wish to work"))
	if got, want := b.String(), "    plugin x: no wish to work\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSnapshotIgnoresWhatIsNoChange(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", "one")
	write(".gitignore", "target\n*.log\n")
	write("dev.out", "")
	out, err := os.OpenFile(filepath.Join(dir, "dev.out"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func(was *os.File) {
		os.Stdout = was //nolint:reassign // see below
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	}(os.Stdout)
	os.Stdout = out //nolint:reassign // what dev prints goes into its folder
	before, err := takeSnapshot(t.Context(), dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	for _, tt := range []struct {
		what string
		do   func()
		want string
	}{
		{"nothing", func() {}, ""},
		{"the time", func() {
			if err := os.Chtimes(filepath.Join(dir, "a.go"), later, later); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"a hidden folder", func() { write(".git/index", "x") }, ""},
		{"what was installed", func() { write("node_modules/x/y.js", "x") }, ""},
		{"a folder that git ignores", func() { write("target/release/a.rs", "x") }, ""},
		{"a file that git ignores", func() { write("sub/b.log", "x") }, ""},
		{"what this program writes", func() { fmt.Println("built") }, ""},
		{"the program itself", func() { write("condense-a", strings.Repeat("x", maxSource+1)) }, ""},
		{"the content", func() { write("a.go", "two") }, "a.go"},
		{"another file", func() { write("a.go", "one"); write("sub/b.go", "") }, "b.go"},
		{"a file less", func() { _ = os.RemoveAll(filepath.Join(dir, "sub")); _ = os.Remove(filepath.Join(dir, "a.go")) }, "a.go"},
	} {
		tt.do()
		after, err := takeSnapshot(t.Context(), dir, "", before)
		if err != nil {
			t.Fatal(err)
		}
		if got := after.changed(before); got != tt.want {
			t.Errorf("%s changed: got %q, want %q", tt.what, got, tt.want)
		}
	}
}

// An author who saves a file while it is being built, at the same size and in the same moment of the file system's
// clock, sees it tried.
func TestAChangeInTheSameMomentIsNotMissed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.go")
	at := time.Now()
	save := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	save("keep(1)")
	before, err := takeSnapshot(t.Context(), dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	save("keep(2)")
	if after, err := takeSnapshot(t.Context(), dir, "", before); err != nil || !after.differs(before) {
		t.Errorf("it is missed (%v)", err)
	}
}
