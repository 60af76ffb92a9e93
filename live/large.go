package live

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/secret"
)

// knownBody is how many times [Bounds.MaxBody] a body may have that continues a known conversation. Such a conversation
// only lives because it is condensed: unread, its next request would be refused.
const knownBody = 8

// isNew reports whether a request continues no known conversation.
func (r *request) isNew(in *session.Session) bool {
	c, err := in.Find(r.parsed, r.rolling)
	return err != nil || c.Kind == lineage.New
}

// warnOfSize logs once for each conversation that its requests come near [Bounds.MaxBody].
func (r *request) warnOfSize(ctx context.Context) {
	const near = 0.75
	if size, most := len(r.in.received), r.s.Bounds.MaxBody; float64(size) >= near*float64(most) && r.lease.First("max_body") {
		r.s.Reports.Logger.WarnContext(ctx, "the requests of a conversation come near serve.max_body, above which they are read only while this gateway "+
			"knows the conversation: raise it", "bytes", size, "max_body", most, "read_at_most", knownBody*most, "agent", r.from.agent.Name, "model", r.parsed.Model)
	}
}

// sayUnread replaces the vendor's refusal of a request that was too large to be read by one that names the setting. It
// quotes the vendor, because agents look for its words.
func (e *exchange) sayUnread(res *http.Response) {
	r := e.req
	if !r.in.unread || !refusal(res.StatusCode) {
		return
	}
	text, err := refusalOf(res)
	if err != nil {
		return
	}
	why := remote.Reported(res.StatusCode, text)
	if overflow, err := r.g.host.Overflow(r.turn(), why); err != nil || !overflow && res.StatusCode != http.StatusRequestEntityTooLarge {
		return
	}
	said := secret.Safe(cmp.Or(why.Message, string(text)))
	body := wire.Refusal(r.t.endpoint.Form(), res.StatusCode, fmt.Sprintf("condense: this request has more than %d bytes (serve.max_body), so it "+
		"was not condensed: raise serve.max_body in condense.yaml, or begin a new session. The vendor: %s", r.s.Bounds.MaxBody, said))
	_ = res.Body.Close()
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	for _, name := range []string{"Content-Length", "Content-Encoding"} {
		res.Header.Del(name)
	}
	res.Header.Set("Content-Type", "application/json")
}
