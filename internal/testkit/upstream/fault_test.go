package upstream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// TestFaults: each fault looks to a client as it would from the vendor.
func TestFaults(t *testing.T) {
	for api, model := range models {
		for _, c := range []struct {
			name  string
			fault upstream.Fault
			want  func(*testing.T, *upstream.Client, error)
		}{
			{"none", upstream.Fault{}, func(t *testing.T, _ *upstream.Client, err error) {
				t.Helper()
				if err != nil {
					t.Error(err)
				}
			}},
			{"split", upstream.Fault{Chunk: 1}, func(t *testing.T, _ *upstream.Client, err error) {
				t.Helper()
				if err != nil {
					t.Error(err)
				}
			}},
			{"reset before the answer", upstream.Fault{Reset: true}, transport},
			{"reset", upstream.Fault{Reset: true, At: 300}, transport},
			{"error after 200", upstream.Fault{Error: true, At: 300}, func(t *testing.T, c *upstream.Client, err error) {
				t.Helper()
				if !errors.Is(err, upstream.ErrRefused) || strings.Contains(err.Error(), "refused: 4") {
					t.Error(err)
				}
				if len(c.Answer) < 300 {
					t.Errorf("%d bytes", len(c.Answer))
				}
			}},
			{"no end", upstream.Fault{Unended: true}, func(t *testing.T, _ *upstream.Client, err error) {
				t.Helper()
				if !errors.Is(err, upstream.ErrIncomplete) {
					t.Error(err)
				}
			}},
			{"429", upstream.Fault{Status: 429, RetryAfter: "7"}, refused("429", "rate limit")},
			{"529", upstream.Fault{Status: 529}, refused("529", "Overloaded")},
			{"500", upstream.Fault{Status: 500}, refused("500", "Internal server error")},
		} {
			t.Run(string(api)+"/"+c.name, func(t *testing.T) {
				v, s := serve(t, upstream.Options{Script: upstream.Loop(2, 400, nil), Fault: func(r upstream.Record) *upstream.Fault {
					if r.N == 2 {
						return &c.fault
					}
					return nil
				}})
				client := &upstream.Client{URL: s.URL, API: api, Model: model, Stream: true, Thinking: "adaptive", Session: "s1", HTTP: s.Client(), History: []object{first(api)}}
				if _, _, err := client.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				_, _, err := client.Step(t.Context())
				c.want(t, client, err)
				if err == nil {
					return
				}
				// The same request again is answered by the same step.
				for range 2 {
					if _, _, err := client.Step(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for _, n := range v.Played() {
					if n != 3 {
						t.Errorf("%d steps", n)
					}
				}
			})
		}
	}
}

func first(api upstream.API) object {
	if api == upstream.Messages {
		return object{"role": "user", "content": []any{textBlock("Play.")}}
	}
	return message("user", "Play.")
}

func transport(t *testing.T, _ *upstream.Client, err error) {
	t.Helper()
	if err == nil || errors.Is(err, upstream.ErrRefused) || errors.Is(err, upstream.ErrIncomplete) {
		t.Errorf("want an error of the connection, got %v", err)
	}
}

func refused(status, text string) func(*testing.T, *upstream.Client, error) {
	return func(t *testing.T, _ *upstream.Client, err error) {
		t.Helper()
		if !errors.Is(err, upstream.ErrRefused) || !strings.Contains(err.Error(), status) || !strings.Contains(err.Error(), text) {
			t.Error(err)
		}
	}
}

// TestStall: what was sent before a silence arrives during it.
func TestStall(t *testing.T) {
	stall := make(chan struct{})
	_, s := serve(t, upstream.Options{Fault: func(upstream.Record) *upstream.Fault { return &upstream.Fault{At: 200, Stall: stall} }})
	res := ask(t.Context(), t, s.Client(), s.URL)
	defer func() { _ = res.Body.Close() }()
	begin := make([]byte, 200)
	if _, err := io.ReadFull(res.Body, begin); err != nil {
		t.Fatal(err)
	}
	close(stall)
	rest, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(rest), "message_stop") {
		t.Errorf("%v: %s", err, rest)
	}
}

// TestGone: the vendor notices a client that leaves before, and in the middle of, an answer.
func TestGone(t *testing.T) {
	for name, fault := range map[string]upstream.Fault{"before": {Hold: make(chan struct{})}, "within": {At: 200, Stall: make(chan struct{})}} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan upstream.Record, 1)
			v, s := serve(t, upstream.Options{Fault: func(r upstream.Record) *upstream.Fault { seen <- r; return &fault }})
			ctx, cancel := context.WithCancel(t.Context())
			var left sync.WaitGroup
			left.Go(func() {
				c := &upstream.Client{URL: s.URL, API: upstream.Messages, Model: "claude-opus-5", Stream: true, HTTP: s.Client(), History: []object{first(upstream.Messages)}}
				if _, _, err := c.Step(ctx); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			r := <-seen
			cancel()
			<-r.Gone
			<-r.Finished
			left.Wait()
			if name == "before" && v.Records()[0].Status != 0 {
				t.Errorf("%+v", v.Records()[0].Status)
			}
		})
	}
}

// ask sends a streamed request of Messages.
func ask(ctx context.Context, t *testing.T, client *http.Client, url string) *http.Response {
	t.Helper()
	body := `{"model":"claude-opus-5","max_tokens":99,"stream":true,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"bash","input_schema":{"type":"object","properties":{"command":{"type":"string"}}}}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}
