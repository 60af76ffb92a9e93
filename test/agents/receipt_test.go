package agents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/peers"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// TestReceipt: with --status the agent shows what became of the conversation: Codex at the end of a turn, by a hook that the person has to
// allow once, OpenCode and pi in a line.
func TestReceipt(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		peers.Missing(t, "no agent is tried in a terminal", "tmux is not installed")
	}
	const asks = "Trust all and continue"
	receipt := regexp.MustCompile(`condense \d+k/60k \d+% · condenses at 4\dk, in ~\d+`)
	for _, a := range some("codex") {
		if a.name == "claude" {
			continue // its status line is its own
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			s := &terminal{agent: &a}
			s.desk = newDesk(t, upstream.Options{Window: window, ByCredential: true, Script: upstream.Loop(turn-1, printed, nil)})
			dir, err := os.MkdirTemp("", "tmux-*") //nolint:usetesting // the path of a socket must be short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			s.socket = filepath.Join(dir, "s")
			s.wrapped = []string{s.condense(t), "wrap", "--status", "--store", filepath.Join(s.home, "serve.db")}
			s.wrapped = append(append(s.wrapped, s.upstreams()...), "--")
			s.open(t, "")
			if a.name == "codex" {
				testkit.Eventually(t, "Codex asks about the hook", func() bool { return strings.Contains(s.screen(t), asks) })
				s.tmux(t, "send-keys", "-t", "test", "2", "Enter")
				testkit.Eventually(t, "it takes input", func() bool { return strings.Contains(s.screen(t), "gpt-5.1") })
			}
			s.say(t, task, 1)
			testkit.Eventually(t, "the receipt", func() bool { return s.steps() >= turn && receipt.MatchString(s.screen(t)) })
			s.accept(t)
			if a.name != "codex" {
				return
			}
			next := &terminal{desk: s.desk, agent: s.agent, socket: filepath.Join(dir, "t"), wrapped: s.wrapped}
			next.open(t, "") // it does not ask again
			testkit.Eventually(t, "it takes input at once", func() bool { return strings.Contains(next.screen(t), "Ask Codex to do anything") })
		})
	}
}
