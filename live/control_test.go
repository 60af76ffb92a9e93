package live_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// steps lets the agent of a play go on for some requests.
func steps(t *testing.T, p *play, n int) {
	t.Helper()
	if len(p.client.History) == 0 {
		p.client.History = append(p.client.History, map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": "Read every file."}}})
	}
	for range n {
		if _, _, err := p.client.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// only is the only conversation of a gateway.
func only(t *testing.T, d *control.Controller) *control.Conversation {
	t.Helper()
	all, err := d.Conversations(t.Context(), time.Time{})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d conversations, %v", len(all), err)
	}
	return all[0]
}

// The list names a conversation by the user's first words, without what these say of passwords and keys.
func TestTitlesHaveNoSecrets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, gone string }{
		{"Log in with password: hunter2longer", "hunter2longer"},
		{"run deploy --token xyzzy-77-plugh", "xyzzy-77-plugh"},
		{"export DB_PASSWORD=tr0ub4dor", "tr0ub4dor"},
		{"curl -u admin:opensesame1 https://example.com", "opensesame1"},
		{"see postgres://app:s3cretword@db/x", "s3cretword"},
		{"My key is sk-ant-api03-" + strings.Repeat("aB3", 12), "aB3aB3"},
		{"password:\n\thunter2longer", "hunter2longer"},
	} {
		p := newPlay(t, upstream.Options{}, upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5"}, nil)
		p.client.History = append(p.client.History, map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": tt.text}}})
		steps(t, p, 1)
		if c := only(t, p.Controller()); c.Title == "" || strings.Contains(c.Title, tt.gone) {
			t.Errorf("%q is called %q", tt.text, c.Title)
		}
	}
}

// After Claude Code's own compaction the history begins with words of the program, and says late where the agent works.
func TestTitleAfterACompaction(t *testing.T) {
	t.Parallel()
	p := newPlay(t, upstream.Options{}, upstream.Client{API: upstream.Messages, Model: "claude-opus-5-5", Session: "s1"}, nil)
	say := func(texts ...string) map[string]any {
		var blocks []any
		for _, text := range texts {
			blocks = append(blocks, map[string]any{"type": "text", "text": text})
		}
		return map[string]any{"role": "user", "content": blocks}
	}
	p.client.History = []object{
		say("This session is being continued from a previous conversation that ran out of context. The summary below covers it.\n\nSummary:\nThe user asked for parts."),
		{"role": "system", "content": []any{}, "output_config": map[string]any{"effort": "medium"}},
		{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": "Done."}}},
		say("<local-command-stdout>Compacted</local-command-stdout>\n", "Never delete table 18."),
		{"role": "system", "content": "# Environment\n - Primary working directory: /home/dev/shop\n"},
	}
	steps(t, p, 40)
	if c := only(t, p.Controller()); c.Title != "Never delete table 18." || c.Folder != "/home/dev/shop" || c.Epochs == 0 {
		t.Errorf("title %q, folder %q, %d epochs", c.Title, c.Folder, c.Epochs)
	}
	if s := p.Stats(); len(s.Errors) > 0 || len(p.vendor.Refusals()) > 0 {
		t.Errorf("errors %v, refused %+v", s.Errors, p.vendor.Refusals())
	}
}

// A key in the place of the model's name is in no list.
func TestKeysAreNoNamesOfModels(t *testing.T) {
	t.Parallel()
	p := newPlay(t, upstream.Options{}, upstream.Client{API: upstream.Messages, Model: "sk-ant-api03-" + strings.Repeat("aB3", 12)}, nil)
	steps(t, p, 6)
	all, err := p.Controller().Conversations(t.Context(), time.Time{})
	if text, _ := json.Marshal([]any{all, p.Stats()}); err != nil || bytes.Contains(text, []byte("aB3aB3")) {
		t.Errorf("%v %s", err, text)
	}
}

// sent are the messages that the vendor got last.
func sent(t *testing.T, p *play) (messages []json.RawMessage) {
	t.Helper()
	records := p.vendor.Records()
	var body struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(records[len(records)-1].Body, &body); err != nil {
		t.Fatal(err)
	}
	return body.Messages
}

// An undone conversation is condensed again only when its window is full, and a paused one only when the vendor would refuse it.
func TestUndoneAndPausedConversationsGrow(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	grown := func(prepare func(*play, *control.Controller)) (largest int, p *play) {
		p = newPlay(t, upstream.Options{}, upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", Session: "s"}, nil)
		steps(t, p, 6)
		before := p.Stats().EpochCount
		if prepare != nil {
			prepare(p, p.Controller())
			before = p.Stats().EpochCount
		}
		for range 38 { // the loop has 45 steps
			largest = max(largest, only(t, p.Controller()).Size)
			if p.Stats().EpochCount > before {
				return largest, p
			}
			steps(t, p, 1)
		}
		t.Fatalf("no epoch, %+v", only(t, p.Controller()))
		return 0, nil
	}
	plain, _ := grown(nil)
	undone, p := grown(func(p *play, d *control.Controller) {
		if err := d.Now(t.Context(), only(t, d), session.Order{}); err != nil {
			t.Fatal(err)
		}
		steps(t, p, 1)
		if err := d.Undo(t.Context(), only(t, d)); err != nil {
			t.Fatal(err)
		}
		steps(t, p, 1)
		if c := only(t, d); c.Condensed || !c.Undone {
			t.Fatalf("%+v %+v", c, c.LastOrder)
		}
	})
	if e := p.Stats().Epochs; e[len(e)-1].Reason != "window" {
		t.Errorf("an undone conversation was condensed again for %s", e[len(e)-1].Reason)
	}
	paused, p := grown(func(_ *play, d *control.Controller) {
		if err := d.Pause(t.Context(), only(t, d), true); err != nil {
			t.Fatal(err)
		}
	})
	if paused <= plain || undone <= plain {
		t.Errorf("largest: %d as ever, %d undone, %d paused", plain, undone, paused)
	}
	if paused <= undone {
		t.Errorf("a paused conversation was condensed at %d tokens, before the vendor would refuse it; an undone one at %d", paused, undone)
	}
	if n := len(p.vendor.Refusals()); n > 1 { // the last one forces the epoch
		t.Errorf("%d refusals", n)
	}
}

// What the user protects is sent verbatim by every strategy, through several condensations.
func TestProtectedIsKeptVerbatim(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"", "slidingwindow"} {
		var passed atomic.Int64
		p := newPlay(t, upstream.Options{}, upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", Session: "s"}, func(o *live.Options) {
			o.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
		})
		d := p.Controller()
		steps(t, p, 5)
		original := sent(t, p)
		if err := d.Protect(t.Context(), only(t, d), session.Protection{Message: 5}, true); err != nil {
			t.Fatal(err)
		}
		if err := d.Protect(t.Context(), only(t, d), session.Protection{Text: "src/service/handler1070.ts"}, true); err != nil {
			t.Fatal(err)
		}
		var text struct {
			Content []struct{ Content []struct{ Text string } }
		}
		var flat struct{ Content []struct{ Content string } }
		said := ""
		if json.Unmarshal(original[4], &text) == nil && len(text.Content) > 0 && len(text.Content[0].Content) > 0 {
			said = text.Content[0].Content[0].Text
		} else if json.Unmarshal(original[4], &flat) == nil && len(flat.Content) > 0 {
			said = flat.Content[0].Content
		}
		if len(said) < 1000 {
			t.Fatalf("message 5 is no long result: %s", original[4])
		}
		quoted, err := json.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			passed.Add(int64(time.Minute))
			if err := d.Now(t.Context(), only(t, d), session.Order{Percent: 10, Provider: provider}); err != nil {
				t.Fatal(err)
			}
			steps(t, p, 3)
			if c := only(t, d); c.LastOrder == nil || !c.LastOrder.Changed {
				t.Errorf("%s: %+v", provider, c.LastOrder)
			}
			records := p.vendor.Records()
			if !bytes.Contains(records[len(records)-1].Body, bytes.Trim(quoted, `"`)) {
				t.Errorf("%s: the protected result is not in what is sent", provider)
			}
			if !bytes.Contains(records[len(records)-1].Body, []byte("src/service/handler1070.ts:41:")) {
				t.Errorf("%s: the protected text is not in what is sent", provider)
			}
		}
		if len(p.vendor.Refusals()) > 0 {
			t.Errorf("%s: %d refusals", provider, len(p.vendor.Refusals()))
		}
	}
}

// A text that occurs nowhere in the conversation is refused at once, before and after condensations and a rewind; any part of one that
// does is kept.
func TestProtectedOccursSomewhere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c upstream.Client) {
		loop := upstream.Loop(40, 2200, map[int]string{2: `Zürich; crème brûlée №7 e\u0301 façade; 東京は晴れ 🦘; привет, мир; a=>b ##!?; 40.7% of 0815`})
		p := newPlay(t, upstream.Options{Script: loop}, c, onEveryUpstream)
		d := p.Controller()
		protect := func(text string) error {
			return d.Protect(t.Context(), only(t, d), session.Protection{Text: text}, true)
		}
		p.steps(t, 4)
		back := slices.Clone(p.client.History)
		for range 3 {
			p.steps(t, 8)
			all := p.messages(t)
			p.steps(t, 1)
			for _, text := range []string{
				"quokka", "the zebra sleeps at noon", "unit1061_never.go", "прощай, сад вишнёвый", "秋の夜の長い物語", "ไม่มีที่นี่", "🐨🐨🐨🐨", "e == a || b << 9 &&",
				"}~{ ^_^ <<>> ;;", "99 88.77 6,5,4 #3", "x y z w v u t s q",
			} {
				if err := protect(text); err == nil || !strings.Contains(err.Error(), "occurs nowhere") {
					t.Errorf("%q: %v", text, err)
				}
			}
			for i := range 30 {
				said := strings.NewReplacer(`\u0026`, "&", `\u003e`, ">").Replace(messages.Text(all[i*len(all)/30].Parts)) // as the client writes it
				half := said[len(said)*i/60 : len(said)*(i+30)/60]
				for _, part := range []string{half, half[:min(3, len(half))], half[max(0, len(half)-4-i):]} {
					if part = strings.ToValidUTF8(part, ""); len(part) < 3 {
						continue
					}
					if err := errors.Join(protect(part), d.Protect(t.Context(), only(t, d), session.Protection{Text: part}, false)); err != nil {
						t.Errorf("%q: %v", part, err)
					}
				}
			}
		}
		p.client.History, p.client.Run = back, func(string) string { return "My quokka." }
		p.steps(t, 2)
		if err := protect("quokka"); err != nil {
			t.Error(err)
		}
		if c := only(t, d); len(c.Protections) != 1 {
			t.Errorf("%+v", c.Protections)
		}
	})
}

