package condense_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/apilint"
)

// TestRealSessions holds the promises for every recorded session and windows of 8k, 32k
// and 128k, at 32k in every mode of truncation: the result is below the limit, the wire formats
// have no fault that was not there before, and undoing gives the file back byte for byte.
func TestRealSessions(t *testing.T) {
	t.Parallel()
	linters := map[string]func([]byte) []apilint.Fault{"anthropic": apilint.Anthropic, "openai": apilint.OpenAI}
	for _, window := range []int{8192, 32768, 131072} {
		modes := []string{"budget"}
		if window == 32768 {
			modes = append(modes, "half", "recent", "middle_out")
		}
		for _, mode := range modes {
			h := open(t, config.Values{}, func(r *config.Resolved) {
				r.Window = window
				r.Chain = []config.Provider{{Name: "first", Strategy: "slidingwindow", Settings: fmt.Appendf(nil, `{"mode":%q}`, mode)}}
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
