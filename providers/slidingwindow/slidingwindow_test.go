package slidingwindow_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/registry"
)

// bytes4 is a counter that is easy to reckon with: four bytes are a token.
type bytes4 struct{}

func (bytes4) Count(parts ...core.Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			n += (len(p) + 3) / 4
		case core.ToolCall:
			n += (len(p.Name) + len(p.Args) + 3) / 4
		case core.ToolResult:
			n += bytes4{}.Count(p.Content...)
		case core.Image:
			n += 1600
		case core.Reasoning:
			n += (len(p.Text) + 3) / 4
		case core.Opaque:
			n += (len(p.JSON) + 3) / 4
		}
	}
	return n
}

// chat returns messages of 100 tokens each, "u" by the user, "a" by the assistant, "c" an
// assistant's call, "r" the result to the call before, "s" a system message.
func chat(script string) []core.Message {
	var out []core.Message
	for i, k := range script {
		m := core.Message{ID: fmt.Sprintf("%c%d", k, i), Role: core.RoleUser}
		text := core.Text(fmt.Sprintf("%-384d", i))
		switch k {
		case 'u':
			m.Parts = []core.Part{text}
		case 'a':
			m.Role, m.Parts = core.RoleAssistant, []core.Part{text}
		case 'c':
			m.Role, m.Parts = core.RoleAssistant, []core.Part{core.ToolCall{ID: fmt.Sprint("call", i), Name: "read", Args: fmt.Sprintf(`{"p":"%-372d"}`, i)}}
		case 'r':
			m.Parts = []core.Part{core.ToolResult{CallID: fmt.Sprint("call", i-1), Content: []core.Part{text}}}
		case 's':
			m.Role, m.Parts = core.RoleSystem, []core.Part{text}
		}
		out = append(out, m)
	}
	core.Measure(bytes4{}, out)
	return out
}

func request(messages []core.Message, target int) *core.Request {
	return &core.Request{Messages: messages, Counter: bytes4{}, Budget: core.Budget{Limit: target, Target: target}}
}

// condense runs a provider through the chain, which checks every rule.
func condense(t *testing.T, c slidingwindow.Config, req *core.Request) (*core.ChainResult, error) {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	n := 0
	chain, err := core.NewChain(
		[]core.NamedProvider{{Name: "window", Provider: slidingwindow.New(c)}},
		&core.ChainOptions{NewID: func() string { n++; return fmt.Sprint("new", n) }})
	if err != nil {
		t.Fatal(err)
	}
	return chain.Run(t.Context(), req)
}

func ids(messages []core.Message) string {
	var s []string
	for _, m := range messages {
		s = append(s, m.ID)
	}
	return strings.Join(s, " ")
}

