package live

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/library"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/live/internal/payload"
	"github.com/condensehq/condense/live/internal/seal"
)

// A request passes through three values, each with the one before as a field: a request, a plan, an exchange.

// A request is a request for a conversation: what came in, from whom, and the limits for it.
type request struct {
	g        *Gateway
	s        *settings
	t        *target
	in       incoming
	from     origin
	limits   limits
	tariff   tariff
	parsed   *wire.Request  // with the tool and the restored rounds, if the conversation has the gateway's own tool
	rolling  []wire.Hash    // rolling hashes of the client's messages
	lease    *session.Lease // nil if the request is no turn of a conversation, or its lineage is not known
	seen     *session.Lease // the lineage of a request that does not advance it
	tool     tooled
	compacts bool   // asks for a compaction
	reads    string // identity that can recall content of the request; empty if nobody can
	handles  bool   // this client can recall: views may have handles
	pins     job.Pins
	calls    bool // the client asks for a condensation, and waits for it
	media    int  // estimated tokens of its images and files
	guessed  bool // the request does not say how the model thinks, and parsed.Thinking is assumed
}

// An incoming is a request as it came.
type incoming struct {
	header   http.Header
	start    time.Time
	received []byte          // the body, decompressed
	weight   *payload.Weight // of a body that is no turn of a conversation
	held     *payload.Hold   // the share of the body; nil if nothing is counted
	unread   bool            // the body is too large, and passes for that reason
	chain    *chained        // nil if no earlier response is named, and nobody can name the answer
}

// An origin is the agent and the conversation that a request comes from.
type origin struct {
	agent      *agents.Agent
	volatile   []wire.Volatile
	key        store.Key
	session    string // the session ID that the client sent
	subscribed bool   // the login is that of a plan
	ofPlan     bool   // that, or perhaps that
}

// A tooled is a conversation with the gateway's own tool.
type tooled struct {
	session *session.Session // nil if it has none
	apart   *session.Session // of a first request without the tool, with the words of one that has it; else nil
	at      wire.Hash        // rolling hash of the client's own messages
	own     *wire.Request    // as the client sent it; nil if it has none
}

// read parses the request, and plans what to send. The plan is nil for requests that are not condensed.
func (r *request) read(ctx context.Context) (*plan, error) {
	api := wire.API(r.t.api)
	of := agents.Of(r.in.header, nil)
	request, err := wire.Parse(api, r.in.received, &wire.Options{
		Volatile: of.Volatile, Cache: r.g.parsed, Model: r.t.endpoint.Model, Stream: r.t.endpoint.Stream,
		Requires: r.t.endpoint.Requires,
	})
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // not for us: the vendor says what is wrong with it
	}
	r.from.agent, r.from.volatile = of, of.Volatile
	r.from.subscribed = agents.Subscription(r.in.header)
	r.from.ofPlan = isPlan(r.t, r.in.header, r.from.subscribed)
	if of == agents.Any() {
		head := request.System
		if head == nil && len(request.Messages) > 0 {
			head = request.Messages[0].Raw
		}
		r.from.agent = agents.Of(r.in.header, head)
	}
	r.parsed = request
	r.media += plain.Sum(request.Messages, func(x wire.Message) int { return x.Media })
	r.priced(request.Model)
	if n := len(request.Messages); n == 0 || n > maxMessages || request.Stateful || len(request.Model) > longestModel || secret.Shown(request.Model) {
		return nil, nil //nolint:nilnil // nothing to condense, or a key in the place of a name, which lists and the log would show
	}
	r.compacts = r.t.compact || rawjson.Text(rawjson.Field(request.Messages[len(request.Messages)-1].Raw, "type")) == "compaction_trigger"
	side := r.side()
	if side != agents.Turn && side != agents.Summary && !r.compacts {
		return nil, nil //nolint:nilnil // left alone
	}
	in, err := r.locate(ctx)
	if err != nil {
		return nil, err
	}
	if r.in.unread = r.in.unread && r.isNew(in); r.in.unread {
		return nil, nil //nolint:nilnil // it passes
	}
	r.reads = r.g.secrets.readerOf(&r.s.Recall, r.t)
	_ = r.g.guarded("tool", func() error { return r.addRecallTool(ctx, in) })
	if summary := side == agents.Summary || r.parsed.Compacts || r.compacts; summary || r.t.count {
		return r.planWithoutLease(in, summary)
	}
	r.handles = !r.s.Observe && !r.s.Recall.Off && (r.tool.session != nil || !r.s.Recall.NoMCP && r.reads != "" && library.CanCall(r.parsed, r.from.agent.Deferred))
	if err := r.take(ctx, in); err != nil {
		return nil, err
	}
	return r.decide(ctx)
}

