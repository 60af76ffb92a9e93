package smart_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/transcript"
)

// sessions reads recorded sessions: those of the repository, or of the directory that
// CONDENSE_TRACES_DIR names.
func sessions(t *testing.T) map[string][]core.Message {
	t.Helper()
	recorded.Lock()
	defer recorded.Unlock()
	if recorded.messages == nil {
		recorded.messages = readSessions(t)
	}
	out := map[string][]core.Message{}
	for name, messages := range recorded.messages {
		out[name] = slices.Clone(messages) // tests measure them
	}
	return out
}

// recorded are the sessions, which several tests need and which take seconds to read.
var recorded struct {
	sync.Mutex

	messages map[string][]core.Message
}

func readSessions(t *testing.T) map[string][]core.Message {
	t.Helper()
	out := map[string][]core.Message{}
	for _, file := range testkit.Sessions(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := transcript.Read(bytes.NewReader(data), &transcript.ReadOptions{Name: file})
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json.gz")] = d.Journal.View()
	}
	return out
}

// shortForm is the stub that the pass value leaves.
var shortForm = regexp.MustCompile(`\[… (?:\d+ lines? )?h:([0-9a-f]{10})\]`)

// reference matches a stub that says where the content that it replaces is.
var reference = regexp.MustCompile(`\[… [^\]\n]* left out: (?:same text in|see the|patch the) [^\]\n]*\]`)

// TestRecordedSessions condenses recorded sessions by every preset to half and to a tenth:
// the results are valid, presets that go on until the target is met meet it, every handle
// leads to something that was there, nothing refers to what was shortened, and a second run
// changes nothing.
func TestRecordedSessions(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	c := counter(t)
	for name, messages := range sessions(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request(messages, c, 1)
			handles := map[string]bool{}
			for _, m := range messages {
				for _, p := range m.Parts {
					handles[core.Handle(p)] = true
				}
			}
			for i, f := range forms() {
				preset, p := f.name, open(t, f.settings)
				shares := [][]int{{2}, {10}}[i%2]
				if preset == "balanced" || os.Getenv("CONDENSE_TRACES_DIR") != "" {
					shares = []int{2, 10}
				}
				for _, share := range shares {
					r := *req
					r.Budget.Target = total(messages) / share
					for _, i := range req.Unanswered() { // the newest request stays whole, and a host sets its target above it
						r.Budget.Target += total(messages[i : i+1])
					}
					res := condense(t, p, &r)
					after := total(again(&r, res).Messages)
					if preset == "balanced" && after > r.Budget.Target {
						t.Errorf("%s: got %d tokens, want at most %d", preset, after, r.Budget.Target)
					}
					was := textOf(messages...)
					for _, m := range res.Messages {
						for _, found := range stubForm.FindAllStringSubmatch(textOf(m), -1) {
							if !handles[found[2]] && !strings.Contains(was, found[0]) {
								t.Errorf("%s: nothing has the handle of %s", preset, found[0])
							}
						}
					}
					for _, found := range shortForm.FindAllStringSubmatch(textOf(res.Messages...), -1) {
						if !handles[found[1]] && !strings.Contains(was, found[0]) {
							t.Errorf("%s: nothing has the handle of %s", preset, found[0])
						}
					}
					if i := slices.IndexFunc(res.Steps, func(s core.Step) bool { return s.Name == "value" }); i >= 0 && res.Steps[i].Changed > 0 {
						for _, found := range reference.FindAllString(textOf(res.Messages...), -1) {
							if !strings.Contains(was, found) {
								t.Errorf("%s to 1/%d: %s refers to what need not be whole", preset, share, found)
							}
						}
					}
					next := again(&r, res)
					if at := differs(next.Messages, condense(t, p, next).Messages); at != "" {
						t.Errorf("%s to 1/%d: a second run changed %.500s", preset, share, at)
					}
				}
			}
		})
	}
}

// TestGentle condenses by a little: the result has the size that was asked for, except where layout alone saves more.
func TestGentle(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	c := counter(t)
	p := open(t, `{"preset": "gentle"}`)
	for name, messages := range sessions(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := request(messages, c, 1).Tokens()
			percents := []int{80, 90, 95}
			if whole > 100_000 { // each takes seconds
				percents = percents[1:2]
			}
			for _, percent := range percents {
				req := request(messages, c, whole*percent/100)
				res := condense(t, p, req)
				size, layout := 0, 0
				for i := range res.Messages {
					size += res.Messages[i].Tokens
				}
				for _, s := range res.Steps {
					if s.Name == "layout" {
						layout = s.TokensBefore - s.TokensAfter
					}
				}
				if least := min(req.Budget.Room()*97/100, whole-layout); size < least || size > req.Budget.Room() {
					t.Errorf("%d %%: %d tokens of %d; want %d to %d", percent, size, whole, least, req.Budget.Room())
				}
			}
		})
	}
}
