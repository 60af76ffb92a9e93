package live

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/library"
	"github.com/condensehq/condense/internal/live/payload"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/recall"
)

// retrievePath returns condensed content, by handle.
const retrievePath = "/v1/retrieve"

// headroomPaths are the paths of headroom's proxy. The gateway answers them itself: no vendor has them.
var headroomPaths = map[string]handler{
	"/v1/compress": (*Gateway).serveCompress,
	"/v1/usage":    (*Gateway).serveUsage,
	retrievePath:   (*Gateway).serveRetrieve,
	"/health":      (*Gateway).serveHealth,
	"/livez":       (*Gateway).serveHealth,
	"/readyz": func(g *Gateway, w http.ResponseWriter, r *http.Request, _ *settings, _ *target) {
		g.pages.ServeReady(w, r)
	},
	"/stats": (*Gateway).serveSums,
}

// serveHealth answers that the process is alive.
func (g *Gateway) serveHealth(w http.ResponseWriter, _ *http.Request, _ *settings, _ *target) {
	payload.WriteJSON(w, []byte(`{"status":"healthy","service":"condense"}`))
}

// serveSums answers with totals of the statistics, but only on a gateway without tenants.
func (g *Gateway) serveSums(w http.ResponseWriter, _ *http.Request, s *settings, _ *target) {
	if s.door.Tokens != nil {
		const text = "statistics are for those who run the gateway, at its admin address (serve.admin.listen): /condense/status"
		compressFault(w, http.StatusNotFound, "not_found", text)
		return
	}
	all := g.Stats()
	text, err := json.Marshal(map[string]any{
		"requests":     map[string]int{"total": all.Requests, "passed": all.Passed},
		"tokens":       map[string]int{"received": all.Tokens.Received, "sent": all.Tokens.Sent, "saved": all.Tokens.Saved},
		"compressions": all.EpochCount,
	})
	if err != nil { // cannot happen: it holds numbers only
		text = []byte("{}")
	}
	payload.WriteJSON(w, text)
}

// serveRetrieve answers with the content behind a handle, for callers that carry the recall secret issued with it.
func (g *Gateway) serveRetrieve(w http.ResponseWriter, r *http.Request, s *settings, t *target) {
	name := strings.Trim(strings.TrimPrefix(t.path, retrievePath), "/")
	query := r.URL.Query().Get("query")
	if name == "" {
		body, leave := g.jsonBody(w, r, s, t) //nolint:contextcheck // uses the context of the request
		defer leave()
		if body == nil {
			return
		}
		name, query = rawjson.Text(rawjson.Field(body, "hash")), rawjson.Text(rawjson.Field(body, "query"))
	}
	missing := func(text string) { compressFault(w, http.StatusNotFound, "not_found", text) }
	reader, session := g.secrets.readerOf(&s.Recall, t), r.Header.Get(agents.SessionHeader)
	ref, ok := recall.ParseRef(name)
	switch {
	case !ok:
		missing("the hash is no handle of this gateway: these have ten digits of 0-9 and a-f")
		return
	case s.Recall.Off || s.Recall.NoMCP:
		missing("recall is off")
		return
	case reader == "":
		missing("recall needs the secret that the agent's requests carry: in the path, /recall/SECRET" + retrievePath +
			"/HASH, or in the header X-Condense-Recall")
		return
	case query != "":
		const text = "query is not supported: leave it out to get the whole, or use the tool recall at /mcp, which takes lines and patterns"
		compressFault(w, http.StatusBadRequest, invalidRequest, text)
		return
	case !store.ValidID(session):
		compressFault(w, http.StatusBadRequest, invalidRequest, "the session is no ID")
		return
	}
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-r.Context().Done():
		return
	}
	st, err := g.library.Memory(r.Context(), reader, session)
	var pieces []recall.Piece
	if err == nil {
		pieces, err = st.Find(r.Context(), ref)
	}
	switch {
	case errors.Is(err, library.ErrNothing), err == nil && len(pieces) == 0:
		missing("nothing that this caller can recall has the handle")
		return
	case err != nil:
		g.fault("recall", err)
		compressFault(w, http.StatusServiceUnavailable, "unavailable", "what was kept cannot be read now")
		return
	}
	texts := make([]string, len(pieces))
	for i, p := range pieces {
		texts[i] = p.Text()
	}
	text := strings.Join(texts, "\n")
	st.Recalled(pieces, len(text))
	answer, err := json.Marshal(map[string]any{
		"hash": name, "original_content": text, "original_tokens": count.Tokens([]byte(text)), "original_item_count": len(pieces),
		"compressed_item_count": 0, "tool_name": nil, "retrieval_count": 1,
	})
	if err != nil { // cannot happen: it holds texts and numbers only
		answer = []byte("{}")
	}
	payload.WriteJSON(w, answer)
}
