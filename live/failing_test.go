package live_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// TestFailingEpochsAreSaid: epochs that fail one after the other are said where a person looks, instead of a prediction: what
// fails, how often and since when. The log warns once, the shown size grows with the conversation, truncation follows at the
// limit, and after an epoch nothing is said any more.
func TestFailingEpochsAreSaid(t *testing.T) {
	t.Parallel()
	const window = 40_000
	host := dueAt(window, func(context.Context, *core.Request) (*core.Result, error) {
		return nil, fmt.Errorf("401 invalid x-api-key: %w", &remote.Error{Status: http.StatusUnauthorized})
	})
	v := newSizing(t, window)
	var log lockedBuffer
	g, s := serveWith(t, v.URL, host, func(o *live.Options) {
		o.Reports.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	body, shown, said := loop(1, window/2*4), 0, false
	for n := 0; g.Stats().EpochCount == 0; n++ {
		if n > 60 {
			t.Fatal("no truncation follows")
		}
		together(t, s.URL, [][]byte{body})
		live.Settle(g)
		var c *control.Conversation
		testkit.Eventually(t, "the shown size has grown", func() bool { // it is stored after the answer
			all, err := g.Controller().Conversations(t.Context(), time.Time{})
			if err != nil || len(all) == 0 {
				return false
			}
			c = all[0]
			return c.Size > shown || g.Stats().EpochCount > 0 && c.Epochs > 0
		})
		if g.Stats().EpochCount == 0 {
			if shown = c.Size; c.Failing.Lasting() {
				said = true
				if !strings.Contains(c.Next, fmt.Sprintf("FAILS, %d times since ", c.Failing.Count)) || !strings.Contains(c.Next, "401 invalid x-api-key") || c.DueIn != 0 {
					t.Errorf("request %d: %q, in %d requests", n, c.Next, c.DueIn)
				}
				if all := strings.Join(c.Troubles(), ""); !strings.Contains(all, "every request has all ") || !strings.Contains(all, ": check the key") {
					t.Errorf("request %d: what it costs, and what to do: %s", n, all)
				}
			}
		} else if c.Failing != nil || strings.Contains(c.Next, "FAILS") {
			t.Errorf("after the epoch: %q", c.Next)
		} else if all := strings.Join(c.Troubles(), ""); !strings.Contains(all, condense.Truncation+" stood in") || !strings.Contains(all, "401 invalid x-api-key") {
			t.Errorf("after the truncation: %s", all)
		}
		body = append([]byte(strings.TrimSuffix(string(body), "]}")), fmt.Sprintf(`,{"role":"assistant","content":"Done."},{"role":"user","content":"Go on %d. %s"}]}`, n, strings.Repeat("more ", 800))...)
	}
	if !said || strings.Count(log.String(), "its epochs fail") != 1 || !strings.Contains(log.String(), "remedy=") {
		t.Errorf("said %t; the log: %s", said, log.String())
	}
	if e := g.Stats().Epochs[0]; e.Provider != condense.Truncation || v.refused > 0 {
		t.Errorf("an epoch by %s, %d refused", e.Provider, v.refused)
	}
}

// TestForcedEpochsThatFailAreSaid: a vendor refuses a conversation whatever epoch is made of it. After the second time it is said in
// the list and in the log, the client gets the vendor's own words, and the chain is not asked any more.
func TestForcedEpochsThatFailAreSaid(t *testing.T) {
	t.Parallel()
	const window = 40_000
	var asked atomic.Int32
	host := dueAt(window, func(_ context.Context, r *core.Request) (*core.Result, error) {
		asked.Add(1)
		return keepEnds(r), nil
	})
	v := newSizing(t, 3000)
	var log lockedBuffer
	g, s := serveWith(t, v.URL, host, func(o *live.Options) {
		o.Reports.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	body, before := bytes.Replace(loop(1, window), []byte("You are an agent."), bytes.Repeat([]byte("You are an agent. "), 1000), 1), int32(0)
	for range 6 {
		before = asked.Load()
		if res, text := send(t, http.MethodPost, s.URL+"/v1/messages", nil, body); res.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "prompt is too long: ") {
			t.Errorf("the client gets %s %.200s", res.Status, text)
		}
		body = longer(body)
	}
	live.Settle(g)
	all, err := g.Controller().Conversations(t.Context(), time.Time{})
	if err != nil || !slices.ContainsFunc(all, func(c *control.Conversation) bool {
		return c.Failing.Lasting() && strings.Contains(c.Next, "FAILS, ") && strings.Contains(c.Next, "what cannot be removed")
	}) {
		t.Errorf("the list does not say it: %v", err)
	}
	if n := asked.Load() - before; n > 0 {
		t.Errorf("the chain is asked %d times more", n)
	}
	if text := log.String(); strings.Count(text, "its epochs fail") != 1 || !strings.Contains(text, "outcome=replaced") {
		t.Errorf("the log: %s", text)
	}
}

// TestRefusalsAreSaid: a vendor that stops answering in the middle of a conversation is said instead of a prediction, until it answers.
func TestRefusalsAreSaid(t *testing.T) {
	t.Parallel()
	var revoked, gone atomic.Bool
	v := upstream.New(upstream.Options{Script: agentLoop})
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case gone.Load():
			panic(http.ErrAbortHandler)
		case revoked.Load():
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)
		default:
			v.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(vendor.Close)
	g, s := serveWith(t, vendor.URL, nil, nil)
	c := upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", Session: "s", URL: s.URL}
	c.History = []object{first(upstream.Messages, task)}
	said := func(refusals int) (now *control.Conversation) { // with so many refusals one after the other
		_, _, _ = c.Step(t.Context()) // an error is what the client gets, before the gateway notes it
		testkit.Eventually(t, "the refusal in the list", func() bool {
			live.Settle(g)
			all, err := g.Controller().Conversations(t.Context(), time.Time{})
			if err != nil || len(all) != 1 {
				t.Fatalf("%d conversations, %v", len(all), err)
			}
			now = all[0]
			return refusals == 0 && now.Refused == nil || now.Refused != nil && now.Refused.Count == refusals
		})
		return now
	}
	for range 3 {
		if c := said(0); c.Refused != nil || c.DueIn == 0 {
			t.Errorf("while the vendor answers: %q", c.Next)
		}
	}
	revoked.Store(true)
	for n := 1; n <= 3; n++ {
		c := said(n)
		if is := strings.Contains(c.Next, fmt.Sprintf("NO ANSWER, %d times since ", n)) && strings.HasSuffix(c.Next, "401 invalid x-api-key"); is != (n > 1) || is && c.DueIn != 0 {
			t.Errorf("refusal %d: %q, in %d requests", n, c.Next, c.DueIn)
		}
		if n > 1 && !strings.HasSuffix(strings.Join(c.Troubles(), ""), ": check the key") {
			t.Errorf("refusal %d: %q", n, c.Troubles())
		}
	}
	gone.Store(true)
	if c := said(4); !strings.Contains(c.Next, "NO ANSWER, 4 times since ") || !strings.Contains(c.Next, "cannot be reached") {
		t.Errorf("away: %q", c.Next)
	}
	gone.Store(false)
	revoked.Store(false)
	if c := said(0); c.Refused != nil || len(c.Troubles()) > 0 || c.DueIn == 0 {
		t.Errorf("after an answer: %q, %q", c.Next, c.Troubles())
	}
}

// TestUnknownNamesAreSaid: a mode or profile that a request names and the configuration does not have is in the log, once.
func TestUnknownNamesAreSaid(t *testing.T) {
	t.Parallel()
	vendor := httptest.NewServer(upstream.New(upstream.Options{Script: agentLoop}))
	t.Cleanup(vendor.Close)
	var log lockedBuffer
	_, s := serveWith(t, vendor.URL, nil, func(o *live.Options) { o.Reports.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	c := upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", Session: "s", URL: s.URL, Header: http.Header{"X-Condense-Mode": {"codr"}, "X-Condense-Profile": {"thorogh"}}}
	c.History = []object{first(upstream.Messages, task)}
	for range 3 {
		if _, _, err := c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"kind=mode name=codr", "kind=profile name=thorogh"} {
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("%d lines %q: %s", n, line, log.String())
		}
	}
}
