package live_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/growing"
	"github.com/condensehq/condense/live"
)

// TestGrowingWithOrders is [TestL2L3L5L6Growing] with two gateways of one store, of which any gets the next request, and with a user who asks
// for something between the requests: nothing is refused, only what was asked for changes what was sent before, and what is undone is the
// client's own.
func TestGrowingWithOrders(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	host, err := condense.Open(t.Context(), withWindow(4_000))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}()
	w := &ordered{host: host}
	upstream := httptest.NewServer(w)
	defer upstream.Close()
	w.url = upstream.URL
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		w.runs++
		w.play(t, filepath.Join(dir, fmt.Sprint(w.runs, ".db")))
	})
	t.Logf("%d requests, %d epochs, %d of them asked for, %d undone (%d to the client's own), %d while paused", w.requests, w.epochs, w.asked, w.undone, w.own, w.paused)
	if w.runs >= 500 && !t.Failed() && (w.asked == 0 || w.undone == 0 || w.own == 0 || w.paused == 0) {
		t.Error("the runs test too little")
	}
	http.DefaultClient.CloseIdleConnections()
}

// ordered is the vendor, and what was tested.
type ordered struct {
	host   *condense.Host
	url    string
	vendor *growing.Vendor

	runs, requests, epochs, asked, undone, own, paused int
}

func (w *ordered) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	answer, err := w.vendor.Answer(body)
	out.Header().Set("Content-Type", "application/json")
	if err != nil {
		out.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(out, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, err.Error())
		return
	}
	fmt.Fprintf(out, `{"id":"msg","type":"message","model":"m","stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":10},"answer":%s}`, len(body)/4, answer)
}

func (w *ordered) play(t *rapid.T, path string) {
	w.vendor = &growing.Vendor{}
	gateways := make([]*live.Gateway, 2)
	start := func() {
		for i := range gateways {
			var err error
			if gateways[i], err = live.New(w.host, &live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": w.url}}, Store: live.Store{Path: path}, Reports: live.Reports{Logger: slog.New(slog.DiscardHandler)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	faults := map[string]int{}
	sums := func() (made, asked, undone int) {
		for _, g := range gateways {
			s := g.Stats()
			made, undone = made+s.EpochCount, undone+s.Undone
			for _, e := range s.Epochs {
				if e.Reason == "asked" {
					asked++
				}
			}
		}
		return made, asked, undone
	}
	stop := func() {
		made, asked, undone := sums()
		w.epochs, w.asked, w.undone = w.epochs+made, w.asked+asked, w.undone+undone
		for _, g := range gateways {
			for kind, n := range g.Stats().Errors {
				faults[kind] += n
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	start()
	at := 0
	growing.Run(t, w.vendor, growing.World{
		Words:   120,
		Restart: func() { stop(); start() },
		Ask:     func(n int) { at = n % 2; w.ask(t, gateways[n/2%2].Desk(), n/4) },
		Send: func(c growing.Call) (growing.Answer, bool) {
			w.requests++
			made, _, undone := sums()
			at = (at + 1) % 2
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/v1/messages", bytes.NewReader(c.Body))
			r.RemoteAddr = "127.0.0.1:1"
			r.Header.Set("X-Condense-Session", "s")
			out := httptest.NewRecorder()
			gateways[at].ServeHTTP(out, r)
			var answer struct{ Answer json.RawMessage }
			if err := json.Unmarshal(out.Body.Bytes(), &answer); err != nil {
				t.Fatal(errors.Join(err, errors.New(out.Body.String())))
			}
			madeNow, _, undoneNow := sums()
			if undoneNow > undone {
				w.undoneAs(t, gateways[at].Desk(), c)
			}
			return growing.Answer(answer.Answer), madeNow > made || undoneNow > undone
		},
	}, 40)
	stop()
	if len(faults) > 0 {
		t.Errorf("faults: %v", faults)
	}
}

// ask asks for something that can be had.
func (w *ordered) ask(t *rapid.T, d *control.Desk, n int) {
	all, err := d.Conversations(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		return
	}
	c := all[n%len(all)]
	switch n /= len(all); n % 8 {
	case 0, 1, 2:
		err = d.Now(t.Context(), c, live.Order{Percent: float64(n % 50)})
	case 3, 4, 5:
		if _, no := d.PlanUndo(c); no == nil {
			err = d.Undo(t.Context(), c)
		}
	case 6:
		if err = d.Pause(t.Context(), c, !c.Paused); c.Paused {
			w.paused++
		}
	case 7:
		if len(c.Protections) == 2 { // more may not fit into the window
			p := c.Protections[0]
			err = d.Protect(t.Context(), c, live.Protection{Text: p.Text, Message: p.Message}, false)
			break
		}
		p := live.Protection{Message: 1 + n%c.Messages}
		if n%3 == 0 {
			p = live.Protection{Text: fmt.Sprint("tok", n%20, ".")}
		}
		if no := d.Protect(t.Context(), c, p, true); no != nil && !c.Condensed {
			err = no
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// undoneAs checks what was sent with an undo.
func (w *ordered) undoneAs(t *rapid.T, d *control.Desk, c growing.Call) {
	all, err := d.Conversations(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if o := one.LastOrder; o == nil || o.Do != live.OrderUndo || !o.Changed || one.Condensed || !one.Undone {
			continue
		}
		if !one.Last.Equal(all[0].Last) {
			continue
		}
		w.own++
		if !w.vendor.Own() || c.Model == growing.Unbound && !w.vendor.Identical() && !one.Bound {
			t.Fatalf("what was undone is not the client's own: %s", c.Body)
		}
	}
}
