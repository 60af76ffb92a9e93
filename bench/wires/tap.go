//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"
)

// A tap is on both sides of the gateway: it is the server that the client calls and the gateway's upstream. So both have the
// same address, and the client's AWS signature, which covers the host, can hold at the vendor. It marks what a client sends, and
// compares it with what comes back from the gateway.
type tap struct {
	*httptest.Server

	vendor  string
	gateway atomic.Pointer[string]

	mu      sync.Mutex
	sent    map[string][]content // by the mark: one of a request, and of a WebSocket one per frame
	arrived map[string][]content
}

// A content is what must arrive as it was sent.
type content struct {
	body       [sha256.Size]byte
	credential string
}

// mark is the header that tells what a client sent from what the gateway sent.
const mark = "Tap-Number"

func newTap(vendor string) *tap {
	t := &tap{vendor: vendor, sent: map[string][]content{}, arrived: map[string][]content{}}
	t.Server = httptest.NewUnstartedServer(t)
	t.Config.Protocols = new(http.Protocols)
	t.Config.Protocols.SetHTTP1(true)
	t.Config.Protocols.SetUnencryptedHTTP2(true) // AWS's SDK for JavaScript speaks nothing else
	t.Start()
	return t
}

// counts returns how much arrived unchanged, and how much did not.
func (t *tap) counts() (same, changed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n, all := range t.arrived {
		for i, c := range all {
			if sent := t.sent[n]; i < len(sent) && sent[i] == c {
				same++
			} else {
				changed++
			}
		}
	}
	return same, changed
}

// ServeHTTP passes a request of a client to the gateway, and one of the gateway to the vendor.
func (t *tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, number, seen := t.vendor, r.Header.Get(mark), t.arrived
	if number == "" {
		t.mu.Lock()
		number, to, seen = strconv.Itoa(len(t.sent)), *t.gateway.Load(), t.sent
		t.sent[number] = nil
		t.mu.Unlock()
		r.Header.Set(mark, number)
	} else {
		r.Header.Del(mark)
	}
	note := func(body []byte) {
		var credential strings.Builder
		for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Amz-Security-Token"} {
			credential.WriteString(r.Header.Get(name) + "\n")
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		seen[number] = append(seen[number], content{sha256.Sum256(body), credential.String()})
	}
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		passFrames(w, r, to, note)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	note(body)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	(&httputil.ReverseProxy{FlushInterval: -1, Transport: uncompressed, Rewrite: func(p *httputil.ProxyRequest) {
		p.Out.URL.Scheme, p.Out.URL.Host = "http", strings.TrimPrefix(to, "http://") // and the Host as it came
	}}).ServeHTTP(w, r)
}

var uncompressed = &http.Transport{DisableCompression: true}

// passFrames passes the frames of a WebSocket, and gives the client's to note.
func passFrames(w http.ResponseWriter, r *http.Request, to string, note func([]byte)) {
	const most = 64 << 20
	ctx, stop := context.WithCancel(context.WithoutCancel(r.Context()))
	defer stop()
	header := r.Header.Clone()
	for name := range header {
		if strings.HasPrefix(name, "Sec-Websocket-") || slices.Contains([]string{"Connection", "Upgrade"}, name) {
			header.Del(name)
		}
	}
	options := &websocket.DialOptions{HTTPHeader: header, Host: r.Host}
	server, res, err := websocket.Dial(ctx, to+r.URL.RequestURI(), options) //nolint:bodyclose // the library's
	if err != nil {
		status := http.StatusBadGateway
		if res != nil {
			status = res.StatusCode
		}
		w.WriteHeader(status)
		return
	}
	defer server.CloseNow() //nolint:errcheck // it may have ended
	client, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer client.CloseNow() //nolint:errcheck // it may have ended
	client.SetReadLimit(most)
	server.SetReadLimit(most)
	pass := func(from, to *websocket.Conn, note func([]byte)) {
		defer stop()
		for {
			kind, frame, err := from.Read(ctx)
			if err != nil {
				return
			}
			note(frame)
			if to.Write(ctx, kind, frame) != nil {
				return
			}
		}
	}
	var running sync.WaitGroup
	running.Go(func() { pass(server, client, func([]byte) {}) })
	pass(client, server, note)
	running.Wait()
}
