package peers_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/condensehq/condense/internal/testkit/apilint"
)

// A tap is a proxy between a client and a server that records the client's bytes.
type tap struct {
	url string
	wg  sync.WaitGroup

	mu    sync.Mutex
	conns []*bytes.Buffer
}

// A request is what a client has sent.
type request struct {
	path string
	body []byte
}

// listen starts a tap in front of a server. When the test ends, a vendor must accept all recorded
// requests.
func listen(t *testing.T, server string) *tap {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{url: "http://" + l.Addr().String()}
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.pass(client, server) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		p.wg.Wait()
		p.lint(t)
	})
	return p
}

func (p *tap) pass(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	seen := &bytes.Buffer{}
	p.mu.Lock()
	p.conns = append(p.conns, seen)
	p.mu.Unlock()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close() // the server has finished or disconnected
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := client.Read(buf)
		p.mu.Lock()
		seen.Write(buf[:n])
		p.mu.Unlock()
		if _, writeErr := server.Write(buf[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// requests returns what was sent so far, whole requests only.
func (p *tap) requests(t *testing.T) []request {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []request
	for _, c := range p.conns {
		in := bufio.NewReader(bytes.NewReader(c.Bytes()))
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("a request is not HTTP: %v", err)
				}
				break
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				break // it was canceled while it was sent
			}
			all = append(all, request{r.URL.Path, body})
		}
	}
	return all
}

// count returns the number of requests for a model.
func (p *tap) count(t *testing.T, model string) int {
	t.Helper()
	n := 0
	for _, r := range p.requests(t) {
		if bytes.Contains(r.body, []byte(`"model":"`+model+`"`)) {
			n++
		}
	}
	return n
}

func (p *tap) lint(t *testing.T) {
	t.Helper()
	for _, r := range p.requests(t) {
		var faults []apilint.Fault
		switch {
		case strings.HasSuffix(r.path, "/messages"):
			faults = apilint.Anthropic(r.body)
		case strings.HasSuffix(r.path, "/chat/completions"):
			faults = apilint.OpenAI(r.body)
		default:
			t.Errorf("a request to %s, where no vendor has anything", r.path)
		}
		for _, f := range faults {
			t.Errorf("a vendor would refuse the request to %s: %v\n%.2000s", r.path, f, r.body)
		}
	}
}