func TestModes(t *testing.T) {
	config := func(mode string, set func(*slidingwindow.Config)) slidingwindow.Config {
		c := slidingwindow.DefaultConfig()
		c.Mode = mode
		if set != nil {
			set(&c)
		}
		return c
	}
	for _, tt := range []struct {
		name   string
		config slidingwindow.Config
		script string
		target int
		want   string
	}{
		{"on target", config("budget", nil), "uauaua", 600, "u0 a1 u2 a3 u4 a5"},
		{"budget", config("budget", nil), "uauauaua", 450, "u0 new1 u2 u4 u6"},
		{"answers fill the room that words leave", config("budget", nil), "uauauaua", 650, "u0 new1 u2 u4 a5 u6 a7"},
		{"the first and the last two before the others", config("budget", nil), "uauauaua", 350, "u0 new1 u4 u6"},
		{"no first", config("budget", func(c *slidingwindow.Config) { c.KeepFirst = 0 }), "uauauaua", 350, "new1 u2 u4 u6"},
		{"groups stay whole", config("budget", nil), "ucrcrcrcr", 660, "u0 new1 c5 r6 c7 r8"},
		{"the next is cut if much would be unused", config("budget", nil), "ucrcr", 450, "u0 c1 r2 c3 r4"},
		{"system stays", config("budget", nil), "suauaua", 540, "s0 u1 new1 u3 u5 a6"},
		{"half of nothing", config("half", nil), "uaua", 10, "u0 a1 u2 a3"},
		{"half", config("half", nil), "uauauauauau", 1000, "u0 new1 a5 u6 a7 u8 a9 u10"},
		{"half rounds to even", config("half", nil), "uauauauauaua", 1000, "u0 new1 a5 u6 a7 u8 a9 u10 a11"},
		{"half stops before a pair", config("half", nil), "uaucrua", 650, "u0 new1 c3 r4 u5 a6"},
		{"a third", config("half", func(c *slidingwindow.Config) { c.Fraction = 0.34 }), "uauauau", 650, "u0 new1 a3 u4 a5 u6"},
		{"recent by tokens", config("recent", nil), "uauauaua", 350, "new1 u2 u4 u6"},
		{"recent by number", config("recent", func(c *slidingwindow.Config) { c.Messages = 2 }), "uauaua", 590, "new1 u4 a5"},
		{"recent keeps pairs", config("recent", func(c *slidingwindow.Config) { c.Messages = 1 }), "uauacr", 590, "new1 c4 r5"},
		{"middle out", config("middle_out", nil), "uauauauaua", 850, "u0 a1 u2 new1 u4 u6 a7 u8 a9"},
		{"middle out, all tail", config("middle_out", func(c *slidingwindow.Config) { c.HeadShare = 0 }), "uauauaua", 550, "u0 new1 u2 u4 u6 a7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := condense(t, tt.config, request(chat(tt.script), tt.target))
			if tt.config.Mode == slidingwindow.ModeHalf && errors.As(err, new(*core.ExhaustedError)) {
				return // it does not look at the budget
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := ids(got.Messages); s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
}

func TestMarkerSaysWhatIsMissing(t *testing.T) {
	c := slidingwindow.DefaultConfig()
	first, err := condense(t, c, request(chat("ucrcruau"), 480))
	if err != nil {
		t.Fatal(err)
	}
	text := func(m core.Message) string {
		if len(m.Parts) != 1 || m.Kind != core.KindMarker || m.Role != core.RoleUser {
			t.Fatalf("not a marker: %+v", m)
		}
		return string(m.Parts[0].(core.Text))
	}
	if got, want := text(first.Messages[1]), "[… 2 earlier messages, with 1 tool call, left out here to fit the context window]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// Cutting again replaces the marker, and the new one says that it was there.
	more := append(first.Messages, chat("uauaua")[3:]...)
	second, err := condense(t, c, request(more, 480))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(second.Messages[1]), "[… 4 earlier messages, with 1 tool call, and what an earlier note like this stood for left out here to fit the context window]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The marker names the newest media among the hidden messages, also those that an earlier marker named; with no room for names the
// conversation is still within its limit.
func TestMarkerNamesMedia(t *testing.T) {
	shot := core.Image{MediaType: "image/png", Data: base64.StdEncoding.EncodeToString(testkit.PNG(640, 480, 3000))}
	pdf := core.Opaque{Kind: "document", JSON: `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` +
		base64.StdEncoding.EncodeToString(testkit.PDF(3, 2000, false)) + `"}}`}
	shown := func(script string, what ...core.Part) []core.Message {
		all := chat(script)
		for i := range all {
			if r, ok := all[i].Parts[0].(core.ToolResult); ok && len(what) > 0 {
				r.Content = append(r.Content, what...)
				all[i].Parts[0] = r
			}
		}
		core.Measure(bytes4{}, all)
		return all
	}
	marker := func(all []core.Message) string {
		i := slices.IndexFunc(all, func(m core.Message) bool { return m.Kind == core.KindMarker })
		if i < 0 {
			t.Fatal("no marker")
		}
		return string(all[i].Parts[0].(core.Text))
	}
	first, err := condense(t, slidingwindow.DefaultConfig(), request(append(shown("ucr", shot, pdf), chat("___cruau")[3:]...), 530))
	if err != nil {
		t.Fatal(err)
	}
	const ends = " left out here to fit the context window: image 640x480; PDF, 3 pages]"
	if got := marker(first.Messages); !strings.HasSuffix(got, ends) {
		t.Errorf("%s", got)
	}
	second, err := condense(t, slidingwindow.DefaultConfig(), request(append(first.Messages, chat("________auaua")[8:]...), 530))
	if err != nil {
		t.Fatal(err)
	}
	if got := marker(second.Messages); !strings.HasSuffix(got, ends) {
		t.Errorf("again: %s", got)
	}
	many, err := condense(t, slidingwindow.DefaultConfig(), request(shown("u"+strings.Repeat("cr", 30)+"uaua", shot), 2000))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(marker(many.Messages), "image 640x480"); got != 8 {
		t.Errorf("%d names: %s", got, marker(many.Messages))
	}
	least := request(append(shown("ucr", shot, pdf), chat("___uaua")[3:]...), 1)
	least.Budget.Limit = core.FixedTokens(least)
	least.Budget.Target = least.Budget.Limit
	if _, err := condense(t, slidingwindow.DefaultConfig(), least); err != nil {
		t.Error(err)
	}
}

// TestOversize holds that a conversation always ends on target, whatever part of its
// newest message is too large.
func repeated(n int, p core.Part) []core.Part {
	all := make([]core.Part, n)
	for i := range all {
		all[i] = p
	}
	return all
}

func TestOversize(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 4000) // 16,000 tokens
	call := core.ToolCall{ID: "c", Name: "write", Args: `{"path":"x","text":"` + big + `"}`}
	for name, parts := range map[string][2][]core.Part{
		"text":                {{core.Text("go")}, {core.Text(big)}},
		"many texts":          {{core.Text("go")}, {core.Text(big), core.Text("short"), core.Text(big)}},
		"texts without end":   {{core.Text("go")}, repeated(1000, core.Text(big[:160]))}, // each would keep a note
		"results without end": {{core.ToolCall{ID: "c", Name: "read", Args: "{}"}}, {core.ToolResult{CallID: "c", Content: repeated(1000, core.Text(big[:160]))}}},
		"images without end":  {{core.Text("look")}, append(repeated(500, core.Image{MediaType: "image/png", Data: "AAAA"}), core.Text("?"))},
		"arguments":           {{call}, {core.ToolResult{CallID: "c", Content: []core.Part{core.Text("written")}}}},
		"tool result":         {{core.ToolCall{ID: "c", Name: "read", Args: "{}"}}, {core.ToolResult{CallID: "c", Content: []core.Part{core.Text(big), core.Text("end")}}}},
		"both":                {{call}, {core.ToolResult{CallID: "c", Content: []core.Part{core.Text(big)}, IsError: true}}},
		"images":              {{core.Text("look")}, {core.Image{MediaType: "image/png", Data: "AAAA"}, core.Image{MediaType: "image/png", Data: "BBBB"}, core.Text("?")}},
		"opaque":              {{core.Text("go")}, {core.Opaque{Kind: "document", JSON: `"` + big + `"`}}},
		"no UTF-8":            {{core.Text("go")}, {core.Text(strings.Repeat("\xff\xfe", 40000))}},
		"wide runes":          {{core.Text("go")}, {core.Text(strings.Repeat("汉字", 10000))}},
	} {
		t.Run(name, func(t *testing.T) {
			messages := append(chat("ua"),
				core.Message{ID: "x", Role: core.RoleAssistant, Parts: parts[0]},
				core.Message{ID: "y", Role: core.RoleUser, Parts: parts[1]})
			core.Measure(bytes4{}, messages)
			req := request(messages, 1000)
			got, err := condense(t, slidingwindow.DefaultConfig(), req)
			if err != nil {
				t.Fatal(err)
			}
			if got.TokensAfter > 1000 {
				t.Errorf("ended with %d tokens", got.TokensAfter)
			}
			last := got.Messages[len(got.Messages)-1]
			if last.ID != "y" {
				t.Fatalf("the newest message is gone: %s", ids(got.Messages))
			}
			if name == "text" || name == "tool result" {
				if got.TokensAfter < 800 {
					t.Errorf("ended with %d tokens, more than needed were cut", got.TokensAfter)
				}
				s := fmt.Sprint(last.Parts)
				if !strings.Contains(s, "left out here to fit") || !strings.Contains(s, "64000 bytes") {
					t.Errorf("no note of what is missing in %.200s", s)
				}
			}
			for _, m := range got.Messages {
				for _, p := range m.Parts {
					if c, ok := p.(core.ToolCall); ok && !json.Valid([]byte(c.Args)) {
						t.Errorf("arguments are no JSON any more: %.100s", c.Args)
					}
				}
			}
		})
	}
}

func TestProtectedStays(t *testing.T) {
	messages := chat("uauacruaua")
	messages[1].Protected = true
	messages[5].Protected = true // the result of a call: its call stays with it
	got, err := condense(t, slidingwindow.DefaultConfig(), request(messages, 750))
	if err != nil {
		t.Fatal(err)
	}
	if s, want := ids(got.Messages), "u0 a1 u2 new1 c4 r5 u6 u8 a9"; s != want {
		t.Errorf("got %s, want %s", s, want)
	}
}

func TestFloorAboveTargetUsesTheLimit(t *testing.T) {
	messages := chat("uauauaua")
	messages[2].Protected = true
	messages[4].Protected = true
	req := request(messages, 150)
	req.Budget.Limit = 500
	got, err := condense(t, slidingwindow.DefaultConfig(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got.TokensAfter > 500 {
		t.Errorf("ended with %d tokens, above the limit", got.TokensAfter)
	}
}

func TestImpossible(t *testing.T) {
	_, err := condense(t, slidingwindow.DefaultConfig(), request(chat("ua"), 5))
	if !errors.As(err, new(*core.ExhaustedError)) {
		t.Errorf("got %v, want an ExhaustedError", err)
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := slidingwindow.New(slidingwindow.DefaultConfig()).Condense(ctx, request(chat("ua"), 5))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestSettings(t *testing.T) {
	_, err := slidingwindow.Strategy().Open(t.Context(), json.RawMessage(`{"mode":"haf","keep_first":-1,"messages":-2,"fraction":0,"head_share":2}`), registry.Env{})
	const want = `open slidingwindow: settings: mode: "haf" is none of budget, half, recent, middle_out
keep_first: -1 is negative
messages: -2 is negative
fraction: 0 is not above 0 and at most 1
head_share: 2 is not between 0 and 1`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestCutUsesTheRoom(t *testing.T) {
	messages := append(chat("u"), core.Message{ID: "big", Role: core.RoleAssistant, Parts: []core.Part{core.Text(strings.Repeat("0123456789abcdef", 4000))}})
	messages = append(messages, chat("uaua")[1:]...)
	core.Measure(bytes4{}, messages)
	got, err := condense(t, slidingwindow.DefaultConfig(), request(messages, 10000))
	if err != nil {
		t.Fatal(err)
	}
	if s, want := ids(got.Messages), "u0 big a1 u2 a3"; s != want {
		t.Errorf("got %s, want %s", s, want)
	}
	if got.TokensAfter < 9500 || got.TokensAfter > 10000 {
		t.Errorf("ended with %d tokens; want just below 10,000", got.TokensAfter)
	}
}

func TestConformance(t *testing.T) {
	for mode := range map[string]bool{"budget": true, "half": true, "recent": true, "middle_out": true} {
		t.Run(mode, func(t *testing.T) {
			c := slidingwindow.DefaultConfig()
			c.Mode = mode
			coretest.Run(t, func(*testing.T) core.CondensationProvider { return slidingwindow.New(c) })
		})
	}
}

// TestPromises holds for random histories that truncation to budget ends at or below the
// target, with a valid result (the chain checks that), whatever the conversation holds, if the target
// is not below the floor.
func TestPromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		messages := coretest.Random(rand.New(rand.NewPCG(seed, 0)), nil)
		core.Measure(coretest.Counter{}, messages)
		total := 0
		for _, m := range messages {
			total += m.Tokens
		}
		floor := core.FixedTokens(&core.Request{Messages: messages, Counter: coretest.Counter{}})
		target := floor + rapid.IntRange(0, max(1, total-floor)).Draw(rt, "above the floor")
		req := &core.Request{Messages: messages, Counter: coretest.Counter{}, Budget: core.Budget{Limit: target, Target: target}}
		for _, mode := range []string{"budget", "recent", "middle_out", "half"} {
			c := slidingwindow.DefaultConfig()
			c.Mode = mode
			if mode == "half" {
				c.Fraction = rapid.Float64Range(0.01, 1).Draw(rt, "fraction")
				req.Budget.Limit = max(total, target)
			}
			got, err := condense(t, c, req)
			if err != nil {
				rt.Fatalf("%s: %v", mode, err)
			}
			checkRequest(rt, mode, messages, got.Messages)
			if mode == "half" {
				continue // which looks at no target
			}
			if got.TokensAfter > target {
				rt.Fatalf("%s: %d tokens, target %d", mode, got.TokensAfter, target)
			}
			again, err := condense(t, c, &core.Request{Messages: got.Messages, Counter: req.Counter, Budget: req.Budget})
			if err != nil || !again.Edit.Empty() {
				rt.Fatalf("%s: a second run changed something: %v %+v", mode, err, again)
			}
		}
	})
}

// checkRequest holds that what the user said last, unanswered, is still the last message,
// whole or with a mark where it was cut.
func checkRequest(rt *rapid.T, mode string, before, after []core.Message) {
	rt.Helper()
	last, ok := lastSaid(before)
	if !ok || last.Role != core.RoleUser || last.Kind != core.KindOriginal {
		return
	}
	typed := false
	for _, p := range last.Parts {
		if text, ok := p.(core.Text); ok && strings.TrimSpace(string(text)) != "" {
			typed = true
		}
	}
	if !typed {
		return
	}
	is, ok := lastSaid(after)
	if !ok || is.ID != last.ID {
		rt.Fatalf("%s: the last request is no longer the last message: %v", mode, is)
	}
	if !is.Equal(last) && !strings.Contains(fmt.Sprint(is.Parts), "left out") {
		rt.Fatalf("%s: the last request is cut without a mark: %v, was %v", mode, is.Parts, last.Parts)
	}
}

func lastSaid(messages []core.Message) (core.Message, bool) {
	for _, m := range slices.Backward(messages) {
		if m.Role != core.RoleSystem {
			return m, true
		}
	}
	return core.Message{}, false
}

// In a tiny window the last request used to vanish, and the model was asked nothing.
func TestLastRequestStaysInTinyWindows(t *testing.T) {
	long := core.Message{ID: "ask", Role: core.RoleUser, Parts: []core.Part{core.Text("Please find out " + strings.Repeat("why this fails ", 400) + "today.")}}
	messages := append(chat("uauaua"), long)
	core.Measure(bytes4{}, messages)
	for _, mode := range []string{"budget", "half", "recent", "middle_out"} {
		for target := core.FixedTokens(&core.Request{Messages: messages, Counter: bytes4{}}); target < 1200; target += 50 {
			c := slidingwindow.DefaultConfig()
			c.Mode, c.Fraction = mode, 1
			req := request(messages, target)
			if mode == "half" {
				req.Budget.Limit = 1 << 20
			}
			got, err := condense(t, c, req)
			if err != nil {
				t.Fatalf("%s, target %d: %v", mode, target, err)
			}
			last := got.Messages[len(got.Messages)-1]
			text := string(last.Parts[0].(core.Text))
			if last.ID != "ask" || last.Role != core.RoleUser || !strings.Contains(text, "left out here") && !last.Equal(long) {
				t.Fatalf("%s, target %d: the last message is %s: %.80q", mode, target, last.ID, text)
			}
		}
	}
}

// TestASecondRunChangesNothing holds wherever the target is below the limit, too: a conversation whose words of the user take more
// than the target ends above it, and is not cut again for that.
func TestASecondRunChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		messages := coretest.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)), nil)
		core.Measure(coretest.Counter{}, messages)
		req := &core.Request{Messages: messages, Counter: coretest.Counter{}}
		floor, total := core.FixedTokens(req), core.TotalTokens(messages)
		req.Budget.Target = floor + rapid.IntRange(0, max(1, total-floor)).Draw(rt, "above the floor")
		req.Budget.Limit = req.Budget.Target + rapid.IntRange(0, 2*total).Draw(rt, "above the target")
		for _, mode := range []string{"budget", "recent", "middle_out"} {
			c := slidingwindow.DefaultConfig()
			c.Mode = mode
			first, err := condense(t, c, req)
			if err != nil {
				rt.Fatalf("%s: %v", mode, err)
			}
			if first.TokensAfter > req.Budget.Limit {
				rt.Fatalf("%s: %d tokens, limit %d", mode, first.TokensAfter, req.Budget.Limit)
			}
			again, err := condense(t, c, &core.Request{Messages: first.Messages, Counter: req.Counter, Budget: req.Budget})
			if err != nil || !again.Edit.Empty() {
				rt.Fatalf("%s: target %d, limit %d: a second run made %d tokens of %d, which were %d: %v", mode, req.Budget.Target, req.Budget.Limit, again.TokensAfter, first.TokensAfter, total, err)
			}
		}
	})
}

