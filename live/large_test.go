package live_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// TestConversationGoesOnAboveMaxBody: a conversation that only lives because it is condensed does not end where its
// requests reach serve.max_body. One warning comes before.
func TestConversationGoesOnAboveMaxBody(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const most, turns = 150_000, 110
	for _, c := range clients() {
		t.Run(string(c.API), func(t *testing.T) {
			t.Parallel()
			var log lockedBuffer
			p := newPlay(t, upstream.Options{Script: upstream.Loop(turns, 2500, nil)}, c, func(o *live.Options) {
				o.Bounds.MaxBody = most
				o.Reports.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			})
			for range turns {
				p.steps(t, 1)
				said := strings.Count(log.String(), "near serve.max_body")
				if n := len(p.client.Body); said > 1 || said == 0 && n >= most || said > 0 && n < most/2 {
					t.Fatalf("%d warnings at %d bytes", said, n)
				}
			}
			if n := len(p.client.Body); n < 2*most {
				t.Fatalf("the last request has only %d bytes", n)
			}
			for _, r := range p.vendor.Refusals() {
				t.Errorf("request %d was refused: %s: %s", r.N, r.Rule, r.Error)
			}
		})
	}
}

// TestScreenshotsGoOnAboveMaxBody: so does one of screenshots, which the vendor would refuse for their bytes.
func TestScreenshotsGoOnAboveMaxBody(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const most, size = 2 << 20, 40_000 // a sixteenth of the default, and of a screenshot
	p := newPlay(t, upstream.Options{Script: upstream.Loop(45, 200, nil)}, claude("s"), func(o *live.Options) { o.Bounds.MaxBody = most })
	for n := range 45 {
		picture := append(fmt.Appendf([]byte("\x89PNG\r\n\x1a\n"), "%d", n), bytes.Repeat([]byte{byte(n), 7, 9}, size/3)...)
		p.client.History = append(p.client.History, object{"role": "user", "content": []any{
			object{"type": "text", "text": fmt.Sprintf("Screenshot %d.", n)},
			object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": base64.StdEncoding.EncodeToString(picture)}},
		}})
		p.step(t)
	}
	if n := len(p.client.Body); n <= most+size {
		t.Fatalf("the last request has only %d bytes", n)
	}
	for _, r := range p.vendor.Records() {
		if r.Rule != "" || len(r.Body) > most {
			t.Errorf("request %d with %d bytes: %s: %s", r.N, len(r.Body), r.Rule, r.Error)
		}
	}
}

// TestTooLargeIsSaidByItsSetting: of a request that passes for its size, a refusal names the setting to raise, with the
// vendor's own words. Other refusals are the vendor's.
func TestTooLargeIsSaidByItsSetting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status  int
		message string
		ours    bool
	}{
		{http.StatusBadRequest, "prompt is too long: 1228367 tokens > 200000 maximum", true},
		{http.StatusRequestEntityTooLarge, "Request exceeds the maximum size", true},
		{http.StatusBadRequest, "max_tokens: field required", false},
	} {
		for _, size := range []int{2_000, 200_000} { // below and above what is read of a known conversation
			v := newVendor(t)
			v.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, tt.message))
			}
			_, s := serve(t, v, func(o *live.Options) { o.Bounds.MaxBody = 1500 })
			body := []byte(`{"model":"claude-opus-5-5","messages":[{"role":"user","content":"` + strings.Repeat("a", size) + `"}]}`)
			res, got := send(t, http.MethodPost, s.URL+"/v1/messages", nil, body)
			if res.StatusCode != tt.status || !bytes.Contains(got, []byte(tt.message)) || bytes.Contains(got, []byte("serve.max_body")) != tt.ours {
				t.Errorf("%d %q: %d %s", size, tt.message, res.StatusCode, got)
			}
			if !bytes.Equal(v.last(t).body, body) {
				t.Error("the vendor got another body")
			}
		}
	}
}
