package runtime_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/apilint"
	"github.com/condensehq/condense/transcript"
)

// TestRealSessions condenses every recorded session to windows of 8k, 32k
// and 128k, at 32k in every mode of truncation: the result is below the limit, the wire formats
// have no new fault, and undo restores the file byte for byte.
func TestRealSessions(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	linters := map[string]func([]byte) []apilint.Fault{"anthropic": apilint.Anthropic, "openai": apilint.OpenAI}
	for _, window := range []int{8192, 32768, 131072} {
		modes := []string{"budget"}
		if window == 32768 {
			modes = append(modes, "half", "recent", "middle_out")
		}
		for _, mode := range modes {
			h := open(t, config.Values{}, config.Override{
				Window: window,
				Chain:  []config.Provider{{Name: "first", Strategy: "slidingwindow", Settings: fmt.Appendf(nil, `{"mode":%q}`, mode)}},
			})
			for _, path := range testkit.Sessions(t) {
				t.Run(fmt.Sprintf("%d/%s/%.24s", window, mode, filepath.Base(path)), func(t *testing.T) {
					t.Parallel()
					data := plain(t, path)
					d := read(t, data)
					before := map[string][]apilint.Fault{}
					for format, lint := range linters {
						before[format] = lint(write(t, read(t, data), format))
					}
					turn := condense.Turn{System: d.System, Tools: d.Tools, Trigger: core.TriggerManual}
					c := condense.ResumeConversation(d.Journal)
					r, err := h.Manage(t.Context(), c, turn)
					if errors.Is(err, policy.ErrFloorExceedsWindow) {
						t.Skipf("what cannot be removed is larger than the window: %v", err)
					}
					if err != nil {
						t.Fatal(err)
					}
					if r.Tokens.After > r.Budget.Limit {
						t.Errorf("%d tokens are left, the limit is %d", r.Tokens.After, r.Budget.Limit)
					}
					for format, lint := range linters {
						for _, fault := range apilint.Added(before[format], lint(write(t, d, format))) {
							t.Errorf("%s: %v", format, fault)
						}
					}
					if !r.Acted {
						return
					}
					// Through the journal's file, as a command would.
					again := read(t, write(t, d, "condense"))
					if got := len(again.Journal.View()); got != r.Messages.After {
						t.Errorf("the journal reads back with %d messages in view, want %d", got, r.Messages.After)
					}
					if err := again.Journal.Undo(r.CondensationID); err != nil {
						t.Fatal(err)
					}
					if got := write(t, again, d.Format); !bytes.Equal(got, data) {
						t.Errorf("undo did not give the file back: %d bytes, want %d", len(got), len(data))
					}
				})
			}
		}
	}
}

// TestDefaultChain: without any configuration, recorded sessions in every format are condensed
// below the limit, stay valid for the models' APIs as written to a file, and have the content
// of every handle. Undo restores the file byte for byte. With CONDENSE_TRACES_DIR each session
// is tested in every format, and in a
// smaller window, too.
func TestDefaultChain(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	windows, all := []int{32768}, os.Getenv("CONDENSE_TRACES_DIR") != ""
	if all {
		windows = append(windows, 8192)
	}
	for _, window := range windows {
		c, err := condense.Load(nil)
		if err != nil {
			t.Fatal(err)
		}
		h := start(t, &condense.Options{Config: c.Override(config.Override{Window: window})})
		formats := slices.DeleteFunc(transcript.Formats(), func(f transcript.Format) bool { return f.ReadOnly })
		for i, path := range testkit.Sessions(t) {
			some := formats[i%len(formats):][:1]
			if all {
				some = formats
			}
			for _, f := range some {
				t.Run(fmt.Sprintf("%d/%s/%.24s", window, f.Name, filepath.Base(path)), func(t *testing.T) {
					t.Parallel()
					checkDefault(t, h, write(t, read(t, plain(t, path)), f.Name))
				})
			}
		}
	}
}

var handle = regexp.MustCompile(`\bh:([0-9a-f]{10})\b`)

// checkDefault condenses a file and checks the result.
func checkDefault(t *testing.T, h *condense.Host, file []byte) {
	t.Helper()
	d := read(t, file)
	lint := map[string]func([]byte) []apilint.Fault{"anthropic": apilint.Anthropic, "openai": apilint.OpenAI}
	before := map[string][]apilint.Fault{}
	for format, check := range lint {
		before[format] = check(write(t, d, format))
	}
	c := condense.ResumeConversation(d.Journal)
	r, err := h.Manage(t.Context(), c, condense.Turn{System: d.System, Tools: d.Tools, Trigger: core.TriggerManual})
	if errors.Is(err, policy.ErrFloorExceedsWindow) {
		t.Skipf("what cannot be removed is larger than the window: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Tokens.After > r.Budget.Limit {
		t.Errorf("%d tokens are left, the limit is %d", r.Tokens.After, r.Budget.Limit)
	}
	if !r.Acted {
		return
	}
	if a := r.Attempts[0]; a.Outcome != core.OutcomeApplied && a.Outcome != core.OutcomeInsufficient {
		t.Errorf("%s: %s, %s", a.Provider, a.Outcome, a.Reason)
	}
	sent := write(t, d, d.Format)
	again := read(t, sent)
	for format, check := range lint {
		for _, fault := range apilint.Added(before[format], check(write(t, again, format))) {
			// A file in the API's own format keeps its messages unchanged, also after an
			// extract of the same role; the API merges the two.
			if fault.Rule != "alternation" {
				t.Errorf("%s: %v", format, fault)
			}
		}
	}
	for _, m := range handle.FindAllSubmatch(sent, -1) {
		if string(m[0]) == "h:0123456789" {
			continue // the example in an extract's explanation of handles
		}
		if name := string(m[1]); !bytes.Contains(file, m[0]) && len(c.Recall(name)) == 0 {
			t.Errorf("nothing has the handle %s", name)
		}
	}
	journal := read(t, write(t, d, "condense"))
	if err := journal.Journal.Undo(r.CondensationID); err != nil {
		t.Fatal(err)
	}
	format, want := d.Format, file
	if format == "condense" { // which records the undo
		format, want = "anthropic", write(t, read(t, file), "anthropic")
	}
	if got := write(t, journal, format); !bytes.Equal(got, want) {
		t.Errorf("undo did not give the file back: %d bytes, want %d", len(got), len(want))
	}
}
