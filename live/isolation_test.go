package live_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/online"
	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/pgtest"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

var markers = regexp.MustCompile(`only-of-tenant-\d\d`)

// Eight tenants at once (at night twenty), with the same prompts, the same repository, the same key of the vendor, the same session and the same recall
// secret. One line of one result is each tenant's own: what is sent for a tenant, and what it recalls, never has that of another.
func TestTenantsDoNotMeet(t *testing.T) {
	testkit.Slow(t)
	const own = 8 // the result with the line
	n := 8
	if testkit.Night() {
		n = 20
	}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("tenant-%02d", i))
	}
	tokens := tokensFile(t, names...)
	file := filepath.Join(t.TempDir(), "serve.db")
	vendors := map[string]*upstream.Vendor{} // each says the same, call for call
	for i := range n {
		vendors[fmt.Sprintf("%02d", i)] = upstream.New(upstream.Options{Window: window, Script: upstream.Loop(22, 3000, nil)})
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { vendors[r.Header.Get("X-Test")].ServeHTTP(w, r) }))
	t.Cleanup(front.Close)
	g, server := serveWith(t, front.URL, withWindow(window), func(o *live.Options) { o.Access.Tokens, o.Store.Path = tokens.path, file })
	var all sync.WaitGroup
	for i, name := range names {
		c := claude("the-same-session")
		c.URL, c.Tools = server.URL, []string{"mcp__condense__recall"}
		c.Header = http.Header{"X-Condense-Token": {tokens.of[name]}, "X-Condense-Recall": {secret}, "X-Api-Key": {"sk-ant-the-same-key"}, "X-Test": {fmt.Sprintf("%02d", i)}}
		results := 0
		c.Run = func(command string) string {
			if results++; results == own {
				return fmt.Sprintf("FAIL only-of-tenant-%02d\n", i) + upstream.Output(command)
			}
			return upstream.Output(command)
		}
		all.Go(func() {
			if _, err := c.Say(context.Background(), task); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	s := g.Stats()
	if s.EpochCount < n {
		t.Fatalf("%d epochs of %d tenants", s.EpochCount, n)
	}
	crossings, seen, handles := 0, 0, map[string]bool{}
	for id, v := range vendors {
		for _, r := range v.Records() {
			for _, m := range markers.FindAll(r.Body, -1) {
				if seen++; string(m) != "only-of-tenant-"+id {
					crossings++
					t.Errorf("request %d of tenant %s has %s", r.N, id, m)
				}
			}
		}
		for h := range promised(t, v.Records()) {
			handles[h] = true
		}
		for _, r := range v.Refusals() {
			t.Errorf("tenant %s: refused: %s %s", id, r.Rule, r.Error)
		}
	}
	if seen == 0 || len(handles) == 0 {
		t.Fatalf("%d lines of tenants and %d handles were sent: nothing is shown", seen, len(handles))
	}

	// Every handle that any tenant has, asked for by every tenant with the same secret; and a search.
	recalled := 0
	for i, name := range names {
		header := map[string]string{"X-Condense-Token": tokens.of[name], "X-Condense-Recall": secret}
		answers, _, _ := ask(t, server.URL+"/mcp", header, "search", object{"query": "only-of-tenant"})
		for h := range handles {
			texts, _, _ := ask(t, server.URL+"/mcp", header, "recall", object{"handle": h})
			answers = append(answers, texts...)
		}
		for _, m := range markers.FindAllString(strings.Join(answers, "\n"), -1) {
			if recalled++; m != fmt.Sprintf("only-of-tenant-%02d", i) {
				crossings++
				t.Errorf("%s recalls %s", name, m)
			}
		}
	}
	if recalled < n {
		t.Errorf("%d lines were recalled: every tenant should have its own", recalled)
	}
	t.Logf("%d tenants, %d requests, %d epochs, %d handles, %d recalled lines of their own: %d crossings", n, s.Requests, s.EpochCount, len(handles), recalled, crossings)

	// What is stored of each is under its own name.
	db, err := store.SQLite(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, name := range names {
		if records, err := db.List(t.Context(), name); err != nil || len(records) == 0 {
			t.Errorf("%s: %d records, %v", name, len(records), err)
		} else if slices.ContainsFunc(records, func(r store.Record) bool { return !strings.HasPrefix(r.Key.Tenant, name+":") }) {
			t.Errorf("%s: a record of another tenant", name)
		}
	}
}

// Tenants with everything in common but a line of a result share a provider of new results, which remembers what it was told: it is told of
// another conversation for each, its forms are sent to their tenant only, and a handle leads nobody to another's result.
func TestTenantsDoNotMeetInIngest(t *testing.T) {
	testkit.Slow(t)
	names := []string{"tenant-00", "tenant-01"}
	tokens := tokensFile(t, names...)
	vendors := map[string]*upstream.Vendor{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { vendors[r.Header.Get("X-Test")].ServeHTTP(w, r) }))
	defer front.Close()
	var mu sync.Mutex
	told := map[string]map[string]bool{} // the lines, by the name of the conversation
	o := withIngest(func(_ context.Context, r *core.Request) (*core.Result, error) {
		return rewriteResults(r, func(whole string) string {
			mu.Lock()
			defer mu.Unlock()
			if told[r.Conversation] == nil {
				told[r.Conversation] = map[string]bool{}
			}
			for _, m := range markers.FindAllString(whole, -1) {
				told[r.Conversation][m] = true
			}
			return fmt.Sprintf("short, as in %v", slices.Sorted(maps.Keys(told[r.Conversation])))
		}), nil
	})
	_, server := serveWith(t, front.URL, o, func(o *live.Options) { o.Access.Tokens = tokens.path })
	mine := map[string]string{} // the handle of the result with the line
	for i, name := range names {
		id := fmt.Sprintf("%02d", i)
		vendors[id] = upstream.New(upstream.Options{Window: window, Script: upstream.Loop(6, 3000, nil)})
		c := claude("the-same-session")
		c.URL, c.Tools = server.URL, []string{"mcp__condense__recall"}
		c.Header = http.Header{"X-Condense-Token": {tokens.of[name]}, "X-Condense-Recall": {secret}, "X-Api-Key": {"sk-ant-the-same-key"}, "X-Test": {id}}
		c.Run = func(command string) string {
			if out := upstream.Output(command); mine[name] != "" {
				return out
			} else {
				out = "FAIL only-of-" + name + "\n" + out
				mine[name] = core.Handle(core.ToolResult{Content: []core.Part{core.Text(out)}})
				return out
			}
		}
		if _, err := c.Say(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	if delete(told, ""); len(told) != len(names) {
		t.Errorf("the provider was told of %v", told)
	}
	for i, name := range names {
		id := fmt.Sprintf("%02d", i)
		sent := 0
		for _, r := range vendors[id].Records() {
			for _, m := range markers.FindAllString(string(r.Body), -1) {
				if sent++; m != "only-of-"+name {
					t.Errorf("request %d of %s has %s", r.N, name, m)
				}
			}
		}
		if sent == 0 {
			t.Errorf("no line of %s was sent: nothing is shown", name)
		}
		header := map[string]string{"X-Condense-Token": tokens.of[name], "X-Condense-Recall": secret}
		for of, handle := range mine {
			texts, _, _ := ask(t, server.URL+"/mcp", header, "recall", object{"handle": handle})
			if got := strings.Contains(strings.Join(texts, "\n"), "only-of-"+of); got != (of == name) {
				t.Errorf("%s recalls the result of %s: %v: %.200q", name, of, got, texts)
			}
		}
	}
}

// A copy of the database, a backup and an export have nothing with which a request could be sent in the name of its users: no key of a vendor, no token,
// no recall secret, in no form, and no hash of one that was made without a key. Nor has anything that the gateway shows or tells others: logs, metrics,
// traces, pages, the text of its refusals.
func TestNoCredentialLeaks(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		for name, key := range map[string][]byte{"key in the store": nil, "key of the server": []byte("a key of the server that is long enough")} {
			t.Run(database+", "+name, func(t *testing.T) {
				t.Parallel()
				var s *pgtest.Server
				address := filepath.Join(t.TempDir(), "serve.db")
				if database == "PostgreSQL" {
					s = pgtest.Start(t)
					address = s.URL()
				}
				credentials, found := leak(t, address, key)
				if s != nil {
					found["pg_dump"] = binary(s.Dump(t))
					if !strings.Contains(found["pg_dump"], `{"conversation":`) {
						t.Error("the dump has no state that can be read")
					}
				} else {
					files, err := filepath.Glob(address + "*")
					if err != nil {
						t.Fatal(err)
					}
					for _, f := range files {
						found["a file of the database"] += read(t, f)
					}
				}
				for where, text := range found {
					if where != "refusals" && !strings.Contains(text, "acme") {
						t.Errorf("nothing of the tenant is in %s: %.500s", where, text)
					}
					text := strings.ToLower(text)
					for _, c := range credentials {
						for form, hidden := range formsOf(c) {
							if strings.Contains(text, strings.ToLower(string(hidden))) {
								t.Errorf("%s of %.20s… is in %s", form, c, where)
							}
						}
					}
				}
			})
		}
	}
}

// leak plays with a gateway whose store is at an address. It returns the credentials that it was given, and what it told others, by the name of the place.
func leak(t *testing.T, address string, key []byte) (credentials []string, found map[string]string) {
	t.Helper()
	vendor := upstream.New(upstream.Options{Window: window, Script: upstream.Loop(26, 2200, nil)})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Test") != "" { // some vendors repeat the key
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s"}}`, r.Header.Get("Authorization"))
			return
		}
		vendor.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	tokens := tokensFile(t, "acme")
	tokens.add(t, &access.Token{Tenant: "ops", Admin: true})
	logs, audit := &lockedBuffer{}, &lockedBuffer{}
	pages, err := online.New(t.Context(), address, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var m *meter
	var g *live.Gateway
	g, server := serveWith(t, front.URL, withWindow(window), func(o *live.Options) {
		m = newMeter(t, o)
		o.Access.Tokens, o.Store.Path, o.Store.Key, o.Reports.Watch, o.Upstreams.URLs["dead"] = tokens.path, address, key, pages, "http://127.0.0.1:1"
		o.Reports.Pages = pages.Pages("", func() live.Stats { return g.Stats() })
		o.Reports.Logger, o.Reports.Audit = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})), slog.New(slog.NewJSONHandler(audit, nil))
	})
	admin := adminOf(t, g)

	const theirs, query, wrong = "recall-secret-0123456789abcdef", "AIzaSyA-0123456789abcdefghijklmnopq", "condense_0123456789ABCDEFGHIJKLMNOP"
	credentials = []string{tokens.of["acme"], tokens.of["ops"], theirs, query, wrong}
	if key != nil {
		credentials = append(credentials, g.RecallSecret())
	}
	headers := []http.Header{
		{"X-Api-Key": {"sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"}},
		{"X-Api-Key": {""}, "Authorization": {"Bearer sk-ant-oat01-ABCDEFGHIJKLMNOPQRSTUVWXYZ"}, "Anthropic-Beta": {"oauth-2025-04-20"}},
		{"Authorization": {"Bearer sk-proj-zyxwvutsrqponmlkjihgfedcba"}, "Api-Key": {"0123456789abcdefABCDEF"}},
	}
	refusals := ""
	for i, header := range headers {
		for name, v := range header {
			if name != "Anthropic-Beta" && v[0] != "" {
				credentials = append(credentials, strings.TrimPrefix(v[0], "Bearer "))
			}
		}
		c := claude(fmt.Sprintf("session-%d", i))
		c.Header, c.Tools = header.Clone(), []string{"mcp__condense__recall"}
		c.URL = server.URL + "/token/" + tokens.of["acme"] + "/recall/" + theirs
		if _, err := c.Say(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		with := map[string]string{"X-Condense-Token": tokens.of["acme"], "X-Condense-Recall": theirs, "Content-Type": "application/json"}
		for name, v := range header {
			with[name] = v[0]
		}
		refused := func(token, path, body string) {
			with["X-Condense-Token"] = token
			_, answer := send(t, http.MethodPost, server.URL+path, with, []byte(body))
			refusals += string(answer) + "\n"
		}
		refused(wrong, "/v1/messages?key="+query, "{}")
		refused("", "/token/"+wrong+"/v1/messages", "{}")
		refused(tokens.of["ops"], "/v1/messages?key="+query, "{}")
		refused(tokens.of["acme"], "/dead/v1/messages?key="+query, `{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
		refused(tokens.of["acme"], "/dead/v1/models/"+query, "")
		refused(tokens.of["acme"], "/nowhere?key="+query, "")
		refused(tokens.of["acme"], "/v1/compress?key="+query, `{"messages":1}`)
		refused(tokens.of["acme"], "/mcp?key="+query, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":{"handle":"0123456789"}}}`)
		with["X-Test"] = "repeat the key"
		send(t, http.MethodPost, server.URL+"/v1/messages", with, []byte(`{"model":"claude-opus-5-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`))
	}
	if n := g.Stats().EpochCount; n < 3 {
		t.Fatalf("%d epochs", n)
	}
	found = map[string]string{"refusals": refusals}
	at := func(path string) string {
		_, body := send(t, http.MethodGet, admin+path, map[string]string{"X-Condense-Token": tokens.of["ops"]}, nil)
		return string(body)
	}
	found["/metrics"] = at("/metrics")
	seen := map[string]bool{"/condense/": false, "/condense/status": false, "/condense/data": false, "/condense/live": false}
	for more := true; more; {
		more = false
		for path, done := range seen {
			if done {
				continue
			}
			seen[path], more = true, true
			page := at(path)
			found["the pages"] += page
			for _, to := range links.FindAllStringSubmatch(page, -1) {
				if _, known := seen[to[1]]; !known {
					seen[to[1]] = false
				}
			}
		}
	}
	if len(seen) < 5 {
		t.Errorf("only the pages %v were looked at", seen)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := g.Close(); err != nil { // writes the statistics too
		t.Fatal(err)
	}
	if err := pages.Close(); err != nil { // and this what was measured
		t.Fatal(err)
	}
	spans, err := json.Marshal(m.spans.GetSpans())
	if err != nil {
		t.Fatal(err)
	}
	found["traces"], found["logs"] = string(spans), logs.String()+audit.String()
	db, err := store.Open(t.Context(), address) // what is compressed there is not in the export
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	records, err := db.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var export strings.Builder
	for _, r := range records {
		all, err := db.Load(t.Context(), r.Key)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			fmt.Fprintf(&export, "%+v %s\n", one.Key, one.Data)
		}
		kept, err := db.Kept(t.Context(), r.Key.Tenant, r.Set)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range kept {
			export.Write(o.Data)
		}
	}
	found["an export"] = export.String()
	return credentials, found
}

var (
	links = regexp.MustCompile(`(?:href|src)="(/condense/[^"#]*)"`)
	inHex = regexp.MustCompile(`\\x([0-9a-f]+)`)
)

// binary adds to a dump its binary data as it is.
func binary(dump []byte) string {
	all := bytes.NewBuffer(dump)
	for _, m := range inHex.FindAllSubmatch(dump, -1) {
		data, err := hex.AppendDecode(nil, m[1])
		if err == nil {
			all.Write(data)
		}
	}
	return all.String()
}

// formsOf are the forms in which a credential could be kept by mistake.
func formsOf(c string) map[string][]byte {
	forms := map[string][]byte{"the text": []byte(c), "hexadecimal": []byte(hex.EncodeToString([]byte(c)))}
	if raw, err := hex.DecodeString(c); err == nil {
		forms["the bytes"] = raw
	}
	for _, coding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before, skip := range []int{0, 2, 3} { // at any place in a longer text
			text := coding.EncodeToString(append(make([]byte, before), c...))
			forms[fmt.Sprint("base64 after ", before, coding == base64.RawURLEncoding)] = []byte(text[skip : len(text)-3])
		}
	}
	for _, text := range []string{c, "Bearer " + c, c + "\n"} {
		sha, long, old, older := sha256.Sum256([]byte(text)), sha512.Sum512([]byte(text)), sha1.Sum([]byte(text)), md5.Sum([]byte(text))
		for name, sum := range map[string][]byte{"SHA-256": sha[:], "SHA-512": long[:], "SHA-1": old[:], "MD5": older[:]} {
			forms[name+" of "+text], forms[name+" in hexadecimal of "+text] = sum[:12], []byte(hex.EncodeToString(sum)[:24])
			forms[name+" in base64 of "+text] = []byte(base64.RawStdEncoding.EncodeToString(sum)[:16])
		}
	}
	return forms
}

