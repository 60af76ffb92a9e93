package record_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/record"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A branch is what a client has, and what a gateway sends in place of the first messages.
type branch struct {
	said  []string
	block []string
	cut   int // how many of said block replaces
}

func (b *branch) clone() branch {
	return branch{slices.Clone(b.said), slices.Clone(b.block), b.cut}
}

// bodies returns the request as the client and as the gateway send it. The client's cache marker is on
// its newest message.
func (b *branch) bodies() (received, sent []byte) {
	said := slices.Clone(b.said)
	if last := &said[len(said)-1]; strings.HasSuffix(*last, `"}]}`) {
		*last = strings.TrimSuffix(*last, `}]}`) + `,"cache_control":{"type":"ephemeral"}}]}`
	}
	body := func(messages []string) []byte {
		return fmt.Appendf(nil, `{"model":"claude-opus-5-5","system":"be kind","max_tokens":9,"messages":[%s]}`, strings.Join(messages, ","))
	}
	return body(said), body(slices.Concat(b.block, said[b.cut:]))
}

func (b *branch) grow(n int) {
	id := len(b.said)
	b.said = append(b.said,
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s%d"},{"type":"tool_use","id":"t%d.%d","name":"Bash","input":{}}]}`, n, id, n),
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d.%d","content":[{"type":"text","text":%q}]}]}`, id, n, strings.Repeat(fmt.Sprintf("line %d\n", n), 200)))
	if n%3 == 0 {
		b.said = append(b.said,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"done %d"}]}`, n),
			fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"task %d"}]}`, n))
	}
}

