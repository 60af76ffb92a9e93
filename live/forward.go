package live

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"

	"github.com/condensehq/condense/live/internal/audit"
	"github.com/condensehq/condense/live/internal/upstream"
)

// CheckUpstream returns an error if an entry of [Options].Upstreams is invalid.
func CheckUpstream(name, address string) error {
	_, err := upstream.New(name, address)
	return err
}

// forward sends the request on and copies the answer as it arrives. If via is not nil, it sends the request in place
// of the transport.
func (s *settings) forward(w http.ResponseWriter, r *http.Request, t *target, via http.RoundTripper) {
	u := t.upstream
	to, err := u.Address(t.path, &t.endpoint, r.URL.RawQuery)
	if err != nil {
		t.refuse(w, http.StatusBadRequest, "condense: the path of the request is invalid")
		return
	}
	if via == nil {
		via = u
	}
	// A vendor may answer before it has read the whole request: keep sending the rest. HTTP/2 always does.
	_ = http.NewResponseController(w).EnableFullDuplex()
	again := r.GetBody
	r.GetBody = nil // ReverseProxy keeps r until the end of the answer
	p := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = to
			p.Out.Host = ""
			p.Out.GetBody, again = again, nil
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v := p.In.Header[name]; v != nil { // ReverseProxy removes these headers; they must pass
					p.Out.Header[name] = v
				}
			}
			for name := range p.Out.Header {
				if strings.HasPrefix(name, "X-Condense-") {
					p.Out.Header.Del(name) // addressed to the gateway
				}
			}
		},
		Transport:     via,
		FlushInterval: -1, // flush at once
		BufferPool:    buffers,
		ErrorLog:      slog.NewLogLogger(s.Reports.Logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil { // the client has gone
				panic(http.ErrAbortHandler)
			}
			if o, ok := w.(*audit.Outcome); ok {
				o.Unsent = upstream.Reason(err)
			}
			if errors.Is(err, upstream.ErrUnsigned) { // sent again, it would fail again
				t.refuse(w, http.StatusForbidden, "condense: upstream "+u.Name+" was not asked: "+upstream.Reason(err))
				return
			}
			t.refuse(w, http.StatusBadGateway, "condense: upstream "+u.Name+" cannot be reached: "+upstream.Reason(err))
		},
	}
	p.ServeHTTP(w, r)
}

// buffers are used to copy answers.
var buffers = new(bufferPool)

type bufferPool struct{ pool sync.Pool }

// Get returns a buffer.
func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	const size = 8 << 10 // every open stream holds one; events are smaller
	return make([]byte, size)
}

// Put takes a buffer back.
func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
