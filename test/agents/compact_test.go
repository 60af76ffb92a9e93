package agents_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// TestCodexCompacts has Codex ask its vendor to compact, which the vendor does not know or takes no notice of. Alone, Codex dies of
// that. Through condense it
// gets a sealed compaction and goes on with it. The vendor sees the condensed history, and no item of ours.
func TestCodexCompacts(t *testing.T) {
	t.Parallel()
	codex := all[1]
	limit := "model_auto_compact_token_limit = 25000\n"
	codex.content, codex.base = limit+codex.content, limit+codex.base
	with := func(unable string) upstream.Options {
		o := scenario()
		needles := map[int]string{}
		for i := 1; i <= calls; i++ {
			needles[i] = needle(i)
		}
		o.Script = upstream.Loop(calls, size, needles)
		o.Window, o.NoCompaction = 200_000, unable
		return o
	}
	for _, unable := range []string{"refuse", "ignore"} {
		t.Run("alone/"+unable, func(t *testing.T) {
			atNight(t)
			t.Parallel()
			d := newDesk(t, with(unable))
			got := d.direct(t, &codex, d.url, task)
			if d.steps() > calls || !strings.Contains(got.out, "compact") {
				t.Errorf("Codex got to the end: exit code %d, step %d\n%s", got.code, d.steps(), tail(got.out))
			}
		})
		t.Run("condense/"+unable, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, with(unable))
			g := d.serve(t, "127.0.0.1:0")
			got := d.direct(t, &codex, g.url, task)
			d.accept(t, "compaction")
			if d.steps() <= calls || got.code != 0 {
				t.Errorf("stopped at step %d with exit code %d\n%s\n%s", d.steps(), got.code, tail(got.out), d.list())
			}
			compactions, _ := g.status(t)["compactions"].(float64)
			asked, kept, of := 0, 0, 0
			for _, r := range d.vendor.Records() {
				if bytes.Contains(r.Body, []byte(`"condense-`)) {
					t.Errorf("request %d holds a sealed item", r.N)
				}
				if bytes.Contains(r.Body, []byte(`"compaction_trigger"`)) {
					asked++
				} else if r.Step > 0 && asked == 1 && of == 0 { // the first turn on the condensed history
					of = r.Step - 1
					for i := range of {
						if bytes.Contains(r.Body, []byte(needle(i+1))) {
							kept++
						}
					}
					if !bytes.Contains(r.Body, []byte(task)) {
						t.Error("the task is lost")
					}
				}
			}
			if of == 0 || kept < of {
				t.Errorf("%d of %d first lines of results arrive", kept, of)
			}
			if n := len(d.vendor.Breaks()); n > asked+g.epochs(t) {
				t.Errorf("%d compactions, %d epochs, and the prefix broke %d times", asked, g.epochs(t), n)
			}
			if compactions == 0 || int(compactions) != asked {
				t.Errorf("%v compactions, %d requests for one\n%s", compactions, asked, d.list())
			}
			t.Logf("%v compactions, the first kept %d of %d first lines, %s", compactions, kept, of, d.bill())
		})
	}
}

func needle(step int) string { return fmt.Sprintf("checklist item %03d is green", step) }
