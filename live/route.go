package live

import (
	"cmp"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/live/internal/audit"
	"github.com/condensehq/condense/live/internal/upstream"
)

// A target is the destination of a request, and the kind of request.
type target struct {
	upstream  *upstream.Upstream // nil if the request goes to no upstream
	endpoint  wire.Endpoint      // known from the path
	rejection *rejection         // not nil if the request must not be forwarded
	path      string             // escaped, without the parts addressed to the gateway
	api       string             // the form of the request, as a [wire.API]; empty if the gateway reads no conversation in it
	count     bool               // asks only for the number of tokens
	compact   bool               // asks for a compaction
	own       bool               // is for a page of the gateway itself
	mcp       bool
	// Asks for condensed messages that the caller sends itself, or reports the vendor's usage of such messages.
	compress  bool
	token     string
	bearer    bool // token came in the Authorization header
	handshake bool // it opens a WebSocket
	who       tenant.Caller
	changed   bool                 // the gateway has changed the request
	unheard   func(*http.Response) // notes the ID of an answer whose history is not known; nil for other APIs
	recall    string               // the secret that permits recall

	profile, mode string // as named by the request
}

// A rejection is why a request is forwarded to no upstream.
type rejection struct {
	why    string // for the record: path, method or credential
	what   string // kind of request, in the gateway's words
	status int
	text   string
	allow  []string // permitted methods
}

// reject answers a request that is not forwarded. Each kind is logged once.
func (g *Gateway) reject(w *audit.Outcome, r *http.Request, s *settings, t *target) {
	n := t.rejection
	w.Refused = n.why
	if _, said := g.rejections.LoadOrStore([2]string{n.why, n.what}, nil); !said {
		s.Reports.Logger.WarnContext(r.Context(), "a request was not forwarded: it belongs to no upstream, and the agent was given the reason",
			"why", n.why, "what", n.what)
	}
	n.answer(w, t)
}

// answer writes the refusal in the form of the client's API.
func (n *rejection) answer(w http.ResponseWriter, t *target) {
	if n.allow != nil {
		w.Header().Set("Allow", strings.Join(n.allow, ", "))
	}
	text := "condense: " + n.text
	if n.status != http.StatusNotFound {
		t.refuse(w, n.status, text)
		return
	}
	refuseWith(w, t.endpoint.Form(), n.status, t.endpoint.NotFound(text))
}

// route parses the path of a request: parts addressed to the gateway, then the path for the upstream.
func (s *settings) route(r *http.Request) target {
	h := r.Header
	t := target{
		path: r.URL.EscapedPath(), token: h.Get("X-Condense-Token"),
		profile: h.Get("X-Condense-Profile"), mode: h.Get("X-Condense-Mode"), recall: h.Get("X-Condense-Recall"),
	}
	named := ""
	for {
		first, rest, more := strings.Cut(strings.TrimPrefix(t.path, "/"), "/")
		// Returns rest with the slash before it, without copying.
		from := func(rest string) string { return t.path[len(t.path)-len(rest)-1:] }
		value, after, deeper := strings.Cut(rest, "/")
		switch {
		case s.upstreams[first] != nil && more:
			named, t.path = first, from(rest)
		case strings.HasPrefix(t.path, upstream.CodexPath+"/"): // Codex with the login of a ChatGPT plan
			named, t.path = upstream.ChatGPT, t.path[len(upstream.CodexPath):]
		case first == "token" && deeper:
			t.token, t.path = value, from(after)
			continue
		case first == "recall" && deeper:
			t.recall, t.path = value, from(after)
			continue
		case first == "mode" && deeper && upstream.NameRule().MatchString(value):
			t.mode, t.path = value, from(after)
			continue
		case first == "profile" && deeper && upstream.NameRule().MatchString(value):
			t.profile, t.path = value, from(after)
			continue
		case s.answers(&t, h):
			return t
		}
		break
	}
	s.direct(&t, r, named)
	return t
}

// answers reports whether the gateway itself answers a request, and records in t which page or function it is for.
func (s *settings) answers(t *target, h http.Header) bool {
	bearer, isBearer := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	switch first, _, _ := strings.Cut(strings.TrimPrefix(t.path, "/"), "/"); {
	case first == "condense":
		t.own = true
		return true
	case t.path == "/mcp":
		if t.mcp = true; isBearer && t.recall == "" {
			t.recall = bearer // some agents can send no other header
		}
		return true
	}
	if t.compress = t.path == "/v1/compress"; !t.compress {
		return false
	}
	if isBearer && t.token == "" && !s.door.Open() {
		t.token, t.bearer = bearer, true // callers of this API can send no other header
	}
	return true
}

