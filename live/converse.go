package live

import (
	"io"
	"net/http"
)

// converse forwards a request with a conversation.
func (g *Gateway) converse(w http.ResponseWriter, r *http.Request, s *settings, t *target) {
	b, err := readBody(r, s.MaxBody)
	if err != nil {
		t.refuse(w, http.StatusBadRequest, "condense: the request could not be read: "+reason(err))
		return
	}
	out := r.Clone(r.Context())
	out.Body = readCloser{b.reader(), r.Body}
	g.stats.request()
	s.forward(w, out, t, nil)
}

type readCloser struct {
	io.Reader
	io.Closer
}
