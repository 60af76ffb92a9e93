package live_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

// A wordy is an API in which a conversation with a medium is written.
type wordy struct {
	path, before, after string // the path; the request around its messages
	user, assistant     string // a message, with a %s for its text
}

var wordies = map[string]wordy{
	"messages": {"/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":1000,"messages":[`, `]}`,
		`{"role":"user","content":%q}`, `{"role":"assistant","content":%q}`},
	"chat": {"/v1/chat/completions", `{"model":"gpt-4o","messages":[`, `]}`, `{"role":"user","content":%q}`, `{"role":"assistant","content":%q}`},
	"responses": {"/v1/responses", `{"model":"gpt-4o","store":false,"input":[`, `]}`, `{"type":"message","role":"user","content":%q}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}`},
	"gemini": {"/v1beta/models/gemini-2.5-pro:generateContent", `{"contents":[`, `]}`, `{"role":"user","parts":[{"text":%q}]}`, `{"role":"model","parts":[{"text":%q}]}`},
	"ollama": {"/api/chat", `{"model":"qwen3:32b","options":{"num_ctx":200000},"messages":[`, `]}`, `{"role":"user","content":%q}`, `{"role":"assistant","content":%q}`},
	"converse": {"/model/us.anthropic.claude-haiku-4-5-v1:0/converse", `{"inferenceConfig":{"maxTokens":1000},"messages":[`, `]}`,
		`{"role":"user","content":[{"text":%q}]}`, `{"role":"assistant","content":[{"text":%q}]}`},
}

// request is a conversation of rounds of a question and an answer, each with text of size bytes, with messages put in
// after the rounds that they are keyed by.
func (w *wordy) request(rounds, size int, put map[int]string) []byte {
	var all []string
	for i := range rounds {
		if s := put[i]; s != "" {
			all = append(all, s, fmt.Sprintf(w.assistant, fmt.Sprintf("I have seen number %d.", i)))
		}
		var talk strings.Builder
		for k := 0; talk.Len() < size; k++ {
			fmt.Fprintf(&talk, "Point %d of answer %d is about module m%d_%d.\n", k, i, i, k*7)
		}
		all = append(all, fmt.Sprintf(w.user, fmt.Sprintf("Question %d: which part comes next?", i)), fmt.Sprintf(w.assistant, talk.String()))
	}
	if s := put[rounds]; s != "" {
		all = append(all, s)
	}
	return []byte(w.before + strings.Join(all, ",") + w.after)
}

// A photo, a PDF, audio or a video of any size that the window has room for reaches the vendor, in every API and
// wherever it is in a conversation.
func TestPhotoThroughConverseIsNotDropped(t *testing.T) {
	t.Parallel()
	for _, m := range testkit.Media {
		t.Run(m.API+"/"+m.Kind+"/"+m.Place, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{10_000, 675_001, 5_000_000} {
				if testing.Short() && size != 675_001 {
					continue
				}
				v := newVendor(t)
				g, s := serveWith(t, v.URL, withWindow(200_000), onEveryUpstream)
				w := wordies[m.API]
				messages, _ := m.With(size)
				for _, at := range []int{5, 2} { // the newest, then an older one
					body := w.request(5, 100, map[int]string{at: messages})
					if res, got := send(t, http.MethodPost, s.URL+w.path, nil, body); res.StatusCode != http.StatusOK {
						t.Fatalf("%s: %s", res.Status, got)
					}
					if got := v.last(t).body; !bytes.Equal(got, body) {
						t.Fatalf("%d bytes after round %d: the vendor got %d bytes of %d", size, at, len(got), len(body))
					}
				}
				if st := g.Stats(); st.EpochCount > 0 {
					t.Errorf("%d bytes: %d epochs", size, st.EpochCount)
				}
			}
		})
	}
}

// When a conversation is due, the newest medium stays, and an older one that is dropped leaves a line that says what it was.
func TestDroppedMediaLeaveALine(t *testing.T) {
	t.Parallel()
	for _, m := range testkit.Media {
		t.Run(m.API+"/"+m.Kind+"/"+m.Place, func(t *testing.T) {
			t.Parallel()
			v := newVendor(t)
			_, s := serveWith(t, v.URL, withWindow(40_000), onEveryUpstream)
			w := wordies[m.API]
			old, gone := m.With(100_001)
			newest, stays := m.With(200_000)
			for _, at := range []int{40, 36, 20} {
				body := w.request(40, 4_000, map[int]string{3: strings.ReplaceAll(old, "_9", "_8"), at: newest})
				if res, got := send(t, http.MethodPost, s.URL+w.path, nil, body); res.StatusCode != http.StatusOK {
					t.Fatalf("%s: %s", res.Status, got)
				}
				got := v.last(t).body
				if len(got) > len(body)-100_000 {
					t.Fatalf("the vendor got %d bytes of %d", len(got), len(body))
				}
				if !bytes.Contains(got, []byte(stays)) {
					t.Errorf("the newest after round %d is gone", at)
				}
				if !bytes.Contains(got, []byte(gone)) && !bytes.Contains(got, []byte(m.Label())) {
					t.Errorf("no line says what was dropped:\n%.3000s", bytes.ReplaceAll(got, []byte(stays), []byte("DATA")))
				}
			}
		})
	}
}
