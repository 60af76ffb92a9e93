package peers_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/peers"
)

// A fixture is an answer of aimock; see its documentation. The model that it answers for
// is filled in.
type fixture map[string]any

// says answers with text.
func says(text string) fixture { return fixture{"response": map[string]any{"content": text}} }

// refuses answers with an error.
func refuses(status int, kind, code, message string, more ...any) fixture {
	r := map[string]any{"status": status, "error": map[string]any{"type": kind, "code": code, "message": message}}
	for i := 0; i+1 < len(more); i += 2 {
		r[more[i].(string)] = more[i+1]
	}
	return fixture{"response": r}
}

// with adds an option to a fixture.
func (f fixture) with(name string, value any) fixture {
	g := fixture{name: value}
	for k, v := range f {
		if k != name {
			g[k] = v
		}
	}
	return g
}

// aimock is the server with a listener in front of it that records requests.
type aimock struct {
	url string // of the server itself
	tap *tap
}

// start starts aimock with an answer for every model of fixtures, in order if there are
// several, the last one repeatedly.
func start(t *testing.T, fixtures map[string][]fixture) *aimock {
	t.Helper()
	testkit.Process(t)
	node, dir := peers.Node(t, "peers-test", "the clients of models are not tried against a server of others")
	var all []fixture
	for model, answers := range fixtures {
		for i, f := range answers {
			match := map[string]any{"model": model}
			if i < len(answers)-1 {
				match["sequenceIndex"] = i
			}
			all = append(all, f.with("match", match))
		}
	}
	text, err := json.Marshal(map[string]any{"fixtures": all})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fixtures.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(dir, "node_modules", "@copilotkit", "aimock", "dist", "cli.js"),
		"-p", "0", "-f", file, "--strict", "--journal-max", "0")
	cmd.Stderr = os.Stderr
	out := testkit.Start(t, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if _, at, ok := strings.Cut(lines.Text(), "listening on "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }() // until it exits
			a := &aimock{url: at}
			a.tap = listen(t, strings.TrimPrefix(at, "http://"))
			return a
		}
	}
	t.Fatalf("aimock did not start:\n%s", said.String())
	return nil
}

// journal returns the number of recorded requests for each model.
func (a *aimock) journal(t *testing.T) map[string]int {
	t.Helper()
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	resp, err := client.Get(a.url + "/__aimock/journal")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var entries []struct {
		Body struct {
			Model string `json:"model"`
		} `json:"body"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&entries); err != nil {
		t.Fatal(fmt.Errorf("aimock's journal: %w", err))
	}
	n := map[string]int{}
	for _, e := range entries {
		n[e.Body.Model]++
	}
	return n
}
