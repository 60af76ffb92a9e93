package smart_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit"
)

// TestHostileTexts gives all passes but value, which reads for itself, texts that are made to
// take long: of 256 kB each, in which something begins again and again and never ends.
func TestHostileTexts(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const size = 1 << 18
	for name, unit := range map[string]string{
		"files":         "<file><path>a</path>",
		"files, no end": "<file>\n",
		"blocks":        "<environment_details>\n",
		"headers":       "[read_file for 'a'] Result:",
		"header lines":  "[read_file for 'a'] Result:\n",
		"calls":         "<read_file>\n",
		"open calls":    "<read_file>\n<path>a</path>\n",
		"brackets":      "[",
		"commas":        ",\n",
		"quotes":        `"`,
		"escapes":       "\x1b]",
		"returns":       "a\r",
		"stubs":         "[… 3 lines left out]\n",
		"hunks":         "@@ -1 +1 @@\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.Linear(t, size, func(size int) func() {
				hostile := strings.Repeat(unit, size/len(unit))
				messages := coretest.Conversation(
					coretest.User(core.Text("Go. "+hostile)),
					coretest.Assistant(core.Text(hostile), core.ToolCall{ID: "1", Name: "read_file", Args: `{"path":"a.go"}`}),
					coretest.User(coretest.Result("1", hostile)),
					coretest.Assistant(core.ToolCall{ID: "2", Name: "read_file", Args: `{"path":"a.go"}`}),
					coretest.User(coretest.Result("2", "x"+hostile+"\n</file>\n</environment_details>")),
					coretest.User(core.Text("[read_file for 'a'] Result:\n"+hostile+"\n</file>\n</environment_details>\nend")),
					coretest.Assistant(core.Text("Done.")), coretest.User(core.Text("And?")),
				)
				req := coretest.HalfRequest(messages)
				return func() {
					condense(t, open(t, `{"passes": ["layout", {"pass": "environment", "sections": true}, {"pass": "superseded", "runs": true},
				"near_duplicates", "duplicates", "reasoning", "digest", {"pass": "mask", "keep": 1, "inputs": true}, {"pass": "cut", "keep": 0},
				"headtail", "score"]}`), req)
				}
			})
		})
	}
}
