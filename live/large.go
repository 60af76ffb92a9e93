package live

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/payload"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/remote"
)

// knownBody is how many times [Bounds.MaxBody] a body may have that continues a known conversation. Such a conversation
// only lives because it is condensed: unread, its next request would be refused.
const knownBody = 8

// isNew reports whether a request continues no known conversation.
func (x *known) isNew(in *session.Session) bool {
	c, err := in.Find(x.r, x.rolling)
	return err != nil || c.Kind == lineage.New
}

// warnOfSize logs once for each conversation that its requests come near [Bounds.MaxBody].
func (x *known) warnOfSize(ctx context.Context) {
	const near = 0.75
	if size, most := len(x.received), x.s.Bounds.MaxBody; float64(size) >= near*float64(most) && x.claim.First("max_body") {
		x.s.Reports.Logger.WarnContext(ctx, "the requests of a conversation come near serve.max_body, above which they are read only while this gateway "+
			"knows the conversation: raise it", "bytes", size, "max_body", most, "read_at_most", knownBody*most, "agent", x.agent.Name, "model", x.r.Model)
	}
}

// sayUnread replaces the vendor's refusal of a request that was too large to be read by one that names the setting. It
// quotes the vendor, because agents look for its words.
func (x *sending) sayUnread(res *http.Response) {
	if !x.unread || !refusal(res.StatusCode) {
		return
	}
	head, err := io.ReadAll(io.LimitReader(res.Body, mostRefusal))
	res.Body = payload.ReadCloser{Reader: io.MultiReader(bytes.NewReader(head), res.Body), Closer: res.Body}
	text, failed := payload.Decode(head, res.Header.Get("Content-Encoding"), mostRefusal)
	if err != nil || failed != nil {
		return
	}
	why := remote.Reported(res.StatusCode, text)
	if overflow, err := x.host.Overflow(x.turn(), why); err != nil || !overflow && res.StatusCode != http.StatusRequestEntityTooLarge {
		return
	}
	said := stats.Shown(cmp.Or(why.Message, string(text)))
	body := wire.Refusal(x.t.endpoint.Form(), res.StatusCode, fmt.Sprintf("condense: this request has more than %d bytes (serve.max_body), so it "+
		"was not condensed: raise serve.max_body in condense.yaml, or begin a new session. The vendor: %s", x.s.Bounds.MaxBody, said))
	_ = res.Body.Close()
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	for _, name := range []string{"Content-Length", "Content-Encoding"} {
		res.Header.Del(name)
	}
	res.Header.Set("Content-Type", "application/json")
}