// orders is the secret of the user of a gateway without a token.
const orders = "the secret of the user"

// At the admin address its user has everything that the command has; web pages of other origins cannot post.
func TestLiveAtTheAdminAddress(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "s3cret-s3cret-s3cret"} {
		p := newPlay(t, upstream.Options{}, upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", Session: "s", Header: http.Header{"X-Condense-Token": {token}}}, func(o *live.Options) { o.Access.Token, o.Access.Orders = token, orders })
		steps(t, p, 6)
		admin := adminOf(t, p.Gateway)
		id := only(t, p.Controller()).ID
		ask := func(method, path, kind, body string) (int, string) {
			header := map[string]string{"X-Condense-Token": cmp.Or(token, orders)}
			if kind != "" {
				header["Content-Type"] = kind
			}
			res, answer := send(t, method, admin+path, header, []byte(body))
			return res.StatusCode, string(answer)
		}
		for _, tt := range []struct {
			method, path, kind, body string
			want                     int
			says                     string
		}{
			{"GET", "/condense/live", "", "", 200, id},
			{"GET", "/condense/live?since=none", "", "", 400, "duration"},
			{"POST", "/condense/live/" + id + "/now", "", `{}`, 415, "application/json"},
			{"POST", "/condense/live/" + id + "/now", "application/json", `{`, 400, "JSON"},
			{"POST", "/condense/live/" + id + "/now", "application/json", `{"profile": "none"}`, 400, "none"},
			{"POST", "/condense/live/" + id + "/now", "application/json", `{"provider": "none"}`, 400, "none"},
			{"POST", "/condense/live/" + id + "/stop", "application/json", `{}`, 404, "now, undo, pause"},
			{"POST", "/condense/live/" + id[:6] + "0/now", "application/json", `{}`, 404, "unknown conversation"},
			{"POST", "/condense/live/" + id + "/undo", "application/json", `{}`, 409, "nothing to undo"},
			{"GET", "/condense/live/" + id + "/undo", "", "", 409, "nothing to undo"},
			{"POST", "/condense/live/" + id + "/protect", "application/json", `{"text": "Read every file"}`, 200, `"protections"`},
			{"POST", "/condense/live/" + id + "/protect", "application/json", `{"message": 999}`, 409, "no message 999"},
			{"POST", "/condense/live/" + id + "/pause", "application/json", "", 200, `"paused": true`},
			{"POST", "/condense/live/" + id + "/resume", "application/json", "", 200, id},
			{"POST", "/condense/live/" + strings.ToLower(id[:6]) + "/now", "application/json", `{"percent": 10}`, 200, `"do": "now"`},
		} {
			if status, text := ask(tt.method, tt.path, tt.kind, tt.body); status != tt.want || !strings.Contains(text, tt.says) {
				t.Errorf("%s %s %s: %d %s, want %d and %s", tt.method, tt.path, tt.body, status, text, tt.want, tt.says)
			}
		}
		steps(t, p, 1)
		_, all := ask("GET", "/condense/live", "", "")
		status, view := ask("GET", "/condense/live/"+id, "", "")
		if !strings.Contains(all, "Read every file") || status != http.StatusOK {
			t.Errorf("token %q: no texts are shown: view %d %s", token, status, view[:min(len(view), 300)])
		}
		if c := only(t, p.Controller()); !c.Condensed || !c.LastOrder.Changed {
			t.Errorf("%+v", c)
		}
	}
}

