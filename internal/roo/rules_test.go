package roo_test

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/internal/roo"
)

// What JavaScript makes of members of unexpected types. The wanted results are those of
// Roo's code under node.
func TestEffectiveFollowsJavaScript(t *testing.T) {
	t.Parallel()
	const a, b = `{"role":"user","content":"a"}`, `{"role":"user","content":"b"}`
	tests := []struct{ name, in, want string }{
		{
			"a flag that is only truthy does not begin the history, but hides by name",
			`[{"x":0,"condenseParent":"A"},` + a + `,{"isSummary":1,"condenseId":"A"},` + b + `]`,
			`[` + a + `,{"isSummary":1,"condenseId":"A"},` + b + `]`,
		},
		{
			"numbers are equal by value, and differ from strings",
			`[{"x":0,"truncationParent":5},{"x":1,"truncationParent":"5"},{"isTruncationMarker":true,"truncationId":5.0}]`,
			`[{"x":1,"truncationParent":"5"},{"isTruncationMarker":true,"truncationId":5.0}]`,
		},
		{
			"strings are equal without their escapes",
			`[{"truncationParent":"T\u0031"},{"isTruncationMarker":true,"truncationId":"T1"}]`,
			`[{"isTruncationMarker":true,"truncationId":"T1"}]`,
		},
		{
			"lists are equal to nothing",
			`[{"truncationParent":["T"]},{"isTruncationMarker":true,"truncationId":["T"]}]`,
			`[{"truncationParent":["T"]},{"isTruncationMarker":true,"truncationId":["T"]}]`,
		},
		{
			"an empty name hides nothing",
			`[{"truncationParent":""},{"isTruncationMarker":true,"truncationId":""}]`,
			`[{"truncationParent":""},{"isTruncationMarker":true,"truncationId":""}]`,
		},
		{
			"blocks that are no objects stay",
			`[{"role":"user","content":[null,5,{"type":"tool_result","tool_use_id":"x"}],"isSummary":true}]`,
			`[{"role":"user","content":[null,5],"isSummary":true}]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := string(roo.Encode(roo.Effective(parseSession(t, []byte(tt.in)))))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrphanResultsGoAloneFromTheJSON(t *testing.T) {
	t.Parallel()
	in := `[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},` +
		`{"ts" : 5, "content": [ {"type":"tool_result","tool_use_id":"gone"}, {"type":"text","text":"\u0068i"} ], "isSummary":true,"role":"user", "z":1.0}]`
	want := `[{"ts" : 5, "content": [{"type":"text","text":"\u0068i"}], "isSummary":true,"role":"user", "z":1.0}]`
	if got := string(roo.Encode(roo.Effective(parseSession(t, []byte(in))))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTruncateMarkerTime(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, ts, want string }{
		{"number", `,"ts":300.5`, `"ts":299.5`},
		{"large number", `,"ts":1e22`, `"ts":1e+22`},
		{"absent", ``, `"ts":1699999999999`},
		{"null", `,"ts":null`, `"ts":1699999999999`},
		{"zero", `,"ts":0`, `"ts":-1`},
		{"string", `,"ts":" 12e1 "`, `"ts":119`},
		{"no number", `,"ts":"noon"`, `"ts":null`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := `[{"x":0},{"x":1},{"x":2},{"x":3` + tt.ts + `},{"x":4}]`
			got := roo.Truncate(parseSession(t, []byte(in)), 0.5, recordedID, recordedNow)
			if marker := string(got.Messages[3].JSON()); !strings.Contains(marker, tt.want) {
				t.Errorf("got marker %s, want %s in it", marker, tt.want)
			}
		})
	}
}

func TestTruncateOddFractions(t *testing.T) {
	t.Parallel()
	in := parseSession(t, newSession(9, untagged))
	for _, fraction := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64} {
		ids := 0
		got := roo.Truncate(in, fraction, func() string { ids++; return "T" }, recordedNow)
		if got.Removed != 0 || len(got.Messages) != len(in) || got.ID != "T" || ids != 1 {
			t.Errorf("fraction %v: got %d removed, %d messages, %d ids, want none, all, one",
				fraction, got.Removed, len(got.Messages), ids)
		}
	}
	if got, want := roo.Truncate(in, 1.5, recordedID, recordedNow).Removed, 12; got != want {
		t.Errorf("fraction 1.5: got %d removed, want %d, as Roo says", got, want)
	}
	if got, want := roo.Truncate(in, 1e30, recordedID, recordedNow).Removed, 1<<62; got != want {
		t.Errorf("fraction 1e30: got %d removed, want %d", got, want)
	}
}

func TestLegacyTruncateOddFractions(t *testing.T) {
	t.Parallel()
	in := parseSession(t, newSession(9, untagged))
	tests := []struct {
		fraction float64
		want     int
	}{
		{math.NaN(), 9},
		{math.Inf(1), 9},
		{0, 9},
		{1, 1},
		{5, 1},
		{-0.5, 1 + 3}, // slice(-3)
		{-9, 1 + 9},   // slice beyond the beginning
	}
	for _, tt := range tests {
		if got := len(roo.LegacyTruncate(in, tt.fraction)); got != tt.want {
			t.Errorf("fraction %v: got %d messages, want %d", tt.fraction, got, tt.want)
		}
	}
	if got, want := string(roo.Encode(roo.LegacyTruncate(nil, 0.5))), `[null]`; got != want {
		t.Errorf("no messages: got %s, want %s, as Roo's undefined is written", got, want)
	}
}

func TestMergeConsecutiveNeighbors(t *testing.T) {
	t.Parallel()
	const (
		a       = `{"role":"user","content":"a"}`
		b       = `{"role":"user","content":"b"}`
		summary = `{"role":"user","content":[{"type":"text","text":"s"}],"isSummary":true}`
		marker  = `{"role":"user","content":"m","isTruncationMarker":true}`
	)
	tests := []struct {
		name string
		in   []string
		want []string
	}{
		{"a summary takes others in", []string{summary, a, b}, []string{
			`{"role":"user","content":[{"type":"text","text":"s"},{"type":"text","text":"a"},{"type":"text","text":"b"}],"isSummary":true}`,
		}},
		{"a summary is not taken in", []string{a, summary}, []string{a, summary}},
		{"a marker takes nothing in", []string{marker, a}, []string{marker, a}},
		{"a marker is not taken in", []string{a, marker, b}, []string{a, marker, b}},
		{"no role is no common role", []string{`{"content":"a"}`, `{"content":"b"}`}, []string{`{"content":"a"}`, `{"content":"b"}`}},
		{"no content", []string{`{"role":"user"}`, `{"role":"user"}`}, []string{`{"role":"user","content":[]}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := parseSession(t, []byte(`[`+strings.Join(tt.in, ",")+`]`))
			want := `[` + strings.Join(tt.want, ",") + `]`
			if got := string(roo.Encode(roo.MergeConsecutive(in, []string{"user", ""}))); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestMergeConsecutiveTimes(t *testing.T) {
	t.Parallel()
	tests := []struct{ first, second, want string }{
		{`"ts":1e2,`, `"ts":99,`, `"ts":1e2,`},
		{`"ts":1,`, `"ts":2.0,`, `"ts":2.0,`},
		{`"ts":0,`, ``, ``}, // undefined, which JSON leaves out
		{`"ts":-5,`, ``, `"ts":-5,`},
		{`"ts":"7",`, `"ts":3,`, `"ts":7,`},
		{`"ts":"noon",`, `"ts":3,`, `"ts":"noon",`},
		{`"ts":0,`, `"ts":"noon",`, `"ts":"noon",`},
	}
	for _, tt := range tests {
		in := `[{` + tt.first + `"role":"user","content":5},{` + tt.second + `"role":"user","content":null}]`
		want := `[{` + tt.want + `"role":"user","content":[{"type":"text","text":"5"}]}]`
		if got := string(roo.Encode(roo.MergeConsecutive(parseSession(t, []byte(in)), nil))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// Not parallel: it measures what the process allocates.
func TestMergeConsecutiveIsLinear(t *testing.T) {
	const n = 20_000
	in := parseSession(t, []byte(`[`+strings.Repeat(`{"role":"user","content":"0123456789"},`, n-1)+`{"role":"user","content":"x"}]`))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := roo.MergeConsecutive(in, nil)
	runtime.ReadMemStats(&after)
	if len(got) != 1 || len(got[0].Blocks()) != n {
		t.Fatalf("got %d messages, want one with %d blocks", len(got), n)
	}
	// Merging one message at a time would copy the content so far n times: 8 GB.
	if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(n*1000); got > limit {
		t.Errorf("got %d bytes allocated, want at most %d", got, limit)
	}
}

func TestCountTokensSpelling(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, block, want string }{
		{"call", `{"type":"tool_use","name":"x","input":{"b": [1.0, 1e21,1E-7, -0], "a":"\u003c\/\u2028"}}`, "Tool: x\nArguments: {\"b\":[1,1e+21,1e-7,0],\"a\":\"</\u2028\"}"},
		{"call with indices", `{"type":"tool_use","name":"x","input":{"b":1,"10":2,"2":3,"01":4,"4294967295":5,"4294967294":6}}`, `Tool: x` + "\n" + `Arguments: {"2":3,"10":2,"4294967294":6,"b":1,"01":4,"4294967295":5}`},
		{"call with a name twice", `{"type":"tool_use","name":"x","input":{"a":1,"b":2,"\u0061":3}}`, `Tool: x` + "\n" + `Arguments: {"a":3,"b":2}`},
		{"call with escapes", `{"type":"tool_use","name":"x","input":"\u0022\u005c\u0008\u000b\u001F\ud83d\ude80\uD83D\u00e9\udc00"}`, `Tool: x` + "\n" + `Arguments: "\"\\\b\u000b\u001f🚀\ud83dé\udc00"`},
		{"call without input", `{"type":"tool_use"}`, "Tool: undefined"},
		{"call with null", `{"type":"tool_use","name":null,"input":null}`, "Tool: null\nArguments: null"},
		{"call with a huge number", `{"type":"tool_use","name":1e999,"input":1e999}`, "Tool: Infinity\nArguments: null"},
		{"call named by a list", `{"type":"tool_use","name":[1,[null,"b"],{},-1e999,true]}`, "Tool: 1,,b,[object Object],-Infinity,true"},
		{"result", `{"type":"tool_result","tool_use_id":"c","content":"a\nb"}`, "Tool Result (c)\na\nb"},
		{"failed result", `{"type":"tool_result","tool_use_id":"c","is_error":true}`, "Tool Result (c)\n[Error]"},
		{"result of blocks", `{"type":"tool_result","content":[{"type":"text","text":"t"},{"type":"image"},{"type":"x"},{},{"type":"text"}]}`, "Tool Result (undefined)\nt\n[Image content]\n[Unsupported content block: x]\n[Unsupported content block: undefined]\n"},
		{"text", `{"type":"text","text":"a\ud800b"}`, "a\uFFFDb"},
		{"text that is none", `{"type":"text","text":5}`, ""},
		{"reasoning", `{"type":"reasoning","text":"t"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			blocks, err := roo.ParseBlocks([]byte(`[` + tt.block + `]`))
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			roo.CountTokens(blocks, func(text string) int { got.WriteString(text); return 0 })
			if diff := cmp.Diff(tt.want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCountTokensRoundsOnce(t *testing.T) {
	t.Parallel()
	one := func(string) int { return 1 }
	for n, want := range []int{0, 2, 3, 5, 6, 8} {
		blocks := make([]roo.Block, n)
		for i := range blocks {
			blocks[i] = roo.TextBlock("x")
		}
		if got := roo.CountTokens(blocks, one); got != want {
			t.Errorf("%d tokens: got %d, want %d", n, got, want)
		}
	}
	// An image counts by the length that JavaScript sees, in UTF-16.
	images, err := roo.ParseBlocks([]byte(`[{"type":"image","source":{"data":"🚀🚀é12"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := roo.CountTokens(images, one), 5; got != want { // ceil(ceil(sqrt(7)) * 1.5)
		t.Errorf("image: got %d, want %d", got, want)
	}
}

func TestContextTokensReadsReportsAsJavaScript(t *testing.T) {
	t.Parallel()
	request := func(text string) string { return `{"type":"say","say":"api_req_started","text":` + text + `}` }
	tests := []struct {
		name, ui string
		want     float64
	}{
		{"none", ``, 0},
		{"request", request(`"{\"tokensIn\":10,\"tokensOut\":5}"`), 15},
		{"fraction", request(`"{\"tokensIn\":10.25,\"tokensOut\":5}"`), 15.25},
		{"name in another case", request(`"{\"tokensin\":10}"`), 0},
		{"report that is no object", request(`"{\"tokensIn\":10}"`) + `,` + request(`"null"`) + `,` + request(`"[]"`), 10},
		{"text that is no string", request(`"{\"tokensIn\":10}"`) + `,` + request(`5`), 10},
		{"not said", request(`"{\"tokensIn\":10}"`) + `,{"type":"ask","say":"condense_context","contextCondense":{"newContextTokens":7}}`, 10},
		{"condensation", request(`"{\"tokensIn\":10}"`) + `,{"type":"say","say":"condense_context","contextCondense":{"newContextTokens":7}}`, 7},
		{"condensation to null", request(`"{\"tokensIn\":10}"`) + `,{"type":"say","say":"condense_context","contextCondense":null}`, 10},
		{"beyond int", request(`"{\"tokensIn\":1e300,\"tokensOut\":-1e300}"`) + `,` + request(`"{}"`), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ui, err := roo.ParseUI([]byte(`[` + tt.ui + `]`))
			if err != nil {
				t.Fatal(err)
			}
			if got := roo.ContextTokens(ui); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
