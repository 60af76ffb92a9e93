package agents_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

var promised = regexp.MustCompile(`\bh:([0-9a-f]{10})\b`)

// contents are the key and the lines of the table of contents, numbers what its lines begin with.
var (
	contents = regexp.MustCompile(`\\n\S+ contents: [^\\]* with of ([0-9a-f]{6});[^\\]*((?:\\nm[0-9](?:[^\\]|\\[^n])*)+)`)
	numbers  = regexp.MustCompile(`\\n(m[0-9]+(?:\.[0-9]+)?)[ -]`)
)

// resultLine is a line of a search result with a tool result, not its call.
var resultLine = regexp.MustCompile(`result of [^\\]*\bh:([0-9a-f]{10})\b`)

// TestRecall runs the scenario through condense wrap. After its epochs the scripted model searches for a needle of the first tool result
// and recalls it by its handle, and then everything that the condensed history promises: all is found.
func TestRecall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, prefix string
		model        string // of Codex, if not that of its settings
		http         bool   // the vendor has no WebSockets
		search       bool   // the model has to find the tools first
		night        bool   // TestServe has this model
	}{
		{name: "claude", prefix: "mcp__condense__"},
		{name: "opencode", prefix: "condense_"},
		{name: "codex", prefix: "mcp__condense", night: true},
		{name: "codex", prefix: "mcp__condense", model: "gpt-5.5", search: true},
		{name: "codex", prefix: "mcp__condense__", model: "gpt-6.2-sol"}, // the one that it starts with
		{name: "codex", prefix: "mcp__condense__", model: "gpt-6.1-sol", http: true},
	} {
		t.Run(test.name+test.model, func(t *testing.T) {
			if test.night {
				atNight(t)
			}
			t.Parallel()
			name, prefix := test.name, test.prefix
			const needle = "the quokka lives at 7731"
			longCalls, size := longCalls, size
			if name != "codex" { // which would cut longer results
				longCalls, size = 46, 10_000
			}
			var promises []string
			key := ""
			o := scenario()
			o.NoSockets = test.http
			loop := upstream.Loop(longCalls, size, map[int]string{1: needle})
			last := loop[len(loop)-1]
			if test.search {
				longCalls++
				loop = slices.Insert(loop, 1, upstream.Step{Calls: []upstream.Call{{Tool: "tool_search", Input: map[string]any{"query": "condense recall search"}}}})
			}
			o.Script = append(slices.Clone(loop[:len(loop)-1]),
				upstream.Step{Calls: []upstream.Call{{Tool: prefix + "search", Input: map[string]any{"query": "quokka"}}}},
				upstream.Step{Make: func(body []byte) []upstream.Call {
					found := resultLine.FindSubmatch(body[max(0, bytes.LastIndex(body, []byte("condense search:"))):])
					if found == nil {
						return nil
					}
					return []upstream.Call{{Tool: prefix + "recall", Input: map[string]any{"handle": string(found[1]), "lines": "1-20"}}}
				}},
				upstream.Step{Make: func(body []byte) []upstream.Call {
					promises, key = promisesBefore(body)
					var all []upstream.Call
					for _, what := range promises {
						all = append(all, upstream.Call{Tool: prefix + "recall", Input: map[string]any{"what": what, "of": key, "head": 1}})
					}
					return all
				}}, last)
			d := newDesk(t, o)
			a := all[slices.IndexFunc(all, func(a agent) bool { return a.name == name })]
			if test.model != "" {
				a.base = strings.Replace(a.base, "gpt-5.1", test.model, 1)
			}
			d.at(t, &a, "")
			got := d.wrap(t, a.env, append(append([]string{a.name}, a.args...), task)...)
			if epochs := got.epochs(t); epochs < 3 {
				t.Errorf("%d epochs\n%s", epochs, tail(got.out))
			}
			d.condensed(t, got, got.epochs(t))

			lines := strings.SplitAfter(upstream.Output(loop[0].Commands[0]), "\n")
			first := strings.Join(lines[:6], "")
			turns := d.vendor.Turns()
			before, after := turns[longCalls].Prompt(), turns[len(turns)-1].Prompt()
			if within(t, before, first) {
				t.Error("the needle is still in the condensed history: the test proves nothing")
			}
			if !within(t, turns[longCalls+2].Prompt(), first) {
				t.Errorf("the needle has not come back byte for byte\n%s\n%s", d.list(), tail(got.out))
			}
			if name != "codex" && !slices.ContainsFunc(promises, func(s string) bool { return s[0] == 'm' }) {
				t.Errorf("the condensed history promises no numbers: %q", promises)
			}
			for _, no := range []string{"has no content with the handle", "no message m", "no result m", "no conversation has the contents", "several conversations have"} {
				if n := bytes.Count(after, []byte(no)); n > 0 {
					t.Errorf("%d of %d promises are not kept: %s", n, len(promises), no)
				}
			}
			answered := bytes.Count(after, []byte("[condense recall: message ")) + bytes.Count(after, []byte(": same text in ")) // a number and a handle can lead to one content
			if answered < len(promises) {
				t.Errorf("%d of %d calls were answered", answered, len(promises))
			}
			t.Logf("%d epochs; %d promises, all kept", got.epochs(t), len(promises))
		})
	}
}

// promisesBefore returns the handles in the part of a body before the first search, the numbers in the contents, and their key.
func promisesBefore(body []byte) (all []string, key string) {
	if i := bytes.Index(body, []byte("quokka\\\"")); i > 0 {
		body = body[:i]
	}
	if at := contents.FindSubmatch(body); at != nil {
		key = string(at[1])
		for _, at := range numbers.FindAllSubmatch(at[2], -1) {
			all = append(all, string(at[1]))
		}
	}
	for _, at := range promised.FindAllSubmatch(bytes.ReplaceAll(body, []byte(`\n`), []byte(" ")), -1) {
		const example = "9f2c41d07a" // in what the server says about itself
		if h := string(at[1]); h != example && !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	return all, key
}

func within(t *testing.T, body []byte, text string) bool {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	return holds(v, text)
}