// TestToolsAndPromptsAsItems: Codex' newest models send their tools and prompts as items, in front of where it works and what it is to do.
func TestToolsAndPromptsAsItems(t *testing.T) {
	t.Parallel()
	p := newPlay(t, upstream.Options{Script: upstream.Loop(45, 2200, nil)}, codex(true), nil)
	p.client.History = []object{
		{"type": "additional_tools", "role": "developer", "tools": []any{object{"type": "custom", "name": "exec", "description": strings.Repeat("a tool ", 3000)}}},
		{"type": "message", "role": "developer", "content": strings.Repeat("a prompt ", 2000)},
		{"type": "message", "role": "developer", "content": "Skills."},
		{"type": "message", "role": "developer", "content": "Agents."},
		{"type": "message", "role": "developer", "content": "Modes."},
		{"type": "message", "role": "user", "content": "<environment_context>\n  <cwd>/home/me/shop</cwd>"},
		first(upstream.Responses, "Read all the files, one after the other."),
	}
	for _, n := range []int{3, 40} {
		p.steps(t, n)
		c := only(t, p.Controller())
		if c.Folder != "/home/me/shop" || c.Title != "Read all the files, one after the other." {
			t.Errorf("the folder is %q, the title %q", c.Folder, c.Title)
		}
		sum := 0
		for _, n := range c.Parts {
			sum += n
		}
		if c.Parts["tools"] < 3000 || c.Parts["system"] < 2000 || c.Condensed != (n == 40) || sum < c.Size*9/10 || sum > c.Size*11/10 {
			t.Errorf("condensed %v: of %d tokens the parts are %v", c.Condensed, c.Size, c.Parts)
		}
	}
}

