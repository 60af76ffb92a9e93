package remote_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/remote/openai"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/modeltest"
)

func TestUnreachable(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, v := range vendors {
		for name, base := range map[string]string{"refused": closed, "no such host": "https://nowhere.invalid"} {
			t.Run(v.name+"/"+name, func(t *testing.T) {
				t.Setenv("NO_PROXY", "*")
				ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience(t))
				defer cancel()
				_, e := ask(ctx, t, open(t, v, options(base)))
				if kindOf(e) != remote.KindUnreachable || !errors.Is(e, core.ErrUnavailable) {
					t.Fatalf("got %v, want unreachable", e)
				}
				if e.Attempts != 3 {
					t.Errorf("got %d attempts, want 3: a server may be starting", e.Attempts)
				}
			})
		}
	}
}

func TestUntrusted(t *testing.T) {
	v := vendors[0]
	s := modeltest.ServeTLS(t, modeltest.Stream(v.says("Said.")...))
	_, e := ask(t.Context(), t, open(t, v, options(s.URL)))
	if kindOf(e) != remote.KindUntrusted || !errors.Is(e, core.ErrUnavailable) || e.Attempts != 1 || !strings.Contains(e.Error(), "SSL_CERT_FILE") {
		t.Errorf("got %v, want one that says how to trust it", e)
	}
	o := options(s.URL)
	o.HTTPClient = s.Client()
	if _, e := ask(t.Context(), t, open(t, v, o)); e != nil {
		t.Errorf("with a client that trusts it: got %v", e)
	}
}

// askOnce asks a model at base with what the environment says, and nothing else.
func askOnce(base string) int {
	c, err := openai.New(remote.Options{ID: "model-1", BaseURL: base, Retry: remote.Retry{Attempts: 1}})
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		answer, askErr := c.Generate(ctx, prompt)
		if err = askErr; err == nil {
			fmt.Fprint(os.Stdout, answer.Text)
			return 0
		}
	}
	if e, ok := errors.AsType[*remote.Error](err); ok {
		fmt.Fprint(os.Stdout, e.Kind, ": ")
	}
	fmt.Fprint(os.Stdout, err)
	return 1
}

// A program behind a proxy that inspects TLS needs two variables and no setting of ours.
func TestProxyAndAuthority(t *testing.T) {
	testkit.Process(t)
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("SSL_CERT_FILE is not read here; the authorities are those of the system")
	}
	v := vendors[1]
	s := modeltest.ServeTLS(t, modeltest.Stream(v.says("Said through a proxy.")...))
	authority := filepath.Join(t.TempDir(), "authority.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(authority, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var tunnels atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "example.com:443" {
			http.Error(w, "not through me", http.StatusBadGateway)
			return
		}
		tunnels.Add(1)
		tunnel(r.Context(), w, s.Listener.Addr().String())
	}))
	defer proxy.Close()

	for _, tt := range []struct {
		name string
		base string
		env  []string
		want string
		code int
	}{
		{"proxy and authority", "https://example.com/v1", []string{"HTTPS_PROXY=" + proxy.URL, "SSL_CERT_FILE=" + authority}, "Said through a proxy.", 0},
		{"no authority", "https://example.com/v1", []string{"HTTPS_PROXY=" + proxy.URL}, "certificate", 1},
		{"a proxy that refuses", "https://elsewhere.example/v1", []string{"HTTPS_PROXY=" + proxy.URL}, "unreachable: Bad Gateway", 1},
		{"nobody where the proxy should be", "https://elsewhere.example/v1", []string{"HTTPS_PROXY=http://me:hunter2@127.0.0.1:9"}, "unreachable: proxyconnect", 1},
		{"not for this host", "https://api.invalid/v1", []string{"HTTPS_PROXY=" + proxy.URL, "NO_PROXY=.invalid"}, "api.invalid", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := tunnels.Load()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(tt.env, "REMOTE_TEST_BASE_URL="+tt.base)
			out, err := cmd.Output()
			if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(string(out), tt.want) {
				t.Errorf("got exit code %d (%v), %q; want %d, %q", code, err, out, tt.code, tt.want)
			}
			if through := tt.base == "https://example.com/v1"; through != (tunnels.Load() > before) {
				t.Errorf("got %d tunnels through the proxy", tunnels.Load()-before)
			}
			if strings.Contains(string(out), "hunter2") {
				t.Errorf("%q shows a password", out)
			}
		})
	}
}

// tunnel connects a client to a server, whatever they say to each other.
func tunnel(ctx context.Context, w http.ResponseWriter, to string) {
	server, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = server.Close() }()
	client, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	fmt.Fprint(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, buffered)
		_ = server.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(client, server)
	_ = client.Close()
	<-done
}

// A connection serves one request after the other, and a server that does not end its
// stream is not waited for.
func TestConnectionIsKept(t *testing.T) {
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			s := modeltest.Serve(t, modeltest.Stream(v.says("Said.")...))
			c := open(t, v, options(s.URL))
			for range 3 {
				if _, e := ask(t.Context(), t, c); e != nil {
					t.Fatal(e)
				}
			}
			from := map[string]bool{}
			for _, r := range s.Requests() {
				from[r.From] = true
			}
			if len(from) != 1 {
				t.Errorf("got %d connections, want 1", len(from))
			}
			s = modeltest.Serve(t, modeltest.Hang(v.says("Said.")...))
			if _, e := ask(t.Context(), t, open(t, v, options(s.URL))); e != nil { // or never, as the stream does not end
				t.Fatal(e)
			}
		})
	}
}