// What is forgotten of a tenant is gone, from the files of the database too, and a gateway that runs meanwhile, with answers under way, does not bring it
// back. Others keep theirs. The conversation goes on from what its client sends.
func TestForgottenTenant(t *testing.T) {
	testkit.Slow(t)
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		t.Run(database, func(t *testing.T) {
			var s *pgtest.Server
			address := filepath.Join(t.TempDir(), "serve.db")
			if database == "PostgreSQL" {
				s = pgtest.Start(t)
				address = s.URL()
			}
			tokens := tokensFile(t, "acme", "other")
			hold, reached := make(chan struct{}), make(chan struct{}, 1)
			var holding atomic.Bool
			p := newPlay(t, upstream.Options{Script: upstream.Loop(60, 2200, nil), Fault: func(upstream.Record) *upstream.Fault {
				if !holding.CompareAndSwap(true, false) {
					return nil
				}
				reached <- struct{}{}
				return &upstream.Fault{Hold: hold}
			}}, claude("s"), func(o *live.Options) { o.Access.Tokens, o.Store.Path = tokens.path, address })
			p.client.Tools = []string{"mcp__condense__recall"}
			as := func(name string) map[string]string {
				return map[string]string{"X-Condense-Token": tokens.of[name], "X-Condense-Recall": secret}
			}
			p.client.Header = http.Header{"X-Condense-Token": {tokens.of["other"]}, "X-Condense-Recall": {secret}}
			other := *p.client
			o := &play{Gateway: p.Gateway, vendor: p.vendor, client: &other}
			o.begin(t)
			o.untilEpoch(t, 1)
			p.client.Header = http.Header{"X-Condense-Token": {tokens.of["acme"]}, "X-Condense-Recall": {secret}}
			p.begin(t)
			p.untilEpoch(t, 2)
			p.step(t)
			handles := promises(t, p.lastBody())
			if len(handles) == 0 {
				t.Fatal("no handles")
			}
			recalled := func(name string) (n int) {
				for h := range handles {
					if _, failed, _ := ask(t, p.server.URL+"/mcp", as(name), "recall", object{"handle": h}); !failed {
						n++
					}
				}
				return n
			}
			if recalled("acme") == 0 {
				t.Fatal("nothing can be recalled")
			}

			holding.Store(true)
			answered := make(chan error, 1)
			go func() {
				_, _, err := p.client.Step(t.Context())
				answered <- err
			}()
			<-reached
			db, err := store.Open(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			before, err := db.List(t.Context(), "acme")
			if err != nil {
				t.Fatal(err)
			}
			bytesBefore, err := db.KeptBytes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n, err := db.Forget(t.Context(), "acme"); err != nil || n != len(before) {
				t.Fatalf("%d records of %d were deleted, %v", n, len(before), err)
			}
			close(hold)
			if err := <-answered; err != nil {
				t.Fatal(err)
			}
			http.DefaultClient.CloseIdleConnections()
			gone := func(when string) {
				t.Helper()
				if records, err := db.List(t.Context(), "acme"); err != nil || len(records) > 0 {
					t.Errorf("%s: %d records, %v", when, len(records), err)
				}
				for _, r := range before {
					if kept, err := db.Kept(t.Context(), r.Key.Tenant, r.Set); err != nil || len(kept) > 0 {
						t.Errorf("%s: %d originals, %v", when, len(kept), err)
					}
				}
			}
			gone("when the answer under way has ended")
			if n := recalled("acme"); n > 0 {
				t.Errorf("%d handles can be recalled", n)
			}
			if after, err := db.KeptBytes(t.Context()); err != nil || after == 0 || after >= bytesBefore {
				t.Errorf("%d bytes of originals, of %d before: %v", after, bytesBefore, err)
			}
			var text string
			if s != nil {
				text = string(s.Dump(t))
			} else {
				files, err := filepath.Glob(address + "*")
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					text += read(t, f)
				}
			}
			if strings.Contains(text, "acme:") || !strings.Contains(text, "other:") {
				t.Error("the database still has records of the tenant, or has none of the other")
			}

			o.step(t)
			for range 6 {
				p.step(t)
			}
			for _, r := range p.vendor.Refusals() {
				if r.Rule != "binding" { // of what was written after the view that is forgotten: it is left out, and sent again
					t.Errorf("refused: %s: %s", r.Rule, r.Error)
				}
			}
			if n := p.Stats().EpochCount; n < 3 {
				t.Errorf("%d epochs", n)
			}
		})
	}
}