// Each epoch of a conversation is told as what went and what stands for it, also after later ones; and the list says what a request is
// made of. Nobody but its user is shown a text.
func TestEpochsAtTheAdminAddress(t *testing.T) {
	t.Parallel()
	p := newPlay(t, upstream.Options{Script: upstream.Loop(90, 2200, nil)}, recalls(claude("s1")), func(o *live.Options) { o.Access.Orders, o.Epoch.Target = orders, 20 })
	p.begin(t)
	p.untilEpoch(t, 3)
	admin, c := adminOf(t, p.Gateway), only(t, p.Controller())
	sum := 0
	for _, n := range c.Parts {
		sum += n
	}
	if c.Parts["condensed"] == 0 || c.Parts["system"] == 0 || c.Parts["tools"] == 0 || sum < c.Size*9/10 || sum > c.Size*11/10 {
		t.Errorf("of %d tokens the parts are %v", c.Size, c.Parts)
	}
	last := 0
	for i, e := range p.Stats().Epochs {
		path := admin + "/condense/live/" + c.ID + "/epochs/" + e.Time.Format(time.RFC3339Nano)
		if res, text := send(t, http.MethodGet, path, nil, nil); res.StatusCode != http.StatusForbidden || strings.Contains(string(text), "messages") {
			t.Fatalf("a stranger gets %d %s", res.StatusCode, text)
		}
		res, text := send(t, http.MethodGet, path, map[string]string{"X-Condense-Token": orders}, nil)
		var v control.View
		if err := json.Unmarshal(text, &v); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("epoch %d: %d %s", i+1, res.StatusCode, text)
		}
		went, stands, first := 0, 0, 0
		for _, m := range v.Messages {
			switch {
			case m.Hidden && m.Number > 0:
				went, first = went+1, cmp.Or(first, m.Number)
			case m.Condensed && !m.Hidden:
				stands++
			}
		}
		if went == 0 || stands == 0 || first <= last || v.Hidden <= last {
			t.Errorf("epoch %d hid %d messages, from %d, with %d in their place; the one before it had %d", i+1, went, first, stands, last)
		}
		last = v.Hidden
	}
	for path, want := range map[string]int{"2026-01-02T03:04:05Z": http.StatusNotFound, "yesterday": http.StatusNotFound} {
		if res, text := send(t, http.MethodGet, admin+"/condense/live/"+c.ID+"/epochs/"+path, map[string]string{"X-Condense-Token": orders}, nil); res.StatusCode != want {
			t.Errorf("%s: %d %s", path, res.StatusCode, text)
		}
	}
}