// side returns what kind of call of its agent the request is.
func (r *request) side() agents.Side {
	last := len(r.parsed.Messages) - 1
	for last > 0 && r.parsed.Messages[last].Role == "system" { // Claude Code adds reminders after the user's message
		last--
	}
	return agents.SideOf(agents.Call{
		Header: r.in.header, Messages: len(r.parsed.Messages), Tools: r.parsed.Tools != nil, MaxOutput: r.parsed.MaxOutput,
		Structured: r.parsed.Structured, System: r.parsed.System, Last: r.parsed.Messages[last].Raw,
	})
}

// locate finds the session of the request, and its limits.
func (r *request) locate(ctx context.Context) (*session.Session, error) {
	r.from.key = store.Key{
		Tenant: r.g.secrets.tenantOf(r.t.who, r.in.header, r.parsed.Body), API: r.t.api, Agent: r.from.agent.SubAgent(r.in.header),
		Session: r.from.agent.Session(r.in.header, r.parsed.Session),
	}
	if r.s.Observe {
		r.from.key.API += session.Observed // separate, because the vendor has not seen these views
	}
	if err := r.from.key.Validate(); err != nil {
		r.from.key.Agent, r.from.key.Session = "", ""
	}
	r.rolling = lineage.Roll(r.parsed.Messages)
	if r.from.session = r.from.key.Session; r.from.key.Session == "" {
		_, at := opening(r.parsed.Messages)
		r.from.key.Session = "opening:" + hex.EncodeToString(at[:])
	}
	var err error
	if r.limits, err = limitsOf(r); err != nil { //nolint:contextcheck // a server is asked for its window next to the request
		return nil, err
	}
	in := r.g.sessions.Of(r.from.key, r.in.start)
	return in, r.g.sessions.Reach(ctx, in, r.parsed, r.rolling)
}

// take leases the lineage of the request in r.lease.
func (r *request) take(ctx context.Context, from *session.Session) error {
	c, err := from.Lease(ctx, r.parsed, r.rolling)
	if err != nil {
		return err
	}
	r.lease, c.Reads, c.Most = c, cmp.Or(r.reads, c.Reads), r.s.Recall.MaxSize
	r.warnOfSize(ctx)
	return nil
}

// planWithoutLease plans the view of a request that does not advance its lineage: one that only counts tokens, one that asks for a
// compaction, or the agent's own request for a summary. A summary is made of the original messages if they fit, because
// that is best.
func (r *request) planWithoutLease(in *session.Session, summary bool) (*plan, error) {
	c, err := in.Find(r.parsed, r.rolling)
	if err != nil {
		return nil, err
	}
	r.seen = c
	p := r.planned(c.State)
	if summary && p.altered && c.State.Scale(p.original) <= r.limits.policy.Limit {
		originals := lineage.State{}
		if c.State.Bound { // thinking that the model wrote after the view is not valid with the originals
			originals.Strip(r.parsed, r.rolling)
		}
		p.view = r.viewOf(&originals)
	}
	return p, nil
}

// A view holds the messages to send for a request, and their sizes.
type view struct {
	messages [][]byte // in place of the client's messages
	altered  bool     // the view differs from them
	ours     int      // size of the request with the view, by our count
	original int      // size of the request as it came, by our count
	tokens   int      // size of the request with the view, by the vendor's count, estimated
}

