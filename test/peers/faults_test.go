package peers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/testkit"
)

// A misbehaviour is what a server does with a connection after it has read a request.
type misbehaviour func(c *net.TCPConn)

const (
	head  = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	begun = "data: {\"type\":\"ping\",\"choices\":[]}\n\n"
)

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func send(c *net.TCPConn, s string) { _, _ = io.WriteString(c, s) }

// stay keeps a connection open until the client closes it.
func stay(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }

// misbehave starts a server that reads one request of each connection and then misbehaves.
func misbehave(t *testing.T, what misbehaviour) (url string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					what(c.(*net.TCPConn))
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		wg.Wait()
	})
	return "http://" + l.Addr().String()
}

// Faults below HTTP, which aimock cannot produce, have the right outcome too.
func TestConnections(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	for _, tt := range []struct {
		name     string
		what     misbehaviour
		kind     remote.Kind
		attempts int
	}{
		{"closed", func(*net.TCPConn) {}, remote.KindCut, 2},
		{"reset", func(c *net.TCPConn) { _ = c.SetLinger(0) }, remote.KindCut, 2},
		{"half closed", func(c *net.TCPConn) { _ = c.CloseWrite(); stay(c) }, remote.KindCut, 2},
		{"half closed within the header", func(c *net.TCPConn) { send(c, head[:30]); _ = c.CloseWrite(); stay(c) }, remote.KindCut, 2},
		{"half closed within the answer", func(c *net.TCPConn) { send(c, head+chunk(begun)); _ = c.CloseWrite(); stay(c) }, remote.KindCut, 2},
		{"reset within the answer", func(c *net.TCPConn) { send(c, head+chunk(begun)); _ = c.SetLinger(0) }, remote.KindCut, 2},
		{"a chunk that is none", func(c *net.TCPConn) { send(c, head+"zz\r\n"); stay(c) }, remote.KindCut, 2},
		{"silent", stay, remote.KindSilent, 2},
		{"silent within the header", func(c *net.TCPConn) { send(c, head[:30]); stay(c) }, remote.KindSilent, 2},
		{"silent behind the header", func(c *net.TCPConn) { send(c, head); stay(c) }, remote.KindSilent, 2},
		{"silent within a chunk", func(c *net.TCPConn) { send(c, head+"fff\r\n"+begun); stay(c) }, remote.KindSilent, 2},
		{"not HTTP", func(c *net.TCPConn) { send(c, "220 mail.example.com ESMTP\r\n"); stay(c) }, remote.KindCut, 2},
		{"a header without end", func(c *net.TCPConn) { send(c, head[:17]+"X: "+strings.Repeat("x", 12<<20)) }, remote.KindCut, 2},
		// Data arrives, but no answer: only the caller's deadline ends the call.
		{"nothing but comments", func(c *net.TCPConn) {
			send(c, head)
			for range 1000 {
				if _, err := io.WriteString(c, chunk(": wait\n\n")); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}, remote.KindStopped, 1},
	} {
		for vendor, open := range vendors {
			t.Run(tt.name+"/"+vendor, func(t *testing.T) {
				t.Parallel()
				silence := 20 * time.Second
				if tt.kind == remote.KindSilent {
					silence = 400 * time.Millisecond
				}
				client, err := open(remote.Options{
					ID: "m", BaseURL: misbehave(t, tt.what), Silence: silence,
					Retry: remote.Retry{Attempts: 2, First: time.Millisecond},
				})
				if err != nil {
					t.Fatal(err)
				}
				deadline := 10 * time.Minute
				if tt.kind == remote.KindStopped {
					deadline = time.Second
				}
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				_, err = client.Generate(ctx, prompt)
				var e *remote.Error
				if !errors.As(err, &e) || e.Kind != tt.kind || e.Attempts != tt.attempts || errors.Is(err, core.ErrUnavailable) {
					t.Errorf("got %v, want kind %q after %d attempts", err, tt.kind, tt.attempts)
				}
			})
		}
	}
}
