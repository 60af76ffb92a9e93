package live_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/live"
)

// loop is a request with the history of an agent's loop, of about so many bytes. Each is another conversation.
func loop(n, size int) []byte {
	var b bytes.Buffer
	b.Grow(size + size/8)
	fmt.Fprintf(&b, `{"model":"claude-opus-5-5","max_tokens":8192,"system":"You are an agent.","tools":[{"name":"Bash","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Task %d."}`, n)
	result := strings.Repeat("a line of a log that says little\\n", 200)
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":"seq %d"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"%d %s"}]}`, i, i, i, i, result)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// A body of the largest size that vendors accept passes, and all that is ever allocated for it is less than
// four times its size.
func TestMemoryOfALargeBody(t *testing.T) {
	testkit.Slow(t)
	const size = 31 << 20
	v := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, `{"type":"message","content":[],"usage":{"input_tokens":%d,"output_tokens":1}}`, n/4)
	}))
	defer v.Close()
	const tokens = 100_000_000
	g, s := serveWith(t, v.URL, withWindow(tokens), func(o *live.Options) { o.Epoch.MinSize = tokens })
	body := loop(1, size)
	send(t, http.MethodPost, s.URL+"/v1/messages", nil, loop(0, 1000)) // what is needed once
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res, _ := send(t, http.MethodPost, s.URL+"/v1/messages", nil, body)
	runtime.ReadMemStats(&after)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("got %s, %+v", res.Status, g.Stats())
	}
	testkit.Eventually(t, "the answer is counted", func() bool { return g.Stats().Tokens.Sent >= size/4 })
	used := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(body))
	t.Logf("%.2f times the body was allocated", used)
	if used > 4 {
		t.Errorf("%.1f times the body was allocated", used)
	}
}

// While 200 answers are under way, their requests are not held.
func TestMemoryOfManyStreams(t *testing.T) {
	testkit.Slow(t)
	const streams, size, most = 200, 800_000, 200 << 20
	begun, end := make(chan struct{}, streams), make(chan struct{})
	v := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":200000}}}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-end
		_, _ = io.WriteString(w, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	}))
	defer v.Close()
	const tokens = 1_000_000
	g, s := serveWith(t, v.URL, withWindow(tokens), func(o *live.Options) { o.Upstreams.URLs["anthropic"], o.Epoch.MinSize = v.URL, tokens })
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := heap()
	var all sync.WaitGroup
	for i := range streams {
		all.Go(func() {
			// A MultiReader has no GetBody, which would hold the request here.
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/messages", io.MultiReader(bytes.NewReader(loop(i, size))))
			if err != nil {
				t.Error(err)
				return
			}
			res, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			r.Body = nil
			_, err = io.ReadFull(res.Body, make([]byte, 10))
			begun <- struct{}{}
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
			}
			_ = res.Body.Close()
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range streams {
		<-begun
	}
	used := heap() - before
	t.Logf("%d streams hold %d MB, of requests with %d MB", streams, used>>20, streams*size>>20)
	if used > most {
		t.Errorf("%d streams hold %d MB", streams, used>>20)
	}
	close(end)
	all.Wait()
	if n := g.Stats().Requests; n != streams {
		t.Errorf("%d requests", n)
	}
}
