package servecmd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/live"
)

// written is what a logger wrote, by lines.
type written chan string

func (l written) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// A vendor that sends more than it has announced does not get the model's words into the log.
func TestWordsOfAModelAreNotLogged(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	received := make(chan struct{})
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		<-received
		fmt.Fprint(c, `MODEL-TEXT "MODEL-TEXT"`)
	}()
	logged := make(written, 100)
	all := slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	logStandard(all)
	t.Cleanup(func() {
		log.SetFlags(log.LstdFlags)
		log.SetOutput(os.Stderr)
	})
	h, err := condense.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	g, err := live.New(h, &live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"openai": "http://" + l.Addr().String()}}, Reports: live.Reports{Logger: all}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/v1/models", http.NoBody)
	r.RemoteAddr = "127.0.0.1:1"
	g.ServeHTTP(httptest.NewRecorder(), r)
	close(received)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		select {
		case line := <-logged:
			if strings.Contains(line, "MODEL-TEXT") {
				t.Errorf("logged: %s", line)
			}
			if strings.Contains(line, "Unsolicited response") {
				return
			}
		case <-ctx.Done():
			t.Fatal("what was too much was not noticed")
		}
	}
}
