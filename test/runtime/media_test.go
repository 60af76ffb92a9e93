package runtime_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/media"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// mediaFormats are the formats of the APIs' requests.
var mediaFormats = map[string]string{
	"messages": "anthropic", "chat": "openai", "responses": "responses", "gemini": "gemini-api", "converse": "bedrock-converse",
}

// A PDF among ten reads is not what makes a conversation due, and when the conversation is due the newest medium stays.
func TestPDFIsNotDroppedByTheLibrary(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	counter, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	count := tokens.NewCounter(counter)
	for _, m := range testkit.Media {
		t.Run(m.API+"/"+m.Kind+"/"+m.Place, func(t *testing.T) {
			t.Parallel()
			messages, data := m.With(700_000)
			for _, at := range []int{36} {
				body := m.Request(40, 4_000, map[int]string{at: messages})
				c := mediaConversation(t, m.API, body)
				_, want := media.Count(body, func([]byte) int { return 0 }) // as the gateway has it
				got := 0
				for _, msg := range c.View() {
					for _, p := range msg.Parts {
						if _, ok := p.(core.Text); !ok {
							got += count.Count(p)
						}
					}
				}
				// Without an API, an image costs what it costs with Claude.
				if least := want * 9 / 10; want == 0 || got < least || got > want+120 {
					t.Errorf("%d tokens, and the gateway counts %d", got, want)
				}
				h := start(t, nil)
				report, err := h.Manage(t.Context(), c, condense.Turn{})
				if err != nil || report.Acted {
					t.Fatalf("%v, %+v", err, report)
				}
				if report, err = h.Manage(t.Context(), c, condense.Turn{Window: 50_000, MaxOutput: 1000}); err != nil || !report.Acted {
					t.Fatalf("%v, %+v", err, report)
				}
				if got := fmt.Sprint(c.View()); !strings.Contains(got, data[:1000]) {
					t.Errorf("after round %d: the only medium is gone", at)
				}
			}
		})
	}
}

func mediaConversation(t *testing.T, api string, body []byte) *condense.Conversation {
	t.Helper()
	d, err := transcript.Read(bytes.NewReader(body), &transcript.ReadOptions{Format: mediaFormats[api]})
	if err != nil {
		t.Fatal(err)
	}
	return condense.ResumeConversation(d.Journal)
}