// direct chooses the upstream of a request, or records in t that none fits. named is the upstream that the request
// names; empty if it names none.
func (s *settings) direct(t *target, r *http.Request, named string) {
	clean, odd := normalizePath(t.path)
	t.endpoint = wire.Locate(clean)
	e, who := &t.endpoint, wire.Credentials(r.Header, r.URL.RawQuery)
	t.api, t.count, t.compact = string(e.API), e.Count, e.Compact
	if odd {
		t.rejection = &rejection{why: "path", what: "with . or ..", status: http.StatusBadRequest, text: "a path with . or .. as a part is not forwarded"}
		return
	}
	name := cmp.Or(named, owner(e, who, r.Header))
	u := s.upstreams[name]
	if u != nil && name == "openai" && r.Header.Get("Chatgpt-Account-Id") != "" && u.Base.String() == upstream.Vendors[name] {
		u = s.upstreams[upstream.ChatGPT]
	}
	if u != nil && u.Signs(r.Header) {
		if err := u.Unsignable(r.Method, t.path, r.URL.RawQuery); err != nil {
			t.rejection = &rejection{why: "path", what: "of the machine's account, for " + u.Name, status: http.StatusForbidden, text: err.Error()}
			return
		}
	}
	if t.rejection = rejectWrongVendor(t, u, r); t.rejection != nil || u == nil {
		return
	}
	t.upstream = u
	if s.Upstreams.Forbids != nil {
		to, err := u.Address(t.path, e, "")
		if err != nil {
			to = u.Base
		}
		if why := s.Upstreams.Forbids(to.String()); why != "" {
			t.rejection = &rejection{why: "policy", what: u.Name, status: http.StatusForbidden, text: why}
			return
		}
	}
	for _, c := range who {
		if u.Refuses(c) {
			t.rejection = &rejection{
				why: "credential", what: c.Name + ", for " + u.Name, status: http.StatusBadRequest,
				text: "the request carries " + c.Name + ", which is for " + string(c.Of) + ", and the upstream " + u.Name + " is " + u.Base.Host +
					", so nothing was sent. Give the agent a key for this upstream, or the gateway the upstream that the key is for: --upstream NAME=URL",
			}
		}
	}
	headers, parameter := u.Host.Strange(r.Header, r.URL.RawQuery)
	for _, name := range headers {
		r.Header.Del(name)
	}
	if parameter != "" {
		t.rejection = &rejection{
			why: "credential", what: "a parameter that " + string(u.Host.Of) + " does not take", status: http.StatusBadRequest,
			text: "the request carries the parameter " + plain.Clip(parameter) + ", which looks like a key and which " + u.Base.Host +
				" does not take, so nothing was sent. Send keys in the header of their vendor",
		}
	}
	signed := wire.SignedBy(r.Header, r.URL.RawQuery) != "" && u.Sign == nil
	if signed && u.Speaks == upstream.SpeaksBedrock && r.Host != u.Base.Host {
		t.rejection = &rejection{
			why: "credential", what: "a signature for another host, for " + u.Name, status: http.StatusBadRequest,
			text: "the request is signed for this gateway, and " + u.Base.Host + " accepts only signatures for itself, so nothing was sent. " +
				"Let the gateway sign with the AWS credentials of its machine (serve.bedrock.sign: true), or give the agent a key of " +
				"Bedrock (AWS_BEARER_TOKEN_BEDROCK)",
		}
	}
	if u.Speaks == upstream.SpeaksPass || signed { // the signature covers the body
		t.api, t.count, t.compact = "", false, false
	}
}

