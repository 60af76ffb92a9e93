package live

import (
	"cmp"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/live/wire"
)

// A target is where a request goes, and what is asked for.
type target struct {
	upstream *upstream     // nil if it goes to none
	endpoint wire.Endpoint // by the path
	stray    *stray        // not nil if it must not be forwarded
	path     string        // escaped, without the parts for the gateway
	api      string        // the form of the request, as [wire.API] has it; empty if it has no conversation that is read
	count    bool          // asks for the number of tokens only
	compact  bool          // asks for a compaction
	own      bool          // a page of the gateway's own
	mcp      bool
	headroom handler // answers what clients of headroom's proxy ask
	compress bool    // asks for messages to send itself, or reports the vendor's usage of them
	token    string
	bearer   bool // it is the Authorization
	who      caller
	changed  bool   // what was sent is not what came
	recall   string // the secret of who can recall

	profile, mode string // named by the request
}

type handler func(*Gateway, http.ResponseWriter, *http.Request, *settings, *target)

// A stray is why a request is not forwarded to any upstream.
type stray struct {
	why    string // for the record: path, method or credential
	what   string // kind of it, in our words
	status int
	text   string
	allow  []string // methods
}

// turnAway answers a request that is not forwarded. The log has each kind once.
func (g *Gateway) turnAway(w *outcome, r *http.Request, s *settings, t *target) {
	n := t.stray
	w.refused = n.why
	if _, said := g.strays.LoadOrStore([2]string{n.why, n.what}, nil); !said {
		s.Logger.WarnContext(r.Context(), "a request was not forwarded: it belongs to no upstream, and the agent was given the reason",
			"why", n.why, "what", n.what)
	}
	n.answer(w, t)
}

