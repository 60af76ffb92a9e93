//go:build unix

package pluginexamples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// eager are settings with which the examples change as much as possible.
var eager = map[string]string{
	"dedupe":   `{"min_bytes": 0}`,
	"headtail": `{"head": 1, "tail": 1, "max_bytes": 400, "recent": 0}`,
}

// each runs f for the example in every language.
func each(t *testing.T, f func(t *testing.T, l *language)) {
	t.Helper()
	for _, l := range languages {
		t.Run(l.exampleName, func(t *testing.T) {
			t.Parallel()
			f(t, l)
		})
	}
}

// TestOwnTests runs the examples' tests in their own language.
func TestOwnTests(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *language) { l.runTests(t, l.example.dir(t)) })
}

// TestEmbed runs the tests of the examples that ask for embeddings, and that keep a state.
func TestEmbed(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		if l.name == "python" {
			for _, name := range []string{"embed", "account"} {
				l.runTests(t, l.folder(name, map[string]string{".": filepath.Join(examples, name)}).dir(t))
			}
		}
	}
}

func (l *language) runTests(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), l.tests[0], l.tests[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(l.tests, " "), err, out)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *language) {
		p := open(t, l.example, eager[l.exampleName])
		coretest.Run(t, func(*testing.T) core.CondensationProvider { return p })
	})
}

// TestSessions runs the examples on recorded sessions in a chain. It does so without mutual TLS,
// which a user can turn off; the other tests use it.
func TestSessions(t *testing.T) {
	t.Parallel()
	files := testkit.Sessions(t)
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	counter := tokens.NewCounter(encoding)
	each(t, func(t *testing.T, l *language) {
		name := l.exampleName
		p := open(t, l.example, "", func(s *supervise.Spec, _ *supervise.Options) { s.Plaintext = true })
		chain, err := core.NewChain([]core.NamedProvider{
			{Name: name, Provider: p},
			{Name: "truncation", Provider: slidingwindow.New(slidingwindow.DefaultConfig())},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		shortened, changed := 0, 0
		for _, file := range files {
			messages := session(t, file)
			core.Measure(counter, messages)
			req := coretest.HalfRequest(messages)
			req.Counter = counter
			res, err := chain.Run(t.Context(), req)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			first := res.Attempts[0]
			for _, s := range first.Steps {
				changed += s.Changed
			}
			switch first.Outcome {
			case core.OutcomeApplied, core.OutcomeInsufficient:
				shortened++
			case core.OutcomeNoOp, core.OutcomeLater:
			case core.OutcomeRejected, core.OutcomeFailed, core.OutcomeSkipped:
				t.Errorf("%s: %s was %s: %v", file, name, first.Outcome, first.Err)
			}
			if res.TokensAfter > req.Budget.Limit {
				t.Errorf("%s: %d tokens remain; the limit is %d", file, res.TokensAfter, req.Budget.Limit)
			}
			t.Logf("%s: %d tokens, %s makes them %d (%s)", filepath.Base(file), first.TokensBefore, name, first.TokensAfter, first.Outcome)
		}
		if shortened == 0 {
			t.Error("it found nothing to do in any session")
		}
		if changed == 0 {
			t.Error("its steps are not in the report")
		}
	})
}

func session(t *testing.T, file string) []core.Message {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	d, err := transcript.Read(f, &transcript.ReadOptions{Name: file})
	if err != nil {
		t.Fatal(err)
	}
	return d.Journal.View()
}