// If everything is protected, the vendor's own words reach the agent, and with less protected it goes on.
func TestTooMuchIsProtected(t *testing.T) {
	t.Parallel()
	p := newPlay(t, upstream.Options{}, upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", Session: "s"}, nil)
	d := p.Controller()
	steps(t, p, 1)
	if err := d.Pause(t.Context(), only(t, d), true); err != nil { // else it is condensed before it is full
		t.Fatal(err)
	}
	var refused error
	for n := 1; n < 40 && refused == nil; n++ {
		c := only(t, d)
		for m := range c.Messages {
			if err := d.Protect(t.Context(), c, session.Protection{Message: m + 1}, true); err != nil {
				t.Fatal(err)
			}
		}
		_, _, refused = p.client.Step(t.Context())
	}
	if refused == nil || !strings.Contains(refused.Error(), "prompt is too long") {
		t.Fatalf("want the vendor's refusal, got %v", refused)
	}
	c := only(t, d)
	for _, one := range c.Protections {
		if err := d.Protect(t.Context(), c, session.Protection{Message: one.Message}, false); err != nil {
			t.Fatal(err)
		}
	}
	steps(t, p, 2)
	if c := only(t, d); !c.Condensed {
		t.Errorf("%+v", c)
	}
}

// A tap keeps the bytes of an answer. Its pause is called after the first part.
type tap struct {
	http.ResponseWriter
	passed *bytes.Buffer
	pause  func()
}

func (w *tap) Write(p []byte) (int, error) {
	first := w.passed.Len() == 0
	w.passed.Write(p)
	n, err := w.ResponseWriter.Write(p)
	if first && w.pause != nil {
		w.Flush()
		w.pause()
	}
	return n, err
}

// Flush lets answers stream.
func (w *tap) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// What the user asks for while an answer streams leaves the stream alone and is done with the next request, in the middle of the
// agent's loop, whether
// the model binds its thinking or not: nothing is refused, and what was undone is the client's own.
func TestOrdersWhileAnAnswerStreams(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, tt := range []struct{ model, thinking string }{
		{"claude-opus-5-5", "adaptive"}, // thinking is bound to what was sent before it
		{"claude-sonnet-4-5", "enabled"},
		{"claude-sonnet-4-5", ""},
	} {
		t.Run(tt.model+"/"+tt.thinking, func(t *testing.T) {
			t.Parallel()
			streams(t, &upstream.Client{API: upstream.Messages, Model: tt.model, Thinking: tt.thinking, Stream: true, Session: "s"})
		})
	}
}

func streams(t *testing.T, client *upstream.Client) {
	t.Helper()
	var said, got bytes.Buffer // of the vendor, and to the client
	var ask func()             // while the answer streams
	begun, gate := make(chan bool), make(chan bool)
	vendor := upstream.New(upstream.Options{Window: window, Script: agentLoop})
	v := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		vendor.ServeHTTP(&tap{w, &said, func() {
			if ask != nil {
				<-gate
			}
		}}, r)
	}))
	t.Cleanup(v.Close)
	g, s := serveWith(t, v.URL, withWindow(window), nil)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(&tap{w, &got, func() {
			if ask != nil {
				begun <- true
			}
		}}, r)
	})
	client.URL = s.URL
	p, d := &play{Gateway: g, vendor: vendor, server: s, client: client}, g.Controller()
	steps(t, p, 6)
	during := func(order func(*control.Conversation) error) {
		t.Helper()
		said.Reset()
		got.Reset()
		ask = func() {
			<-begun
			defer func() { gate <- true }()
			before := p.Stats()
			err := order(only(t, d))
			if now := p.Stats(); err != nil || now.EpochCount != before.EpochCount || now.Undone != before.Undone {
				t.Errorf("done while the answer streamed: %v %+v", err, now)
			}
		}
		go ask()
		steps(t, p, 1)
		if !bytes.Equal(said.Bytes(), got.Bytes()) || got.Len() < 100 {
			t.Errorf("the vendor said %d bytes, and the client got %d", said.Len(), got.Len())
		}
	}
	during(func(c *control.Conversation) error {
		if c.Epochs != 0 || c.Condensed || c.Title != "Read every file." || c.Window != window {
			t.Errorf("before: %+v", c)
		}
		return d.Now(t.Context(), c, session.Order{Percent: 10})
	})
	during(func(c *control.Conversation) error {
		if o := c.LastOrder; c.Epochs != 1 || !c.Condensed || c.Order != nil || o == nil || !o.Changed || o.After >= o.Before {
			t.Errorf("asked for a condensation: %+v, %+v", c, o)
		}
		plan, err := d.PlanUndo(t.Context(), c)
		if err == nil && (!plan.Own || plan.Size <= c.Size || plan.Cost <= plan.Instead) {
			t.Errorf("%+v", plan)
		}
		return errors.Join(err, d.Undo(t.Context(), c))
	})
	var kept json.RawMessage
	during(func(c *control.Conversation) error {
		if c.Condensed || !c.Undone || c.Epochs != 2 {
			t.Errorf("undone: %+v, %+v", c, c.LastOrder)
		}
		all, records := sent(t, p), vendor.Records()
		if identical := bytes.Equal(records[len(records)-1].Body, client.Body); identical != (client.Model == "claude-sonnet-4-5") || len(all) != len(client.History) {
			t.Errorf("the client's own bytes: %t; of a model that binds its thinking, that of the last turns is left out", identical)
		}
		kept = all[4]
		return errors.Join(d.Protect(t.Context(), c, session.Protection{Message: 5}, true), d.Now(t.Context(), c, session.Order{Percent: 10}))
	})
	during(func(c *control.Conversation) error {
		if !c.Condensed || !slices.ContainsFunc(sent(t, p), func(m json.RawMessage) bool { return bytes.Equal(m, kept) }) {
			t.Errorf("condensed again, without what is protected: %+v %s", c, kept)
		}
		return nil
	})
	if s := p.Stats(); s.Undone != 1 || len(s.Errors) > 0 || len(vendor.Refusals()) > 0 {
		t.Errorf("%d undone, errors %v, refusals %v", s.Undone, s.Errors, vendor.Refusals())
	}
}