// viewOf returns the view that follows from a state.
func (r *request) viewOf(s *lineage.State) view {
	s.Tool = r.tool.session != nil
	s.Adapt(r.parsed, r.rolling, r.tariff.caching.Bound)
	v := view{messages: s.View(r.parsed, r.rolling)}
	v.altered = len(v.messages) != len(r.parsed.Messages)
	for i := 0; i < len(v.messages) && !v.altered; i++ {
		v.altered = !bytes.Equal(v.messages[i], r.parsed.Messages[i].Raw)
	}
	v.ours = s.Count(r.parsed, r.rolling, count.Tokens)
	v.tokens = s.Estimate(v.ours)
	v.original = v.ours
	if v.altered {
		v.original = s.HeadOur + untouched(r.parsed)
	}
	return v
}

// check returns an error if the view breaks a rule of the vendor that the client's own request does not break.
func (r *request) check(v *view) error {
	if !v.altered {
		return nil
	}
	err := r.g.parsed.Check(r.parsed.API, r.parsed, v.messages)
	if f := (*wire.RuleError)(nil); errors.As(err, &f) && f.Client {
		return nil
	}
	return err
}

// untouched returns the size of the client's messages in tokens, by our count.
func untouched(r *wire.Request) int {
	n := 0
	for i := range r.Messages {
		if m := &r.Messages[i]; m.Tokens > 0 {
			n += m.Tokens
		} else {
			n += count.Tokens(m.Raw)
		}
	}
	return n
}

