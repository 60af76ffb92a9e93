package coretest_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

func random(seed uint64, opts *coretest.RandomOptions) []core.Message {
	return coretest.Random(rand.New(rand.NewPCG(seed, 0)), opts)
}

func TestRandomIsTheSameForTheSameSeed(t *testing.T) {
	for seed := range uint64(50) {
		if diff := cmp.Diff(random(seed, nil), random(seed, nil)); diff != "" {
			t.Fatalf("seed %d:\n%s", seed, diff)
		}
	}
	if cmp.Equal(random(1, nil), random(2, nil)) {
		t.Error("got the same history for two seeds")
	}
}

// features lists what a history holds.
func features(messages []core.Message) map[string]bool {
	f := map[string]bool{}
	calls, open := map[string]bool{}, map[string]int{}
	text := func(where string, t core.Text) {
		f["text not valid"] = f["text not valid"] || !utf8.ValidString(string(t))
		f["NUL"] = f["NUL"] || strings.Contains(string(t), "\x00")
		f["huge"] = f["huge"] || len(t) > 20_000
		f["blank "+where] = f["blank "+where] || strings.TrimSpace(string(t)) == ""
		f["XML"] = f["XML"] || strings.HasPrefix(string(t), "<read_file>")
	}
	f["none"] = len(messages) == 0
	f["one"] = len(messages) == 1
	for i, m := range messages {
		f["role "+string(m.Role)], f["kind "+string(m.Kind)] = true, true
		f["protected"] = f["protected"] || m.Protected
		f["blank message"] = f["blank message"] || m.Blank()
		f["system within"] = f["system within"] || m.Role == core.RoleSystem && i > 0
		n := 0
		for _, p := range m.Parts {
			switch p := p.(type) {
			case core.Text:
				text("text", p)
			case core.ToolCall:
				n++
				f["ID used twice"] = f["ID used twice"] || calls[p.ID]
				calls[p.ID] = true
				open[p.ID]++
			case core.ToolResult:
				f["result by "+string(m.Role)] = true
				f["error"] = f["error"] || p.IsError
				f["orphan"] = f["orphan"] || open[p.CallID] == 0
				open[p.CallID]--
				for _, c := range p.Content {
					switch c := c.(type) {
					case core.Text:
						text("result", c)
					case core.Image:
						f["image in result"] = true
					default:
					}
				}
			case core.Image:
				f["image"] = true
				f["image by URL"] = f["image by URL"] || p.URL != ""
			case core.Reasoning:
				f["signed"] = f["signed"] || p.Signature != ""
				f["encrypted"] = f["encrypted"] || p.Encrypted != ""
			case core.Opaque:
				f["opaque"] = true
			}
		}
		f["parallel calls"] = f["parallel calls"] || n > 1
		f["pending"] = n > 0
	}
	for _, n := range open {
		f["unanswered"] = f["unanswered"] || n > 0 && !f["pending"]
	}
	return f
}

var faults = []string{
	"text not valid", "NUL", "huge", "blank text", "blank result", "blank message", "system within",
	"protected", "ID used twice", "orphan", "unanswered", "kind summary", "kind marker",
}

var ordinary = []string{
	"none", "one", "role system", "role user", "role assistant", "role tool", "kind ", "XML", "result by user",
	"result by tool", "error", "image", "image by URL", "image in result", "signed", "encrypted", "opaque",
	"parallel calls", "pending",
}

func TestRandomHasEveryContent(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(500) {
		m := random(seed, nil)
		if len(m) > 40 {
			t.Fatalf("seed %d: got %d messages, want 40 at most", seed, len(m))
		}
		for f, has := range features(m) {
			seen[f] = seen[f] || has
		}
		chain, err := core.NewChain([]core.NamedProvider{{Name: "keeps", Provider: coretest.Keeps()}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		req := coretest.HalfRequest(m)
		req.Budget.Limit = req.Tokens()
		if _, err := chain.Run(t.Context(), req); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for _, f := range append(faults, ordinary...) {
		if !seen[f] {
			t.Errorf("no history in 500 holds %q", f)
		}
	}
}

func TestTidyHistories(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(500) {
		f := features(random(seed, &coretest.RandomOptions{Max: 25, Tidy: true}))
		for _, fault := range faults {
			if f[fault] && fault != "unanswered" { // the last calls may be
				t.Errorf("seed %d: got %q", seed, fault)
			}
		}
		for f, has := range f {
			seen[f] = seen[f] || has
		}
	}
	for _, f := range ordinary {
		if !seen[f] {
			t.Errorf("no history in 500 holds %q", f)
		}
	}
}

func TestProtocols(t *testing.T) {
	tests := map[coretest.Protocol]struct{ has, hasNot []string }{
		coretest.ResultsByUser: {[]string{"result by user"}, []string{"result by tool", "XML"}},
		coretest.ResultsByTool: {[]string{"result by tool"}, []string{"result by user", "XML"}},
		coretest.ToolsAsText:   {[]string{"XML"}, []string{"result by user", "result by tool"}},
	}
	for protocol, want := range tests {
		seen := map[string]bool{}
		for seed := range uint64(50) {
			for f, has := range features(random(seed, &coretest.RandomOptions{Protocol: protocol, Tidy: true})) {
				seen[f] = seen[f] || has
			}
		}
		for _, f := range want.has {
			if !seen[f] {
				t.Errorf("protocol %d: got no %q", protocol, f)
			}
		}
		for _, f := range want.hasNot {
			if seen[f] {
				t.Errorf("protocol %d: got %q", protocol, f)
			}
		}
	}
}

// Well-behaved providers return valid results for every conversation.
func TestGoodProvidersOnRandomHistories(t *testing.T) {
	for seed := range uint64(300) {
		req := coretest.HalfRequest(random(seed, nil))
		for name, open := range good {
			res, err := open().Condense(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if err := core.Verify(req, res); err != nil {
				t.Errorf("seed %d: %s: %v", seed, name, err)
			}
		}
	}
}
