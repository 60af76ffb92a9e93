package remote_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/testkit/modeltest"
)

func TestBaseURL(t *testing.T) {
	for _, tt := range []struct {
		vendor int
		path   string // of the base URL
		want   string // of the request
	}{
		{0, "", "/v1/messages"},
		{0, "/", "/v1/messages"},
		{0, "/v1", "/v1/messages"},
		{0, "/v1/", "/v1/messages"},
		{0, "/v1/messages", "/v1/messages"},
		{0, "/anthropic", "/anthropic/v1/messages"},
		{0, "/a/v1?team=a%20b", "/a/v1/messages?team=a%20b"},
		{1, "/v1", "/v1/chat/completions"},
		{1, "/v1/", "/v1/chat/completions"},
		{1, "", "/chat/completions"},
		{1, "/v1beta/openai/", "/v1beta/openai/chat/completions"},
		{1, "/v1/chat", "/v1/chat/completions"},
		{1, "/v1/chat/completions/", "/v1/chat/completions"},
		{1, "/openai/v1?api-version=preview#part", "/openai/v1/chat/completions?api-version=preview"},
	} {
		v := vendors[tt.vendor]
		s := modeltest.Serve(t, modeltest.Stream(v.says("Said.")...))
		if _, e := ask(t.Context(), t, open(t, v, options(s.URL+tt.path))); e != nil {
			t.Fatal(e)
		}
		if got := s.Requests()[0].Path; got != tt.want {
			t.Errorf("%s at %q: got a request to %s, want %s", v.name, tt.path, got, tt.want)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*remote.Options)
		want   []string
	}{
		{"no id", func(o *remote.Options) { o.ID = "" }, []string{"model cheap: the id"}},
		{"nothing", func(o *remote.Options) { *o = remote.Options{} }, []string{"model without a name: the id"}},
		{"two keys", func(o *remote.Options) { o.KeyEnv, o.KeyFile = "A", "b" }, []string{"environment variable A", "file b"}},
		{"several", func(o *remote.Options) { o.ID, o.Window, o.Silence = "", -1, -time.Second }, []string{"the id", "window -1", "not negative"}},
		{"no host", func(o *remote.Options) { o.BaseURL = "localhost:11434" }, []string{"base URL", "https://"}},
		{"a file", func(o *remote.Options) { o.BaseURL = "file:///etc/passwd" }, []string{"base URL"}},
		{"a user", func(o *remote.Options) { o.BaseURL = "https://me:hunter2@example.com" }, []string{"user or a password"}},
		{"not a URL", func(o *remote.Options) { o.BaseURL = "https://me:hunter2@exa\x7fmple.com" }, []string{"not a URL"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options("https://example.com")
			tt.change(&o)
			for _, v := range vendors {
				c, err := v.open(o)
				if err == nil {
					t.Fatalf("%s: got %v, want an error", v.name, c)
				}
				for _, want := range tt.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: got %q, want it to say %q", v.name, err, want)
					}
				}
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s: %q shows a password", v.name, err)
				}
			}
		})
	}
}

func TestInfo(t *testing.T) {
	o := options("https://example.com")
	o.Window = 200_000
	for _, v := range vendors {
		i := open(t, v, o).Info()
		if i.Name != "cheap" || i.Window != 200_000 || i.MaxOutput != 8000 || i.Price != price {
			t.Errorf("%s: got %+v", v.name, i)
		}
	}
}

// TestKeyNeverCrossesANetworkInTheClear: with a key, a model at an http address off this
// machine cannot be asked, and nothing is sent; without one, and on this machine, it can.
func TestKeyNeverCrossesANetworkInTheClear(t *testing.T) {
	for base, refused := range map[string]bool{
		"http://gateway.corp:8080/v1": true, "HTTP://10.0.0.1/v1": true, "http://127.0.0.1.nip.io": true, "http://localhost.evil": true, "http://0.0.0.0:1": true,
		"https://gateway.corp/v1": false, "http://localhost:11434/v1": false, "http://127.0.0.1:8000": false, "http://[::1]:8000": false,
	} {
		for _, v := range vendors {
			o, sent := options(base), 0
			o.HTTPClient = &http.Client{Transport: sending(func(*http.Request) (*http.Response, error) {
				sent++
				return nil, errors.New("not here")
			})}
			c := open(t, v, o)
			_, e := ask(t.Context(), t, c)
			if got := c.CheckKey() != nil; got != refused || (sent == 0) != refused {
				t.Errorf("%s at %s: %v, %v, %d requests; want it to be refused: %t", v.name, base, c.CheckKey(), e, sent, refused)
			}
			if refused && (!errors.Is(e, core.ErrUnavailable) || !strings.Contains(e.Error(), "unencrypted")) {
				t.Errorf("%s at %s: %v", v.name, base, e)
			}
			o.KeyEnv = ""
			if c := open(t, v, o); c.CheckKey() != nil {
				t.Errorf("%s at %s without a key: %v", v.name, base, c.CheckKey())
			}
		}
	}
}

type sending func(*http.Request) (*http.Response, error)

func (r sending) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// An incomplete vendor is an error, not a panic when it is asked.
func TestVendorIncomplete(t *testing.T) {
	if c, err := remote.New(&remote.Vendor{BaseURL: "https://example.com"}, remote.Options{ID: "m"}); err == nil {
		t.Errorf("got %v, want an error", c)
	}
}
