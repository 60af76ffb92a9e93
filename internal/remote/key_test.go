package remote_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/testkit/modeltest"
)

// sent returns the key that a request carries.
func sent(r modeltest.Request) string {
	if k := r.Header.Get("x-api-key"); k != "" {
		return k
	}
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func TestKeyFile(t *testing.T) {
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			s := modeltest.Serve(t, modeltest.Stream(v.says("Said.")...))
			o := options(s.URL)
			o.KeyEnv, o.KeyFile = "", filepath.Join(t.TempDir(), "key")
			c := open(t, v, o)
			if _, e := ask(t.Context(), t, c); kindOf(e) != remote.KindDenied || !errors.Is(e, core.ErrUnavailable) || !strings.Contains(e.Error(), o.KeyFile) {
				t.Errorf("without the file: got %v, want one that names it", e)
			}
			for _, k := range []string{"first-key", "second-key"} { // a new one holds at once
				if err := os.WriteFile(o.KeyFile, []byte(" "+k+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, e := ask(t.Context(), t, c); e != nil {
					t.Fatal(e)
				}
				if err := c.CheckKey(); err != nil {
					t.Errorf("check: %v", err)
				}
				all := s.Requests()
				if got := sent(all[len(all)-1]); got != k {
					t.Errorf("got the key %q, want %q", got, k)
				}
			}
			for name, text := range map[string]string{"empty": " \n", "two lines": "a\nb", "not a key": "schlüssel", "large": strings.Repeat("x", 1<<20)} {
				if err := os.WriteFile(o.KeyFile, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, e := ask(t.Context(), t, c); kindOf(e) != remote.KindDenied || e.Attempts != 0 {
					t.Errorf("%s: got %v, want nobody asked", name, e)
				}
				if err := c.CheckKey(); err == nil || !strings.Contains(err.Error(), o.KeyFile) || strings.Contains(err.Error(), text) {
					t.Errorf("%s: check: got %v, want one that names the file and quotes nothing", name, err)
				}
			}
			if n := len(s.Requests()); n != 2 {
				t.Errorf("got %d requests, want 2", n)
			}
		})
	}
}

func TestKeyMissing(t *testing.T) {
	usual := map[string]string{"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			t.Setenv(usual[v.name], "")
			c := open(t, v, remote.Options{ID: "model-1"})
			if _, e := ask(t.Context(), t, c); kindOf(e) != remote.KindDenied || !errors.Is(e, core.ErrUnavailable) || !strings.Contains(e.Error(), usual[v.name]) {
				t.Errorf("got %v, want one that names %s", e, usual[v.name])
			}
			if err := c.CheckKey(); err == nil || !strings.Contains(err.Error(), usual[v.name]) {
				t.Errorf("check: got %v, want one that names %s", err, usual[v.name])
			}
		})
		t.Run(v.name+"/local", func(t *testing.T) {
			t.Setenv(usual[v.name], key)
			s := modeltest.Serve(t, modeltest.Stream(v.says("Said.")...))
			c := open(t, v, remote.Options{ID: "model-1", BaseURL: s.URL})
			if _, e := ask(t.Context(), t, c); e != nil {
				t.Fatal(e)
			}
			if err := c.CheckKey(); err != nil {
				t.Errorf("check: %v", err)
			}
			if got := sent(s.Requests()[0]); got != "" {
				t.Errorf("got the vendor's key %q at somebody else's server", got)
			}
		})
	}
}

// Wherever the key might show, it does not.
func TestKeyIsSecret(t *testing.T) {
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			var log bytes.Buffer
			basic := base64.StdEncoding.EncodeToString([]byte("Bearer " + key))
			quote := modeltest.Answer(401, fmt.Sprintf(`{"error":{"code":"bad %[1]s","message":"Incorrect API key provided: %[1]s, or sk-ab***********yz; known are sk-other-0123456789abcdef"}}`, key))
			for _, script := range []http.HandlerFunc{quote, modeltest.Answer(500, "<pre>"+key+"</pre>"), modeltest.Answer(401, `{"error":{"message":"the header was `+basic+`"},"request_id":"r\n  forged `+key+`"}`), modeltest.Cut()} {
				s := modeltest.Serve(t, script)
				o := options(s.URL)
				o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				c := open(t, v, o)
				_, e := ask(t.Context(), t, c)
				if e == nil {
					t.Fatal("got no error")
				}
				for _, text := range []string{
					e.Error(), fmt.Sprintf("%+v %#v", e, *e), fmt.Sprintf("%v %+v %#v %s", c, c, c, c), fmt.Sprint(c.Info()), log.String(),
				} {
					for _, secret := range []string{key, "sk-ab***", "sk-other", basic[12:30], "\n  forged"} {
						if strings.Contains(text, secret) {
							t.Errorf("%q shows %s", text, secret)
						}
					}
				}
			}
			if !strings.Contains(log.String(), "cheap") {
				t.Errorf("the log does not name the model:\n%s", log.String())
			}
		})
	}
}

// A redirect would carry key and conversation to somebody else.
func TestRedirect(t *testing.T) {
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			other := modeltest.Serve(t, modeltest.Stream(v.says("Said.")...))
			for _, status := range []int{301, 302, 307, 308} {
				s := modeltest.Serve(t, modeltest.Answer(status, "", "Location", other.URL+"/v1/messages?key=hunter2"))
				_, e := ask(t.Context(), t, open(t, v, options(s.URL)))
				if kindOf(e) != remote.KindDenied || !strings.Contains(e.Error(), other.URL) || strings.Contains(e.Error(), "hunter2") {
					t.Errorf("%d: got %v, want one that says where to, without the query", status, e)
				}
			}
			if n := len(other.Requests()); n != 0 {
				t.Errorf("got %d requests where it was redirected to, want none", n)
			}
		})
	}
}
