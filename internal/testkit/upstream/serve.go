package upstream

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// ServeHTTP answers a request as the vendor of its path does.
func (v *Vendor) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var read bytes.Buffer
	if req.ContentLength > 0 {
		read.Grow(int(req.ContentLength) + bytes.MinRead) // a large body is not copied again and again
	}
	_, err := read.ReadFrom(req.Body)
	body := read.Bytes()
	if err != nil {
		return // the client is gone
	}
	r := v.recordOf(req, body, nil)
	defer close(r.finished)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", identifier("req", r.N))
	w.Header().Set("X-Request-Id", identifier("req", r.N))
	switch {
	case req.Method == http.MethodHead:
	case req.Method == http.MethodGet && r.Path == "/v1/models":
		_, _ = w.Write(listing(req.Header))
	case req.Header.Get("Upgrade") != "" && r.API == Responses && !v.o.NoSockets:
		v.socket(w, req)
	case req.Header.Get("Upgrade") != "": // Codex asks for a WebSocket first
		v.refuse(w, r, &refusal{status: http.StatusUpgradeRequired, rule: "path", text: "WebSockets are not served."})
	case r.API == "" || req.Method != http.MethodPost:
		v.refuse(w, r, &refusal{status: http.StatusNotFound, rule: "path", kind: "not_found_error", text: "Not found: " + req.Method + " " + r.Path})
	default:
		v.prompt(w, req, r)
	}
}

// prompt answers one of the paths that take prompts.
func (v *Vendor) prompt(w http.ResponseWriter, req *http.Request, r *Record) {
	start := v.o.Now()
	body, f := v.expand(r)
	if f != nil {
		v.refuse(w, r, f)
		return
	}
	p, f := parse(r, body, req.Header, v.memory)
	if p != nil {
		p.count = r.route.count
		v.mu.Lock()
		r.Session, r.Agent, r.Model, r.Stream, r.Tokens = p.session, p.agent, p.model, p.stream, v.tokens(p.size)
		v.mu.Unlock()
	}
	if f == nil && r.API == Gemini {
		f = checkGoogle(r)
	}
	if f == nil {
		f = v.checkCloud(p, r)
	}
	if f == nil {
		f = v.check(p)
	}
	if f != nil && f.rule == "window" && v.o.StreamOverflow && p.api == Responses && p.stream {
		v.note(r, 200, f)
		w.Header().Set("Content-Type", "text/event-stream")
		send(req.Context(), w, r, f.failed(p, r.N), &Fault{})
		return
	}
	if f != nil {
		v.refuse(w, r, f)
		return
	}
	fault := &Fault{}
	if v.o.Fault != nil {
		v.mu.Lock()
		snapshot := *r
		v.mu.Unlock()
		if x := v.o.Fault(snapshot); x != nil {
			fault = x
		}
	}
	if fault.Status != 0 {
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		v.refuse(w, r, trouble(fault.Status))
		return
	}
	v.mu.Lock()
	if r.Side = v.side(p); r.Side == "" {
		r.Conversation, r.Step = v.next(p, r.N)
	}
	u := v.lookup(p, start)
	a := v.play(p, r)
	v.mu.Unlock()
	if fault.Hold != nil && !wait(req.Context(), r, fault.Hold) {
		return
	}
	v.mu.Lock()
	r.Status = http.StatusOK
	if !p.count {
		v.cache.Learn(&u.Use, start)
		for scope, i := p.scope(), 0; i < len(p.blocks); i++ {
			v.cache.ever[prefix{scope, p.blocks[i].sum}] = true
		}
		r.Usage, r.Ideal = Usage{u.Prompt, u.Read, u.Write, a.tokens}, u.ideal
	}
	v.mu.Unlock()
	if p.api == Responses {
		v.hold(r, "resp_"+a.id, a.items())
	}
	w.Header().Set("Content-Type", p.contentType())
	send(req.Context(), w, r, a.render(p, u), fault)
}

// contentType returns the content type of an answer.
func (p *prompt) contentType() string {
	switch {
	case p.cloud == Bedrock:
		return amazonTypes[p.stream]
	case p.stream && !p.count && (p.api != Gemini || p.sse):
		return "text/event-stream; charset=utf-8"
	}
	return "application/json"
}

// decode returns the body without its compression.
func decode(r *Record) ([]byte, *refusal) {
	var z io.Reader
	var err error
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		return r.Body, nil
	case "gzip":
		z, err = gzip.NewReader(bytes.NewReader(r.Body))
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(bytes.NewReader(r.Body)); err == nil {
			defer d.Close()
			z = d
		}
	default:
		return nil, &refusal{status: http.StatusUnsupportedMediaType, rule: "encoding", text: "Unsupported content encoding: " + encoding}
	}
	if err == nil {
		var body []byte
		if body, err = io.ReadAll(z); err == nil {
			return body, nil
		}
	}
	return nil, invalid("encoding", "The request body could not be decompressed: "+err.Error())
}

// note records a refusal.
func (v *Vendor) note(r *Record, status int, f *refusal) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r.Status, r.Rule, r.Error = status, f.rule, f.text
}

// refuse answers with an error.
func (v *Vendor) refuse(w http.ResponseWriter, r *Record, f *refusal) {
	v.note(r, f.status, f)
	api := r.API
	if api == "" && strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") && r.Header.Get("Anthropic-Version") == "" {
		api = Chat
	}
	if r.Cloud == Bedrock {
		api = Converse
		kind := firstOf(amazonKinds[f.status], "InternalServerException")
		w.Header().Set("X-Amzn-Errortype", kind+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	}
	body := f.render(api, r.N)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(f.status)
	_, _ = w.Write(body) //nolint:gosec // no browser reads it
}