// epoch condenses what is sent.
func (b *branch) epoch(t *rapid.T, h *condense.Host) bool {
	_, sent := b.bodies()
	d, err := transcript.Read(bytes.NewReader(sent), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := h.Manage(t.Context(), condense.ResumeConversation(d.Journal), condense.Turn{Trigger: core.TriggerManual, Window: 9_000})
	if err != nil || !r.Acted {
		return false
	}
	var out bytes.Buffer
	if _, err := d.WriteWith(&out, &transcript.WriteOptions{Apart: true}); err != nil {
		t.Fatal(err)
	}
	var after []string
	for m := range rawjson.Elements(rawjson.Field(out.Bytes(), "messages")) {
		after = append(after, string(m))
	}
	same := 0
	received, _ := b.bodies()
	var mine []string
	for m := range rawjson.Elements(rawjson.Field(received, "messages")) {
		mine = append(mine, string(m))
	}
	for same < min(len(after), len(mine)) && after[len(after)-1-same] == mine[len(mine)-1-same] {
		same++
	}
	b.block, b.cut = after[:len(after)-same], len(mine)-same
	return true
}

// What is recorded is what the client said, and the view is what was sent: over epochs, messages that
// grow, rewinds, branches and restarts.
func TestPropertyRecordingsSayWhatWasSent(t *testing.T) {
	c, err := config.New(config.Values{}, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := condense.Open(t.Context(), &condense.Options{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	temp := t.TempDir
	rapid.Check(t, func(t *rapid.T) {
		dir := temp()
		branches := []branch{{said: []string{`{"role":"user","content":[{"type":"text","text":"task"}]}`}}}
		now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
		r := open(t, dir)
		sinceOpen := 0
		for n := range rapid.IntRange(1, 15).Draw(t, "requests") {
			i := rapid.IntRange(0, len(branches)-1).Draw(t, "branch")
			b := &branches[i]
			var epoch *live.Epoch
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				if b.epoch(t, h) {
					epoch = &live.Epoch{Before: 9, After: 3}
				} else {
					b.grow(n)
				}
			case 1: // the client goes back, if its gateway's epoch holds there
				if at := rapid.IntRange(1, len(b.said)).Draw(t, "to"); at > b.cut && !strings.Contains(b.said[at-1], "tool_use") {
					b.said = b.said[:at]
				}
				b.grow(1000 + n)
			case 2:
				branches = append(branches, b.clone())
				b = &branches[len(branches)-1]
				b.grow(2000 + n)
			default:
				b.grow(n)
			}
			received, sent := b.bodies()
			r.Record(t.Context(), &live.Exchange{Time: now, API: "messages", Tenant: "t", Agent: "claude", Session: "s", Lineage: "l", Received: received, Sent: sent, Epoch: epoch})
			if sinceOpen++; sinceOpen < 10 && rapid.Bool().Draw(t, "more") { // than ten may be dropped
				continue
			}
			sinceOpen = 0
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			mustHave(t, dir, received, sent)
			r = open(t, dir)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Requests that come faster than they are written, as on a busy machine: the recording ends with the newest one.
func TestRecordingEndsWithWhatWasSentLast(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	b := branch{said: []string{`{"role":"user","content":[{"type":"text","text":"task"}]}`}}
	const requests, epochs = 100, 4
	for n := range requests {
		b.grow(n)
		var epoch *live.Epoch
		if n%(requests/epochs) == requests/epochs-1 {
			b.block = []string{fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"block %d"}]}`, n)}
			b.cut, epoch = len(b.said)-2, &live.Epoch{Before: 9, After: 3}
		}
		received, sent := b.bodies()
		r.Record(t.Context(), &live.Exchange{API: "messages", Agent: "claude", Session: "s", Lineage: "l", Received: received, Sent: sent, Epoch: epoch})
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("recordings: %v, %v", paths, err)
	}
	d := readFile(t, paths[0])
	received, sent := b.bodies()
	if diff := cmp.Diff(wordsOf(t, received), words(d.Journal.Messages())); diff != "" {
		t.Errorf("what the client said (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wordsOf(t, sent), words(d.Journal.View())); diff != "" {
		t.Errorf("what was sent (-want +got):\n%s", diff)
	}
	if n := strings.Count(fmt.Sprint(words(d.Journal.View())), "block"); n != 1 {
		t.Errorf("%d blocks in the view", n)
	}
}

func open(t interface{ Fatal(...any) }, dir string) *record.Recorder {
	r, err := record.New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mustHave fails unless a file in dir has the client's messages and the view of these requests.
func mustHave(t *rapid.T, dir string, received, sent []byte) {
	want, wantView := wordsOf(t, received), wordsOf(t, sent)
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var diffs []string
	for _, path := range paths {
		d := readFile(t, path)
		if d.System != "be kind" || d.Model != "claude-opus-5-5" || d.Origin != "anthropic" {
			t.Fatalf("%s: %q of %q, written by %q", path, d.Origin, d.Model, d.System)
		}
		diff := cmp.Diff(want, words(d.Journal.Messages())) + cmp.Diff(wantView, words(d.Journal.View()))
		if diff == "" {
			for _, m := range d.Journal.Messages() {
				if m.Source == nil {
					t.Fatalf("%s: message %s has no source", path, m.ID)
				}
			}
			return
		}
		diffs = append(diffs, path+diff)
	}
	t.Fatalf("no recording says what was sent (-want +got):\n%s", strings.Join(diffs, "\n"))
}

func readFile(t interface{ Fatal(...any) }, path string) *transcript.Document {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	d, err := transcript.Read(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func wordsOf(t interface{ Fatal(...any) }, body []byte) []core.Message {
	d, err := transcript.Read(bytes.NewReader(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	return words(d.Journal.View())
}

func words(messages []core.Message) []core.Message {
	out := make([]core.Message, len(messages))
	for i, m := range messages {
		out[i] = core.Message{Role: m.Role, Parts: m.Parts}
	}
	return out
}

// A request is read as one of its own API, also where nothing in it tells: thinking is kept as thinking.
func TestThinkingIsRecordedInEachAPI(t *testing.T) {
	for api, body := range map[string]string{
		"gemini":   `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"hmm","thought":true},{"text":"ho"}]},{"role":"user","parts":[{"text":"on"}]}]}`,
		"converse": `{"messages":[{"role":"user","content":[{"text":"hi"}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hmm","signature":"s"}}},{"text":"ho"}]},{"role":"user","content":[{"text":"on"}]}]}`,
	} {
		dir := filepath.Join(t.TempDir(), "rec")
		r := open(t, dir)
		r.Record(t.Context(), &live.Exchange{API: api, Agent: "a", Session: "s", Lineage: "l", Received: []byte(body), Sent: []byte(body)})
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		paths, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(paths) != 1 {
			t.Fatalf("%s: %v, %v", api, paths, err)
		}
		recorded, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		d, err := transcript.Read(bytes.NewReader(recorded), nil)
		if err != nil {
			t.Fatal(err)
		}
		if m := d.Journal.Messages(); len(m) != 3 || !slices.ContainsFunc(m[1].Parts, func(p core.Part) bool { r, ok := p.(core.Reasoning); return ok && r.Text == "hmm" }) {
			t.Errorf("%s: %v", api, m)
		}
	}
}

func TestRecordingsArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	r := open(t, dir)
	body := []byte(`{"model":"gpt-5.5","input":[{"role":"user","content":"hi"}]}`)
	e := &live.Exchange{API: "responses", Agent: "../../Codex CLI", Session: "../x", Lineage: "/etc", Received: body, Sent: body}
	r.Record(t.Context(), e)
	r.Record(t.Context(), &live.Exchange{API: "responses", Lineage: "broken", Received: []byte("{"), Sent: []byte("{")})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r.Record(t.Context(), e) // nothing happens
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(paths) != 1 || !strings.HasPrefix(filepath.Base(paths[0]), "codex-cli-") {
		t.Fatalf("got %v, %v", paths, err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, paths[0]: 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want && runtime.GOOS != "windows" {
			t.Errorf("%s: mode %o, want %o", path, got, want)
		}
	}
}
