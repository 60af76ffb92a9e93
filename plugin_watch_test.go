package condense_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/trust"
)

// pids returns the processes of the plugin; none where there is no /proc.
func (p *plugged) pids() []string {
	var found []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, l := range lines {
		if text, _ := os.ReadFile(l); strings.Contains(string(text), p.program) {
			found = append(found, l)
		}
	}
	return found
}

// TestWatchPins: a plugin that is pinned while its host runs is started, and one that runs
// goes on running when the configuration changes in something that does not concern it.
func TestWatchPins(t *testing.T) {
	p := plug(t)
	p.configure(t, "{}")
	if err := trust.Open(p.store).SetPin(p.program, false, strings.Repeat("0", 64)); err != nil {
		t.Fatal(err)
	}
	h, reloaded := follow(t, p.options())
	if got := attempts(t, h); !strings.Contains(got, "is not the plugin that was pinned") {
		t.Errorf("before: %s", got)
	}
	p.pin(t)
	reloaded()
	if got := attempts(t, h); !strings.HasPrefix(got, "ours applied ") {
		t.Errorf("pinned: %s", got)
	}
	before := p.pids()
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "threshold: 70\n"+string(text))
	reloaded()
	if got := attempts(t, h); !strings.HasPrefix(got, "ours applied ") || !slices.Equal(p.pids(), before) {
		t.Errorf("another threshold: %s, processes %q, before %q", got, p.pids(), before)
	}
}