// TestMoreRoomNeverMeansLessOfTheUser holds at every target and limit, whatever the conversation holds, for messages that are whole.
func TestMoreRoomNeverMeansLessOfTheUser(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		messages := coretest.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)), nil)
		core.Measure(coretest.Counter{}, messages)
		total := core.TotalTokens(messages)
		req := &core.Request{Messages: messages, Counter: coretest.Counter{}}
		limit, last := core.FixedTokens(req)+rapid.IntRange(0, total).Draw(rt, "above the floor"), 0
		for target := core.FixedTokens(req); target < total; target += 1 + total/60 {
			req.Budget = core.Budget{Limit: limit, Target: min(target, limit)}
			res, err := slidingwindow.New(slidingwindow.DefaultConfig()).Condense(t.Context(), req)
			if err != nil {
				rt.Fatal(err)
			}
			kept := 0
			for _, m := range res.Messages {
				i := slices.IndexFunc(messages, func(o core.Message) bool { return o.ID == m.ID })
				if words := typed(m); i >= 0 && req.FromUser(&m) && words == typed(messages[i]) {
					kept += len(words)
				}
			}
			if kept < last {
				rt.Fatalf("target %d of %d: messages of the user with %d bytes are whole, %d with less room", target, total, kept, last)
			}
			last = kept
		}
	})
}

// typed returns the texts of m, without those of results.
func typed(m core.Message) string {
	var s strings.Builder
	for _, p := range m.Parts {
		if text, ok := p.(core.Text); ok {
			s.WriteString(string(text))
		}
	}
	return s.String()
}
