package live_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// Where no token is needed, any program of the machine reaches the admin address. Without the secret of the user it directs no
// conversation, and learns no title, folder, session or text.
func TestStrangersDirectNoConversations(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{orders, ""} { // a gateway without a folder for its secret has none
		p := newPlay(t, upstream.Options{}, upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", Session: "the-session-of-the-agent"},
			func(o *live.Options) { o.Access.Orders = secret })
		steps(t, p, 6)
		admin := adminOf(t, p.Gateway)
		id := only(t, p.Controller()).ID
		for _, header := range []map[string]string{{}, {"X-Condense-Token": "wrong"}, {"Authorization": "Bearer "}, {"X-Condense-Token": orders + "x"}} {
			header["Content-Type"] = "application/json"
			for _, action := range control.Actions {
				for _, at := range []string{id, id[:6], "unknown"} {
					got, text := send(t, http.MethodPost, admin+"/condense/live/"+at+"/"+action, header, []byte(`{"tokens":20000,"text":"Read every file"}`))
					if got.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "orders.key") || strings.Contains(string(text), id[:6]) {
						t.Errorf("%s by %v: %d %s", action, header, got.StatusCode, text)
					}
				}
			}
			if got, text := send(t, http.MethodGet, admin+"/condense/live/"+id, header, nil); got.StatusCode != http.StatusForbidden {
				t.Errorf("the view for %v: %d %s", header, got.StatusCode, text)
			}
			for _, path := range []string{"/condense/live", "/condense/live/unknown/undo", "/condense/status", "/metrics"} {
				_, text := send(t, http.MethodGet, admin+path, header, nil)
				for _, name := range []string{"the-session-of-the-agent", "Read every file", "report"} {
					if strings.Contains(string(text), name) {
						t.Errorf("%s says %q to %v: %s", path, name, header, text)
					}
				}
			}
		}
		c := only(t, p.Controller())
		if c.Order != nil || c.Paused || len(c.Protections) > 0 {
			t.Errorf("a stranger's order: %+v", c)
		}
	}
}

// Orders of a program that goes wild cost a conversation neither its content nor its cache: a target keeps a tenth of the window,
// and after an order that has changed the view there is a minute without another condensation by order. An undo is not delayed.
func TestOrdersHaveAFloorAndAPause(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Now().Unix())
	p := newPlay(t, upstream.Options{}, upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", Session: "s"},
		func(o *live.Options) { o.Now = func() time.Time { return time.Unix(now.Load(), 0) } })
	steps(t, p, 6)
	d := p.Controller()
	for _, o := range []session.Order{{Tokens: 1}, {Percent: 0.01}, {Percent: 9.99}, {Tokens: only(t, d).Window/10 - 1}} {
		if err := d.Now(t.Context(), only(t, d), o); err == nil || !strings.Contains(err.Error(), "at least 10% of the window") && !strings.Contains(err.Error(), "at least 10%") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	done := 0
	for n := range 26 {
		if d.Now(t.Context(), only(t, d), session.Order{Percent: 10}) == nil {
			done++
		}
		if n == 13 {
			if err := d.Undo(t.Context(), only(t, d)); err != nil {
				t.Errorf("an undo: %v", err)
			}
		}
		now.Add(5)
		steps(t, p, 1)
	}
	if done == 0 || done > 26*5/60+2 {
		t.Errorf("%d condensations by order in %s", done, fmt.Sprint(26*5*time.Second))
	}
}