// rejectWrongVendor checks the path of a request against its upstream u, which may be nil. It returns nil if the request may
// be forwarded, else the reason why not.
func rejectWrongVendor(t *target, u *upstream.Upstream, r *http.Request) *rejection {
	e, shown := &t.endpoint, plain.Clip(t.path)
	n := &rejection{why: "path", status: http.StatusNotFound}
	switch {
	case u != nil && u.Takes(e):
		if u.Speaks == upstream.SpeaksPass || e.Allows(r.Method) {
			return nil
		}
		return &rejection{
			why: "method", what: string(e.Of[0]), status: http.StatusMethodNotAllowed, allow: e.Methods,
			text: shown + " is asked with " + strings.Join(e.Methods, " or "),
		}
	case u == nil && e.Foreign == "" && e.Advice != "":
		n.what = string(e.Of[0])
		n.text = shown + " is a path of " + n.what + ", and this gateway has no upstream for it, so none was asked. " + e.Advice
		return n
	case e.Foreign != "":
		n.what = e.Foreign
		n.text = shown + " is a path of " + e.Foreign + ", which this gateway does not read, so no upstream was asked. " + e.Advice
		return n
	case u != nil:
		n.what = "of " + string(e.Of[0]) + ", for " + u.Name
		n.text = shown + " is a path of " + string(e.Of[0]) + "'s API, and the upstream " + u.Name + " (" + u.Base.Host +
			") does not speak it, so it was not asked. " + cmp.Or(e.Advice, "Use the base URL of the gateway without /"+u.Name+
			", or add an upstream that does: --upstream NAME=both+URL")
		return n
	case shown == "/":
		n.what = "none"
		n.text = "this is a gateway to language models. It is the base URL of an agent: ANTHROPIC_BASE_URL, or OPENAI_BASE_URL with /v1 " +
			"at the end. What it does is shown at its admin address"
	default:
		n.what = "unknown"
		n.text = shown + " is in neither Anthropic's nor OpenAI's API, so no upstream was asked. For one that knows it, " +
			"put its name before the path, as in /openai" + shown + ", or add it: --upstream NAME=pass+URL, with /NAME in the base URL"
	}
	e.Of = apiOf(r.Header) // answer uses it to choose the form
	return n
}

// normalizePath returns an escaped path as servers may interpret it. odd reports a . or .. element, which no client needs.
// Some servers drop everything after a ; in an element, and some decode a path twice.
func normalizePath(escaped string) (clean string, odd bool) {
	decoded, err := url.PathUnescape(escaped)
	if err != nil {
		return "", true
	}
	const most = 3
	again := decoded
	for range most {
		for part := range strings.FieldsFuncSeq(again, func(r rune) bool { return r == '/' || r == '\\' }) {
			part, _, _ = strings.Cut(part, ";")
			odd = odd || part == "." || part == ".."
		}
		next, err := url.PathUnescape(again)
		if err != nil || next == again {
			break
		}
		again = next
	}
	return path.Clean(decoded), odd
}

// owner returns the upstream of a path. Some paths, such as /v1/models and /v1/files, exist at both vendors: then
// credentials decide, or headers that only one vendor knows.
func owner(e *wire.Endpoint, who []wire.Credential, h http.Header) string {
	of := e.Of
	if len(of) == 0 {
		return ""
	}
	if len(of) > 1 {
		of = apiOf(h)
		for _, c := range who {
			if slices.Contains(e.Of, c.Of) {
				of = []wire.Vendor{c.Of}
			}
		}
	}
	return upstreamOf[of[0]]
}

// upstreamOf are the names of the upstreams for paths that name none.
var upstreamOf = map[wire.Vendor]string{
	wire.Anthropic: "anthropic", wire.OpenAI: "openai", wire.Google: "gemini", wire.Vertex: "vertex", wire.Azure: "azure",
	wire.Amazon: "bedrock",
}

// apiOf guesses from the headers which vendor's API a client speaks.
func apiOf(h http.Header) []wire.Vendor {
	if h.Get("Anthropic-Version") != "" || h.Get("X-Api-Key") != "" {
		return []wire.Vendor{wire.Anthropic}
	}
	return []wire.Vendor{wire.OpenAI}
}

// framed reports whether the answer is of Amazon, whose streams are binary.
func (t *target) framed() bool { return slices.Contains(t.endpoint.Of, wire.Amazon) }

// refuse answers with an error in the form of the vendor's API, so that the client's own error handling works.
func (t *target) refuse(w http.ResponseWriter, status int, text string) {
	api := t.endpoint.Form()
	if t.upstream != nil && t.upstream.Speaks == upstream.SpeaksAnthropic {
		api = wire.Messages
	}
	refuseWith(w, api, status, wire.Refusal(api, status, text))
}

// refuseWith answers with an error of an API.
func refuseWith(w http.ResponseWriter, api wire.API, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	if kind := wire.Of(api).ErrorType; kind != nil {
		w.Header().Set("X-Amzn-Errortype", kind(status))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON, with the text encoded
}