// answer writes it in the form of the API that the client speaks.
func (n *stray) answer(w http.ResponseWriter, t *target) {
	if n.allow != nil {
		w.Header().Set("Allow", strings.Join(n.allow, ", "))
	}
	text := "condense: " + n.text
	if n.status != http.StatusNotFound {
		t.refuse(w, n.status, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(n.status)
	_, _ = w.Write(t.endpoint.NotFound(text)) //nolint:gosec // JSON, with the text encoded
}

// route reads the path of a request: parts for the gateway, then the path for the upstream.
func (s *settings) route(r *http.Request) target {
	h := r.Header
	t := target{
		path: r.URL.EscapedPath(), token: h.Get("X-Condense-Token"),
		profile: h.Get("X-Condense-Profile"), mode: h.Get("X-Condense-Mode"), recall: h.Get("X-Condense-Recall"),
	}
	named := ""
	for {
		first, rest, more := strings.Cut(strings.TrimPrefix(t.path, "/"), "/")
		from := func(rest string) string { return t.path[len(t.path)-len(rest)-1:] } // with the slash before it, and not copied
		value, after, deeper := strings.Cut(rest, "/")
		switch {
		case s.upstreams[first] != nil && more:
			named, t.path = first, from(rest)
		case strings.HasPrefix(t.path, codexPath+"/"): // of Codex, with the login of a ChatGPT plan
			named, t.path = chatGPT, t.path[len(codexPath):]
		case first == "token" && deeper:
			t.token, t.path = value, from(after)
			continue
		case first == "recall" && deeper:
			t.recall, t.path = value, from(after)
			continue
		case first == "mode" && deeper && nameRule.MatchString(value):
			t.mode, t.path = value, from(after)
			continue
		case first == "profile" && deeper && nameRule.MatchString(value):
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

// answers reports whether a request is for the gateway itself, and says in t what it asks.
func (s *settings) answers(t *target, h http.Header) bool {
	bearer, isBearer := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	switch first, _, _ := strings.Cut(strings.TrimPrefix(t.path, "/"), "/"); {
	case first == "condense":
		t.own = true
		return true
	case t.path == "/mcp":
		if t.mcp = true; isBearer && t.recall == "" {
			t.recall = bearer // some agents can be given no other header
		}
		return true
	}
	t.headroom = headroomPaths[t.path]
	if strings.HasPrefix(t.path, retrievePath+"/") {
		t.headroom = (*Gateway).serveRetrieve
	}
	if t.headroom == nil {
		return false
	}
	t.compress = strings.HasPrefix(t.path, "/v1/")
	if isBearer && t.token == "" && (s.Token != "" || s.tokens != nil) {
		t.token, t.bearer = bearer, true // callers of this API can be given no other header
	}
	return true
}

// direct chooses the upstream of a request, and says in t if it belongs to none. Named is the upstream that the request names; empty if
// it names none.
func (s *settings) direct(t *target, r *http.Request, named string) {
	clean, odd := cleaned(t.path)
	t.endpoint = wire.Locate(clean)
	e, who := &t.endpoint, wire.Credentials(r.Header, r.URL.RawQuery)
	t.api, t.count, t.compact = string(e.API), e.Count, e.Compact
	if odd {
		t.stray = &stray{why: "path", what: "with . or ..", status: http.StatusBadRequest, text: "a path with . or .. as a part is not forwarded"}
		return
	}
	name := cmp.Or(named, owner(e, who, r.Header))
	u := s.upstreams[name]
	if u != nil && name == "openai" && r.Header.Get("Chatgpt-Account-Id") != "" && u.base.String() == vendors[name] {
		u = s.upstreams[chatGPT]
	}
	if t.stray = misplaced(t, u, r); t.stray != nil || u == nil {
		return
	}
	t.upstream = u
	for _, c := range who {
		if u.refuses(c) {
			t.stray = &stray{
				why: "credential", what: c.Name + ", for " + u.name, status: http.StatusBadRequest,
				text: "the request carries " + c.Name + ", which is for " + string(c.Of) + ", and the upstream " + u.name + " is " + u.base.Host +
					", so nothing was sent. Give the agent a key for this upstream, or the gateway the upstream that the key is for: --upstream NAME=URL",
			}
		}
	}
	if u.speaks == speaksPass {
		t.api, t.count, t.compact = "", false, false
	}
}

// misplaced returns why the path of a request is not for an upstream, which is nil if there is none; nil if it is for it.
func misplaced(t *target, u *upstream, r *http.Request) *stray {
	e, shown := &t.endpoint, clip(t.path)
	n := &stray{why: "path", status: http.StatusNotFound}
	switch {
	case u != nil && u.takes(e):
		if u.speaks == speaksPass || e.Allows(r.Method) {
			return nil
		}
		return &stray{
			why: "method", what: string(e.Of[0]), status: http.StatusMethodNotAllowed, allow: e.Methods,
			text: shown + " is asked with " + strings.Join(e.Methods, " or "),
		}
	case e.Foreign != "":
		n.what = e.Foreign
		n.text = shown + " is a path of " + e.Foreign + ", which this gateway does not read, so no upstream was asked. " + e.Advice
		return n
	case u != nil:
		n.what = "of " + string(e.Of[0]) + ", for " + u.name
		n.text = shown + " is a path of " + string(e.Of[0]) + "'s API, and the upstream " + u.name + " (" + u.base.Host +
			") does not speak it, " +
			"so it was not asked. Use the base URL of the gateway without /" + u.name + ", or add an upstream that does: --upstream NAME=both+URL"
		return n
	case shown == "/":
		n.what = "none"
		n.text = "this is a gateway to language models. It is the base URL of an agent: ANTHROPIC_BASE_URL, or OPENAI_BASE_URL with /v1 " +
			"at the end. " +
			"What it does is shown at its admin address"
	default:
		n.what = "unknown"
		n.text = shown + " is in neither Anthropic's nor OpenAI's API, so no upstream was asked. For one that knows it, " +
			"put its name before the path, " +
			"as in /openai" + shown + ", or add it: --upstream NAME=pass+URL, with /NAME in the base URL"
	}
	e.Of = apiOf(r.Header) // for the form of the answer
	return n
}

// takes reports whether a path belongs to an upstream. One that is in no table does: it was sent there on purpose.
func (u *upstream) takes(e *wire.Endpoint) bool {
	switch {
	case u.speaks == speaksPass:
		return true
	case e.Foreign != "":
		return u.host.Of != "" && e.Owner == u.host.Of
	case (u.host.Of == wire.Anthropic || u.host.Of == wire.OpenAI) && !e.Has(u.host.Of):
		return false
	case u.speaks == speaksAnthropic:
		return e.Has(wire.Anthropic)
	case u.speaks == speaksOpenAI:
		return e.Has(wire.OpenAI)
	}
	return true
}

// refuses reports whether a credential must not reach an upstream. A vendor's own host gets no key of another one. Other hosts, such as
// gateways of the user's own, accept keys of any kind, but not those that only a cloud's API can use.
func (u *upstream) refuses(c wire.Credential) bool {
	switch {
	case c.Of == u.host.Of:
		return false
	case u.host.Of != "":
		return true
	}
	return c.Cloud && u.speaks != speaksPass
}

// cleaned returns an escaped path as servers may read it, and whether it has . or .. as a part, which none needs. Some servers leave out
// what follows a ; in a part, some decode a path twice.
func cleaned(escaped string) (clean string, odd bool) {
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

// owner returns the upstream of a path. Some, such as /v1/models and /v1/files, exist at both vendors: then the credentials decide, or
// headers that only one of the two knows.
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
	if of[0] == wire.Anthropic {
		return "anthropic"
	}
	return "openai"
}

// apiOf returns whose API a client speaks, by its headers.
func apiOf(h http.Header) []wire.Vendor {
	if h.Get("Anthropic-Version") != "" || h.Get("X-Api-Key") != "" {
		return []wire.Vendor{wire.Anthropic}
	}
	return []wire.Vendor{wire.OpenAI}
}

// refuse answers with an error in the form of the vendor's API, so that the client's own handling
// of errors works.
func (t *target) refuse(w http.ResponseWriter, status int, text string) {
	api := wire.API(t.api)
	if slices.Equal(t.endpoint.Of, []wire.Vendor{wire.Anthropic}) || t.upstream != nil && t.upstream.speaks == speaksAnthropic {
		api = wire.Messages
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(wire.Refusal(api, status, text)) //nolint:gosec // JSON, with the text encoded
}
