package agents_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// wrap runs condense wrap.
func (d *desk) wrap(t *testing.T, env []string, args ...string) result {
	t.Helper()
	flags := append([]string{"wrap", "--store", filepath.Join(d.home, "serve.db")}, d.upstreams()...)
	return d.run(t, env, d.condense(t), append(flags, args...)...)
}

var condensed = regexp.MustCompile(`condense: history condensed (\d+) times?`)

// epochs is how often condense wrap says that it condensed.
func (r result) epochs(t *testing.T) int {
	t.Helper()
	m := condensed.FindStringSubmatch(r.out)
	if m == nil {
		t.Fatalf("condense wrap does not say what it did\n%s", tail(r.out))
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWrap runs the scenario through condense wrap: no agent knows of it. Claude Code, Codex and OpenCode do so in TestRecall.
func TestWrap(t *testing.T) {
	t.Parallel()
	for _, a := range some("pi") {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, scenario())
			d.at(t, &a, "")
			got := d.wrap(t, a.env, append(append([]string{a.name}, a.args...), task)...)
			d.condensed(t, got, got.epochs(t))
		})
	}
}

// TestWrapFoundry runs the scenario with Claude Code in Microsoft Foundry.
func TestWrapFoundry(t *testing.T) {
	t.Parallel()
	d, a := newDesk(t, scenario()), &all[0]
	d.at(t, a, "")
	env := append(slices.Clone(a.env), "ANTHROPIC_API_KEY=", "CLAUDE_CODE_USE_FOUNDRY=1", "ANTHROPIC_FOUNDRY_API_KEY=dummy", "ANTHROPIC_FOUNDRY_BASE_URL="+d.url+"/anthropic")
	got := d.wrap(t, env, append(append([]string{a.name}, a.args...), task)...)
	d.condensed(t, got, got.epochs(t))
	for _, r := range d.vendor.Turns() {
		if r.Cloud != upstream.Foundry {
			t.Errorf("request %d came to %s", r.N, r.Path)
		}
	}
}

// TestServe runs the scenario through condense serve, named by the agent's own settings.
func TestServe(t *testing.T) {
	t.Parallel()
	for _, a := range some("codex", "pi") {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, scenario())
			g := d.serve(t, "127.0.0.1:0")
			got := d.direct(t, &a, g.url, task)
			d.condensed(t, got, g.epochs(t))
		})
	}
}

// tapped passes the frames of a WebSocket on, and gives the client's to record.
func tapped(w http.ResponseWriter, r *http.Request, to string, record func([]byte)) {
	header := r.Header.Clone()
	maps.DeleteFunc(header, func(name string, _ []string) bool { return strings.HasPrefix(name, "Sec-Websocket-") })
	up, _, err := websocket.Dial(r.Context(), to+r.URL.Path, &websocket.DialOptions{HTTPHeader: header}) //nolint:bodyclose // the library's
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	down, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	up.SetReadLimit(-1)
	down.SetReadLimit(-1)
	ctx, end := context.WithCancel(context.WithoutCancel(r.Context()))
	pass := func(from, to *websocket.Conn, record func([]byte)) {
		defer end()
		for {
			kind, data, err := from.Read(ctx)
			if err != nil {
				return
			}
			record(data)
			if to.Write(ctx, kind, data) != nil {
				return
			}
		}
	}
	go pass(up, down, func([]byte) {})
	pass(down, up, record)
}

// tap is a server that passes requests on and records their bodies and frames, in order of arrival.
func tap(t *testing.T, to string) (address string, bodies func() [][]byte) {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all [][]byte
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		record := func(body []byte) {
			mu.Lock()
			all = append(all, body)
			mu.Unlock()
		}
		if r.Header.Get("Upgrade") != "" {
			tapped(w, r, to, record)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		record(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() [][]byte {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// TestObserve runs agents through condense serve --observe, with a vendor whose window is large enough: every byte of every request
// reaches the vendor, also of those that condense would have condensed.
func TestObserve(t *testing.T) {
	t.Parallel()
	for _, a := range some("codex") {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			o := scenario()
			o.Window = 200_000
			d := newDesk(t, o)
			g := d.serve(t, "127.0.0.1:0", "--observe")
			address, sent := tap(t, g.url)
			got := d.direct(t, &a, address, task)
			if got.code != 0 || d.steps() <= calls {
				t.Errorf("exit code %d after %d steps\n%s", got.code, d.steps(), tail(got.out))
			}
			d.accept(t)
			var reached []string
			for _, r := range d.vendor.Records() {
				if r.Header.Get("Upgrade") == "" || r.Socket { // its handshake has no body
					reached = append(reached, r.Sum)
				}
			}
			var from []string
			for _, body := range sent() {
				sum := sha256.Sum256(body)
				from = append(from, hex.EncodeToString(sum[:]))
			}
			slices.Sort(from)
			slices.Sort(reached)
			if !slices.Equal(from, reached) {
				t.Errorf("%d requests were sent and %d reached the vendor, or their bytes differ\n%s", len(from), len(reached), d.list())
			}
			t.Logf("untouched: %s; status %v", d.bill(), g.status(t))
		})
	}
}

// TestRestart kills the gateway while a request is on its way, after an epoch, and starts it again at the same address: the agents send the
// request again and go on.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, a := range some("codex") {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			const last = calls - 4 // the request that is on its way when the gateway is killed
			reached, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			o := scenario()
			o.Fault = func(r upstream.Record) (f *upstream.Fault) {
				if r.N >= last {
					once.Do(func() {
						close(reached)
						f = &upstream.Fault{Hold: release}
					})
				}
				return f
			}
			d := newDesk(t, o)
			g := d.serve(t, "127.0.0.1:0")
			var out testkit.Log
			cmd := d.begin(t, &a, g.url, task, &out)
			ended := make(chan result, 1)
			go func() { ended <- wait(t, cmd, &out) }()
			select {
			case <-reached:
			case got := <-ended:
				t.Fatalf("the agent ended before request %d with exit code %d\n%s\n%s", last, got.code, tail(got.out), d.list())
			}
			before := g.epochs(t)
			g.kill()
			g = d.serve(t, strings.TrimPrefix(g.url, "http://"))
			close(release)
			got := <-ended
			// One break is the agent's: reconnected, Codex sends the answers that it kept in a form of its own.
			d.condensed(t, got, before+g.epochs(t)+1)
		})
	}
}

// TestSubAgents has Claude Code start two sub-agents at once, which share its session. Each runs the scenario.
func TestSubAgents(t *testing.T) {
	t.Parallel()
	o := scenario()
	o.SubAgents = o.Script
	delegate := func(part string) upstream.Call {
		return upstream.Call{Tool: "Agent", Input: map[string]any{
			"description": part, "prompt": "Run the commands of the checklist, " + part + ".", "subagent_type": "general-purpose", "run_in_background": false,
		}}
	}
	o.Script = []upstream.Step{{Calls: []upstream.Call{delegate("part one"), delegate("part two")}}, {Text: "Both parts are done."}}
	d := newDesk(t, o)
	a := all[0]
	d.at(t, &a, "")
	got := d.wrap(t, a.env, append(append([]string{a.name}, a.args...), task)...)
	d.condensed(t, got, got.epochs(t))
	done := 0
	for _, n := range d.vendor.Played() {
		if n > calls {
			done++
		}
	}
	if done != 2 || len(d.vendor.Played()) != 3 {
		t.Errorf("steps by conversation: %v\n%s", d.vendor.Played(), d.list())
	}
}
