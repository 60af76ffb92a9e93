package upstream_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a vendor.
func serve(t *testing.T, o upstream.Options) (*upstream.Vendor, *httptest.Server) {
	t.Helper()
	v := upstream.New(o)
	s := httptest.NewServer(v)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return v, s
}

// older is a model whose thinking is "enabled".
const older = "claude-sonnet-4-5"

var models = map[upstream.API]string{upstream.Messages: "claude-opus-5-5", upstream.Chat: "gpt-5.4", upstream.Responses: "gpt-5.6"}

// TestLoop plays a loop of calls over each wire, streaming and not, with thinking bound to what comes before it.
func TestLoop(t *testing.T) {
	const steps, size = 22, 6000
	for api, model := range models {
		for _, stream := range []bool{false, true} {
			for _, thinking := range []string{"", "adaptive", "enabled"} {
				for _, session := range []string{"", "s1"} {
					if session != "" && thinking != "" {
						continue // once is enough
					}
					t.Run(fmt.Sprintf("%s/%v/%s/%s", api, stream, thinking, session), func(t *testing.T) {
						v, s := serve(t, upstream.Options{Script: upstream.Loop(steps, size, map[int]string{7: "the code is 4711"})})
						model := model
						if api == upstream.Messages && thinking == "enabled" {
							model = older
						}
						c := &upstream.Client{URL: s.URL, API: api, Model: model, Stream: stream, Thinking: thinking, Session: session, HTTP: s.Client()}
						answer, err := c.Say(t.Context(), "Play all steps.")
						if err != nil || answer != fmt.Sprintf("All %d steps are done.", steps) {
							t.Fatalf("%q, %v", answer, err)
						}
						if n := len(v.Turns()); n != steps+1 {
							t.Errorf("%d turns, want %d", n, steps+1)
						}
						last := v.Records()[steps]
						if bytes := steps * size; len(last.Body) < bytes*9/10 || len(last.Body) > bytes*3/2 {
							t.Errorf("the last body has %d bytes", len(last.Body))
						}
						if !strings.Contains(string(last.Body), "the code is 4711") {
							t.Error("the needle is missing")
						}
						if c.Prompt != last.Tokens {
							t.Errorf("the client read %d tokens, the vendor counted %d", c.Prompt, last.Tokens)
						}
					})
				}
			}
		}
	}
}

// TestOverflow plays a client that does not condense against a window of 30,000 tokens.
func TestOverflow(t *testing.T) {
	words := map[upstream.API]string{
		upstream.Messages:  "tokens > 30000 maximum",
		upstream.Chat:      `"code":"context_length_exceeded"`,
		upstream.Responses: "Your input exceeds the context window of this model. Please adjust your input and try again.",
	}
	for api, model := range models {
		for _, late := range []bool{false, true} {
			v, s := serve(t, upstream.Options{Window: 30_000, StreamOverflow: late})
			c := &upstream.Client{URL: s.URL, API: api, Model: model, Stream: true, Session: "s1", HTTP: s.Client()}
			_, err := c.Say(t.Context(), "Play all steps.")
			if !errors.Is(err, upstream.ErrRefused) || !strings.Contains(err.Error(), words[api]) {
				t.Errorf("%s: %v", api, err)
			}
			all := v.Records()
			last := all[len(all)-1]
			want := 400
			if late && api == upstream.Responses {
				want = 200
			}
			if last.Rule != "window" || last.Tokens <= 30_000 || last.Status != want || last.Step != 0 {
				t.Errorf("%s: rule %q, %d tokens, status %d", api, last.Rule, last.Tokens, last.Status)
			}
		}
	}
}
