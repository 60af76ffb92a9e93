package live_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

var markers = regexp.MustCompile(`only-of-tenant-\d\d`)

// Twenty tenants at once, with the same prompts, the same repository, the same key of the vendor, the same session and the same recall
// secret. One line of one result is each tenant's own: what is sent for a tenant, and what it recalls, never has that of another.
func TestTenantsDoNotMeet(t *testing.T) {
	const n, own = 20, 8 // the result with the line
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
	g, server := serveWith(t, front.URL, withWindow(window), func(o *live.Options) { o.Tokens, o.Store = tokens.path, file })
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
			for _, m := range markers.FindAllString(string(r.Body), -1) {
				if seen++; m != "only-of-tenant-"+id {
					crossings++
					t.Errorf("request %d of tenant %s has %s", r.N, id, m)
				}
			}
			for h := range promises(t, r.Body) {
				handles[h] = true
			}
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

// A copy of the database has nothing with which a request could be sent in the name of its users: no key of a vendor, no token, no recall secret, in no
// form, and no hash of one that was made without a key.
func TestLeakedDatabaseHasNoCredential(t *testing.T) {
	for name, change := range map[string]func(*live.Options){
		"key in the store":  func(*live.Options) {},
		"key of the server": func(o *live.Options) { o.Key = []byte("a key of the server that is long enough") },
	} {
		t.Run(name, func(t *testing.T) {
			tokens := tokensFile(t, "acme")
			dir := t.TempDir()
			p := newPlay(t, upstream.Options{Script: upstream.Loop(26, 3000, nil)}, claude("s"), func(o *live.Options) {
				o.Tokens, o.Store = tokens.path, filepath.Join(dir, "serve.db")
				change(o)
			})
			credentials := []string{tokens.of["acme"], "recall-secret-0123456789abcdef"}
			if name == "key of the server" {
				credentials = append(credentials, p.RecallSecret())
			}
			for i, header := range []http.Header{
				{"X-Api-Key": {"sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"}},
				{"X-Api-Key": {""}, "Authorization": {"Bearer sk-ant-oat01-ABCDEFGHIJKLMNOPQRSTUVWXYZ"}, "Anthropic-Beta": {"oauth-2025-04-20"}},
				{"Authorization": {"Bearer sk-proj-zyxwvutsrqponmlkjihgfedcba"}, "Api-Key": {"0123456789abcdefABCDEF"}},
			} {
				for _, v := range header {
					if secret := strings.TrimPrefix(v[0], "Bearer "); len(secret) > 15 && !strings.HasPrefix(secret, "oauth") {
						credentials = append(credentials, secret)
					}
				}
				c := claude(fmt.Sprintf("session-%d", i))
				c.Header, c.Tools = header.Clone(), []string{"mcp__condense__recall"}
				c.URL = p.server.URL + "/token/" + tokens.of["acme"] + "/recall/" + credentials[1]
				if _, err := c.Say(t.Context(), task); err != nil {
					t.Fatal(err)
				}
			}
			if s := p.Stats(); s.EpochCount < 3 {
				t.Fatalf("%d epochs", s.EpochCount)
			}
			if err := p.Close(); err != nil { // writes the statistics too
				t.Fatal(err)
			}
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var leaked []byte
			for _, f := range files {
				leaked = append(leaked, read(t, filepath.Join(dir, f.Name()))...)
			}
			if !bytes.Contains(leaked, []byte("acme:")) {
				t.Fatal("nothing of the tenant is in the database")
			}
			for _, c := range credentials {
				for form, hidden := range formsOf(c) {
					if bytes.Contains(bytes.ToLower(leaked), bytes.ToLower(hidden)) {
						t.Errorf("%s of %s… is in the database", form, c[:8])
					}
				}
			}
		})
	}
}

// formsOf are the forms in which a credential could be kept by mistake.
func formsOf(c string) map[string][]byte {
	forms := map[string][]byte{"the text": []byte(c), "hexadecimal": []byte(hex.EncodeToString([]byte(c))), "base64": []byte(base64.RawStdEncoding.EncodeToString([]byte(c)))}
	if raw, err := hex.DecodeString(c); err == nil {
		forms["the bytes"] = raw
	}
	sha, old, older := sha256.Sum256([]byte(c)), sha1.Sum([]byte(c)), md5.Sum([]byte(c))
	for name, sum := range map[string][]byte{"SHA-256": sha[:], "SHA-1": old[:], "MD5": older[:]} {
		forms[name], forms[name+" in hexadecimal"] = sum[:12], []byte(hex.EncodeToString(sum)[:24])
		forms[name+" in base64"] = []byte(base64.RawStdEncoding.EncodeToString(sum)[:16])
	}
	return forms
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
		Upstreams: map[string]string{"anthropic": vendor.URL, "openai": vendor.URL}, Tokens: tokens.path, Deadline: time.Minute,
		Record: func(_ context.Context, e *live.Exchange) {
			mu.Lock()
			defer mu.Unlock()
			kept := *e
			last = &kept
		},
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
