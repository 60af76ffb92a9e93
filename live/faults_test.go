package live_test

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// What goes wrong with the vendor's answer reaches the client as it would without the gateway: the same bytes, the same kind of end.
// The request after it goes on.
func TestFaultsOfTheVendor(t *testing.T) {
	testkit.Slow(t)
	for _, c := range clients() {
		for name, fault := range map[string]upstream.Fault{
			"none":                    {},
			"split characters":        {Chunk: 1},
			"reset before the answer": {Reset: true},
			"reset":                   {Reset: true, At: 400},
			"error after 200":         {Error: true, At: 400},
			"no terminator":           {Unended: true},
			"429":                     {Status: 429, RetryAfter: "7"},
			"529":                     {Status: 529},
			"500":                     {Status: 500},
		} {
			t.Run(string(c.API)+"/"+name, func(t *testing.T) {
				o := upstream.Options{Window: window, Script: agentLoop, Fault: func(r upstream.Record) *upstream.Fault {
					if r.N == 3 {
						return &fault
					}
					return nil
				}}
				p := newPlay(t, o, c, nil)
				alone := httptest.NewServer(upstream.New(o))
				t.Cleanup(alone.Close)
				direct := &play{client: &upstream.Client{}}
				*direct.client = c
				direct.client.URL = alone.URL
				p.steps(t, 2)
				direct.steps(t, 2)
				_, _, got := p.client.Step(t.Context())
				_, _, want := direct.client.Step(t.Context())
				if endOf(got) != endOf(want) {
					t.Errorf("got %v, without the gateway %v", got, want)
				}
				if !fault.Reset && !bytes.Equal(p.client.Answer, direct.client.Answer) {
					t.Errorf("got\n%s\nwithout the gateway\n%s", p.client.Answer, direct.client.Answer)
				}
				if !bytes.HasPrefix(direct.client.Answer, p.client.Answer) && !bytes.HasPrefix(p.client.Answer, direct.client.Answer) {
					t.Errorf("other bytes before the reset:\n%s\n%s", p.client.Answer, direct.client.Answer)
				}
				p.steps(t, 1)
				if b := p.vendor.Breaks(); len(b) != 0 {
					t.Errorf("%v", b)
				}
			})
		}
	}
}

// endOf says how a request ended.
func endOf(err error) string {
	switch {
	case err == nil:
		return "complete"
	case errors.Is(err, upstream.ErrRefused):
		_, text, _ := strings.Cut(err.Error(), ": ")
		return text
	case errors.Is(err, upstream.ErrIncomplete):
		return "incomplete"
	}
	return "connection"
}

// A client that goes away, before the answer or within it, ends the request to the vendor.
func TestClientGoesAway(t *testing.T) {
	testkit.Slow(t)
	for _, c := range clients() {
		for name, fault := range map[string]upstream.Fault{"before": {Hold: make(chan struct{})}, "within": {At: 300, Stall: make(chan struct{})}} {
			t.Run(string(c.API)+"/"+name, func(t *testing.T) {
				seen := make(chan upstream.Record, 1)
				p := newPlay(t, upstream.Options{Fault: func(r upstream.Record) *upstream.Fault { seen <- r; return &fault }}, c, nil)
				p.client.History = []object{first(c.API, "Read.")}
				ctx, leave := context.WithCancel(t.Context())
				var left sync.WaitGroup
				left.Go(func() {
					if _, _, err := p.client.Step(ctx); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
				r := <-seen
				leave()
				<-r.Gone
				<-r.Finished
				left.Wait()
			})
		}
	}
}