// Whatever two tenants send as session, agent, account and key, also the same, their conversations are two, and one's is under its own name.
func FuzzTenantsDoNotMeet(f *testing.F) {
	for _, id := range []string{
		"", "s", "the-same", "../../etc/passwd", "a:b", "b:0123456789abcdef0123456789abcdef", "a", "stats", "usage", "opening:00", "'; DROP TABLE lineage; --",
		"a\x00b", "\u202eabc", strings.Repeat("x", 300), `{"device_id":"d","account_uuid":"u","session_id":"s"}`, "user_0_account__session_0", "%00", "a/b", "*", "compress:0", "ünïcode",
	} {
		f.Add(id, id, id, id)
		f.Add(id, "s", "k", "")
		f.Add("s", id, "k", "acc")
		f.Add("s", "a", id, "")
		f.Add("s", "a", "sk-ant-oat01-x", id)
	}
	tokens := &tokenFile{path: filepath.Join(f.TempDir(), "tokens"), of: map[string]string{}}
	for _, name := range []string{"a", "b"} {
		token := access.Token{Tenant: name}
		tokens.of[name] = token.New()
		if err := access.Add(tokens.path, &token); err != nil {
			f.Fatal(err)
		}
	}
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"type":"message","role":"assistant","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":10,"output_tokens":1}}`))
	}))
	f.Cleanup(vendor.Close)
	h := hostOf(f)
	var mu sync.Mutex
	var last *live.Exchange
	g, err := live.New(h, &live.Options{
		Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": vendor.URL, "openai": vendor.URL}},
		Access:    live.Access{Tokens: tokens.path},
		Bounds:    live.Bounds{Deadline: time.Minute},
		Reports: live.Reports{Record: func(_ context.Context, e *live.Exchange) {
			mu.Lock()
			defer mu.Unlock()
			kept := *e
			last = &kept
		}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = g.Close() })
	f.Fuzz(func(t *testing.T, session, agent, key, account string) {
		of := map[string]string{}
		for _, name := range []string{"a", "b", "a"} {
			body, err := json.Marshal(object{
				"model": "claude-sonnet-4-5", "max_tokens": 100, "tools": []object{{"name": "t", "input_schema": object{"type": "object"}}},
				"metadata": object{"user_id": account},
				"messages": []object{{"role": "user", "content": "Do it."}, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "Again."}},
			})
			if err != nil {
				t.Skip(err)
			}
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/v1/messages", bytes.NewReader(body))
			r.RemoteAddr = "127.0.0.1:1"
			r.Header = http.Header{
				"X-Condense-Token": {tokens.of[name]}, "X-Api-Key": {key}, "Authorization": {"Bearer " + key}, "Chatgpt-Account-Id": {account}, "X-Claude-Code-Session-Id": {session},
				"X-Claude-Code-Agent-Id": {agent}, "Session-Id": {session}, "Content-Type": {"application/json"},
			}
			if strings.ContainsAny(key+account+session+agent, "\r\n\x00") || !printable(key+account+session+agent) {
				r.Header = http.Header{"X-Condense-Token": {tokens.of[name]}, "Content-Type": {"application/json"}} // what HTTP does not carry; the body does
			}
			mu.Lock()
			last = nil
			mu.Unlock()
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			mu.Lock()
			e := last
			mu.Unlock()
			if w.Code != http.StatusOK || e == nil {
				t.Fatalf("status %d %s", w.Code, w.Body)
			}
			if !strings.HasPrefix(e.Tenant, name+":") {
				t.Fatalf("tenant %s is %s", name, e.Tenant)
			}
			if was := of[name]; was != "" && was != e.Tenant+e.Lineage {
				t.Errorf("the same conversation of %s is another one the second time", name)
			}
			of[name] = e.Tenant + e.Lineage
			for other, is := range of {
				if other != name && strings.HasSuffix(is, e.Lineage) {
					t.Fatalf("tenants %s and %s have one conversation", name, other)
				}
			}
		}
	})
}

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}
