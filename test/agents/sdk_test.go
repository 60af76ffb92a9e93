package agents_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// loops are small agents on the vendors' SDKs that know nothing of condense.
var loops = []struct{ name, file, key string }{
	{"anthropic", "loop-anthropic.mjs", "ANTHROPIC_API_KEY=dummy"},
	{"openai", "loop-openai.mjs", "OPENAI_API_KEY=dummy"},
}

// place puts a loop into the folder of the task, next to the SDKs.
func (d *desk) place(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(d.dir, file), string(text))
	if err := os.Symlink(d.modules, filepath.Join(d.dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
}

// TestLoopsWithout shows that a loop on an SDK ends where the window does.
func TestLoopsWithout(t *testing.T) {
	atNight(t)
	t.Parallel()
	for _, l := range loops {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, scenario())
			d.place(t, l.file)
			got := d.run(t, []string{l.key, "ANTHROPIC_BASE_URL=" + d.url, "OPENAI_BASE_URL=" + d.url + "/v1"}, "node", l.file, task)
			d.accept(t)
			if got.code == 0 || len(d.over()) == 0 || d.steps() > calls {
				t.Errorf("exit code %d after %d steps\n%s", got.code, d.steps(), tail(got.out))
			}
			if !strings.Contains(got.out, "too long") && !strings.Contains(got.out, "maximum context length") {
				t.Errorf("another error: %s", tail(got.out))
			}
		})
	}
}

// TestLoops runs the same loops with condense wrap.
func TestLoops(t *testing.T) {
	t.Parallel()
	for _, l := range loops {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, scenario())
			d.place(t, l.file)
			got := d.wrap(t, []string{l.key}, "--", "node", l.file, task)
			d.condensed(t, got, got.epochs(t))
		})
	}
}

var counted = regexp.MustCompile(`(?m)^counted (\d+) used (\d+)$`)

// TestCount counts tokens through the gateway: what is counted is what would be sent. Counting makes no epoch, so that a request that
// makes one is counted as it would be without.
func TestCount(t *testing.T) {
	t.Parallel()
	d := newDesk(t, scenario())
	d.place(t, "count.mjs")
	g := d.serve(t, "127.0.0.1:0")
	got := d.run(t, []string{"ANTHROPIC_API_KEY=dummy", "ANTHROPIC_BASE_URL=" + g.url}, "node", "count.mjs", task)
	d.condensed(t, got, g.epochs(t))
	all := counted.FindAllStringSubmatch(got.out, -1)
	if len(all) != calls+1 {
		t.Errorf("%d requests were counted\n%s", len(all), tail(got.out))
	}
	var more []string
	for _, m := range all {
		counted, err := strconv.Atoi(m[1])
		used, err2 := strconv.Atoi(m[2])
		if err != nil || err2 != nil || counted < used {
			t.Errorf("%s: fewer tokens were counted than used", m[0])
		}
		if counted > used {
			more = append(more, m[0])
		}
	}
	if len(more) > g.epochs(t) {
		t.Errorf("%d requests were counted wrong, with %d epochs: %q", len(more), g.epochs(t), more)
	}
}