// loginOf returns the subject of a plan's token, which stays the same in all tokens of a login; empty if the token is
// no JWT, like those of Claude's plans, or has no subject. The signature is not checked here, but by the vendor.
func loginOf(authorization string) string {
	_, token, _ := strings.Cut(authorization, " ")
	parts := strings.Split(token, ".")
	const inJWT = 3
	if len(parts) != inJWT {
		return ""
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || !json.Valid(claims) || !rawjson.IsObject(claims) {
		return ""
	}
	return rawjson.Text(rawjson.Field(claims, "sub"))
}

// opening returns the first message of the user and the rolling hash at it, without the prompts before it. It stands for the session of
// clients that send none: all their conversations would share one, which an SDK in a server fills with thousands.
func opening(messages []wire.Message) (first int, at wire.Hash) {
	first = max(0, slices.IndexFunc(messages, func(m wire.Message) bool { return m.Role == "user" }))
	return first, lineage.Unprompted(messages[:first+1])[first]
}

// secrets are the keys that tell clients apart and protect their data. Each is derived from Options.Key, or stored.
type secrets struct {
	tenant []byte // key of the hash that stands for credentials
	recall string // see [Gateway.RecallSecret]
	seals  seal.Sealer
}

// newSecrets derives the secrets from key. Without a key it takes them from the store.
func newSecrets(ctx context.Context, key []byte, in store.Store) (*secrets, error) {
	of := func(name string) ([]byte, error) {
		if key == nil {
			return in.Secret(ctx, name)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(name))
		return mac.Sum(nil), nil
	}
	tenant, err := of("tenant")
	if err != nil {
		return nil, err
	}
	recall, err := of("recall")
	if err != nil {
		return nil, err
	}
	seals, err := of("compaction")
	return &secrets{tenant: tenant, recall: hex.EncodeToString(recall), seals: seals}, err
}

// tenantOf returns a keyed hash of a request's credentials: it identifies a client, but cannot be used as its key. The
// token of a plan changes every few hours, in the middle of conversations, so for plans the account that the client
// names is hashed instead, together with the token's subject if it has one. Neither is verified here; the vendor does
// that later. A false claim gains nothing: conversations are found by their content, so a client that names another's
// account only gets a condensation of messages that it sent itself. For a client with a tenant's token, the tenant's
// name is part of the hash, and its prefix.
func (s *secrets) tenantOf(c tenant.Caller, h http.Header, body []byte) string {
	mac, name := hmac.New(sha256.New, s.tenant), ""
	if c.Tenant != "" {
		name = c.Tenant + ":"
		mac.Write([]byte("tenant\x00" + c.Tenant + "\x00"))
	}
	account := ""
	if agents.Subscription(h) {
		if account = h.Get("Chatgpt-Account-Id"); account == "" {
			account = rawjson.Text(rawjson.Field(rawjson.Field(body, "metadata"), "user_id"))
		}
		if login := loginOf(h.Get("Authorization")); account != "" && login != "" {
			account += "\x00login\x00" + login
		}
	}
	if account != "" {
		mac.Write([]byte("account\x00" + account))
	} else {
		for _, name := range []string{"X-Api-Key", "Authorization", "Api-Key"} {
			for _, v := range h.Values(name) {
				if id := wire.SignedBy(h, ""); id != "" && name == "Authorization" { // each request has another signature
					v = id
				}
				mac.Write([]byte(name + "\x00" + v + "\x00"))
			}
		}
	}
	const size = 16
	return name + hex.EncodeToString(mac.Sum(nil)[:size])
}

// ofAccess are the headers on which access to stored answers depends.
var ofAccess = []string{
	"Authorization", "X-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization", "Chatgpt-Account-Id", "Openai-Organization", "Openai-Project",
}

// credentialOf returns a keyed hash of the credentials of a request themselves, whatever account they claim. Another token of
// the same login has another hash: only the vendor could tell that they belong together.
func (s *secrets) credentialOf(c tenant.Caller, r *http.Request) string {
	mac := hmac.New(sha256.New, s.tenant)
	fmt.Fprintf(mac, "access\x00%q%q", c.Tenant, r.URL.RawQuery)
	for _, name := range ofAccess {
		fmt.Fprintf(mac, "%q", r.Header[name])
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// readerOf returns the identity that can recall the content of a request: a keyed hash of its recall secret. It is
// empty if nobody can.
func (s *secrets) readerOf(r *Recall, t *target) string {
	secret := t.recall
	if secret == "" && r.Own && !t.mcp {
		secret = s.recall
	}
	if r.Off || len(secret) < shortestSecret {
		return ""
	}
	mac := hmac.New(sha256.New, s.tenant)
	if t.who.Tenant == "" {
		mac.Write([]byte("recall\x00" + secret))
	} else { // so that another tenant with the same secret reads nothing
		mac.Write([]byte("recall of a tenant\x00" + t.who.Tenant + "\x00" + secret))
	}
	const size = 16
	return hex.EncodeToString(mac.Sum(nil)[:size])
}

// namedFolder matches the phrases with which agents name their working directory.
var namedFolder = plain.Pattern(`(?:[Ww]orking directory: |<cwd>)([^<\\"\n]+)`)

// front returns the messages in which an agent says where it works, and the user what to do: those before them are its prompts and tools.
func front(r *wire.Request) []wire.Message {
	first := slices.IndexFunc(r.Messages, func(m wire.Message) bool { return m.Role == "user" })
	return r.Messages[:min(len(r.Messages), max(0, first)+maxMessage)]
}

// namedIn returns the agent's working directory as the request names it; empty if it does not.
func namedIn(r *wire.Request) string {
	texts := [][]byte{r.System}
	for _, m := range front(r) {
		texts = append(texts, m.Raw)
	}
	for _, text := range texts {
		if m := namedFolder().FindSubmatch(text[:min(len(text), maxRead)]); m != nil {
			return strings.TrimSpace(string(m[1]))
		}
	}
	return ""
}

// folder returns the folder in which providers may read the files that the agent has read: the folder named by the request
// if it is Source, Folder or below them, else Folder. It can be empty.
func (s *settings) folder(r *wire.Request) string {
	if s.Source == "" && s.Folder == "" {
		return ""
	}
	named := namedIn(r)
	if named == "" {
		return s.Folder
	}
	found, err := filepath.EvalSymlinks(named)
	if err != nil || !filepath.IsAbs(found) {
		return ""
	}
	for _, allowed := range []string{s.Folder, s.Source} {
		if allowed == "" {
			continue
		}
		if allowed, err = filepath.EvalSymlinks(allowed); err != nil {
			continue
		}
		if rel, err := filepath.Rel(allowed, found); err == nil && filepath.IsLocal(rel) {
			return found
		}
	}
	return ""
}
