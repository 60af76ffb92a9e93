package value

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/testkit"
)

// number returns the number of the term that is spelt s.
func number(t *testing.T, c *Conversation, s string) int {
	t.Helper()
	n := c.termAt.find(hashOf(s))
	if n < 0 || int(n) >= len(c.terms) {
		t.Fatalf("%s is no term of the conversation", s)
	}
	return int(n)
}

func TestSteps2(t *testing.T) {
	want := map[int]int{0: 0, 1: 1, 2: 2, 3: 2, 4: 2, 5: 3, 8: 3, 9: 4, 16: 4, 17: 5, 32: 5, 33: 6, 1 << 20: 7}
	for n, step := range want {
		if got := steps2(n, 8); got != step {
			t.Errorf("%d is in step %d, want %d", n, got, step)
		}
	}
}

func TestThresholds(t *testing.T) {
	at := []float64{0.1, 0.5}
	for v, want := range map[float64]int{0: 0, 0.099: 0, 0.1: 1, 0.4: 1, 0.5: 2, 7: 2} {
		if got := thresholds(v, at); got != want {
			t.Errorf("%v reaches %d of %v, want %d", v, got, at, want)
		}
	}
}

// Every step of a feature has a weight of its own, and none is out of range, whatever is seen.
func TestPack(t *testing.T) {
	features := []Feature{{"a", 2}, {"b", 3}, {"c", 1}}
	var buf Steps
	for _, tt := range []struct{ seen, want []int }{
		{[]int{0, 0, 0}, []int{0, 2, 5}},
		{[]int{1, 2, 0}, []int{1, 4, 5}},
		{[]int{-3, 9, 1}, []int{0, 4, 5}}, // out of range: the nearest step
	} {
		got := pack(features, tt.seen, &buf)
		for i := range tt.want {
			if int(got[i]) != tt.want[i] {
				t.Errorf("%v: got %v, want %v", tt.seen, got, tt.want)
				break
			}
		}
	}
	for _, list := range [][]Feature{termFeatures, phraseFeatures} {
		if len(list) > len(buf) {
			t.Errorf("%d features, room for %d", len(list), len(buf))
		}
	}
}

func TestTerms(t *testing.T) {
	for line, want := range map[string]string{
		"Please mend parseHeader now":         "capital Please, identifier parseHeader",
		"see src/http/server.go:41":           "file server.go",
		"at line 1234 of v1.26.0":             "number 1234, number 1.26.0",
		"commit 3f2a9bc1d0e4":                 "word commit, hash 3f2a9bc",
		"max_retries=5, retry-after":          "identifier max_retries, identifier retry-after",
		"the and of it":                       "",
		"ab cd x1":                            "",
		"config.timeout, config.timeout":      "word config, word timeout",
		"größere Änderung":                    "word größere, word Änderung",
		"https://example.com/docs/a.md#intro": "word https, word example, file a.md, word intro",
	} {
		var x lexer
		x.read(line)
		names := [...]string{"word", "capital", "identifier", "file", "number", "hash"}
		var got []string
		for _, m := range x.mentions {
			got = append(got, names[m.class]+" "+m.text)
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%q: got %q, want %q", line, s, want)
		}
	}
}

func TestShape(t *testing.T) {
	for line, want := range map[string]uint8{
		"the parser now keeps the last line of a header": shapeProse,
		"if err != nil { return fmt.Errorf(err) }":       shapeCode,
		"1, 2, 3: 0x40 -> 17; 99 | 4":                    shapeData,
		"three words only":                               shapeCode,
	} {
		var x lexer
		x.read(line)
		if got := shapeOf(line, len(x.tokens)); got != want {
			t.Errorf("%q has shape %d, want %d", line, got, want)
		}
	}
}

// A table numbers keys in the order in which they come, whatever they are.
func TestTable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// Few different keys of the same low bits collide.
		keys := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) uint64 {
			return rapid.Uint64Range(0, 50).Draw(rt, "key") << rapid.SampledFrom([]int{0, 32, 60}).Draw(rt, "shift")
		})).Draw(rt, "keys")
		tab, want := newTable(0), map[uint64]int32{}
		for _, k := range keys {
			if n, ok := want[k]; tab.find(k) != n && ok || tab.find(k) >= 0 && !ok {
				rt.Fatalf("key %x has number %d", k, tab.find(k))
			}
			if _, ok := want[k]; !ok {
				want[k] = int32(len(want))
			}
			if got := tab.number(k); got != want[k] {
				rt.Fatalf("key %x got number %d, want %d", k, got, want[k])
			}
		}
		var list []found
		for _, k := range keys {
			list = append(list, found{hash: k})
		}
		again := newTable(0)
		for i, n := range again.numbers(list, nil) {
			if n != want[keys[i]] {
				rt.Fatalf("all at once: key %x got number %d, want %d", keys[i], n, want[keys[i]])
			}
		}
	})
}

func TestTableGrows(t *testing.T) {
	tab := newTable(0)
	for k := range uint64(5000) {
		tab.number(k)
	}
	for k := range uint64(5000) {
		if tab.find(k) != int32(k) {
			t.Fatalf("key %d has number %d", k, tab.find(k))
		}
	}
	if tab.find(5000) != -1 {
		t.Error("a key that was never numbered has a number")
	}
}

func TestForestSum(t *testing.T) {
	// The first tree is a leaf. The second asks for feature 1 first, then for feature 0.
	trees, err := parseTrees([][][]float32{{{0.5}}, {{1, 10, 1}, {0, 3, 3}, {7}, {1}, {2}}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		x    []float32
		want float64
	}{
		{[]float32{0, 10}, 7.5}, // not below 10
		{[]float32{2, 9}, 1.5},
		{[]float32{3, 9}, 2.5}, // not below 3
		{[]float32{float32(math.NaN()), 0}, 2.5},
	} {
		if got := trees.sum(tt.x); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.x, got, tt.want)
		}
	}
}

// TestReused states what counts as used again.
func TestReused(t *testing.T) {
	m, err := DefaultModel()
	if err != nil {
		t.Fatal(err)
	}
	read := func(id, text string) []core.Message {
		return []core.Message{
			coretest.Assistant(core.ToolCall{ID: id, Name: "read_file", Args: `{"path":"a.go"}`}), coretest.User(coretest.Result(id, text)),
		}
	}
	before := slices.Concat([]core.Message{coretest.User(core.Text("Mend alphaName for customer_42 soon."))}, read("1", "func betaName(deltaName int) gammaName"))
	for _, tt := range []struct {
		name   string
		system string
		after  []core.Message
		want   string // of the terms below, those that are used again
	}{
		{"the agent writes it", "", []core.Message{coretest.Assistant(core.Text("I change betaName."))}, "betaName"},
		{"the user writes it", "", []core.Message{coretest.User(core.Text("What of gammaName?"))}, "gammaName"},
		{"a call has it", "", []core.Message{coretest.Assistant(core.ToolCall{ID: "2", Name: "edit", Args: `{"new":"x = deltaName"}`})}, "deltaName"},
		{"a tool shows it", "", read("2", "alphaName betaName"), ""},
		{"a tool shows it first", "", append(read("2", "alphaName"), coretest.Assistant(core.Text("alphaName it is, and betaName."))), "betaName"},
		{"it is in the system prompt", "Use betaName.", []core.Message{coretest.Assistant(core.Text("betaName, alphaName"))}, "alphaName"},
		{"it is the name of a tool", "", []core.Message{coretest.Assistant(core.ToolCall{ID: "2", Name: "alphaName", Args: `{"betaName":"deltaName"}`})}, "deltaName"},
		{"nothing of it", "", []core.Message{coretest.Assistant(core.Text("Done, omegaName."))}, ""},
	} {
		c := Read(coretest.Conversation(before...))
		terms, _ := c.Reused(m, &Sequel{Before: before, After: tt.after, System: tt.system})
		var got []string
		for _, name := range []string{"alphaName", "betaName", "gammaName", "deltaName", "customer_42"} {
			switch terms[number(t, c, name)] {
			case 1:
				got = append(got, name)
			case 0:
			default:
				t.Errorf("%s: %s counts %v", tt.name, name, terms[number(t, c, name)])
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, s, tt.want)
		}
	}
}

// The names that one message asks for count 12 at most, in sum.
func TestReusedIsBounded(t *testing.T) {
	m, err := DefaultModel()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range 48 {
		names = append(names, fmt.Sprintf("name_%dx", i))
	}
	// Many messages, so that each name is rare.
	before := []core.Message{coretest.User(core.Text(strings.Join(names, "\n")))}
	for range 200 {
		before = append(before, coretest.Assistant(core.Text("So be it.")), coretest.User(core.Text("Go on.")))
	}
	c := Read(coretest.Conversation(before...))
	terms, _ := c.Reused(m, &Sequel{Before: before, After: []core.Message{coretest.Assistant(core.Text(strings.Join(names, " ")))}})
	sum := 0.0
	v := m.Evidence(c)
	for n := range terms {
		sum += float64(terms[n]) * v.Weight(n)
	}
	if math.Abs(sum-namesPerMessage) > 1e-3 {
		t.Errorf("the names weigh %v, want %v", sum, namesPerMessage)
	}
}

func TestReusedPhrases(t *testing.T) {
	m, err := DefaultModel()
	if err != nil {
		t.Fatal(err)
	}
	before := []core.Message{coretest.User(core.Text("retry every failed upload twice"))}
	for after, want := range map[string]int{
		"I retry every failed upload now": 1, // retry every failed upload
		"retry every failed upload twice": 2,
		"retry each failed upload twice":  0,
		"retry every failed\nupload":      1, // a phrase goes on in the next line
	} {
		c := Read(coretest.Conversation(before...))
		_, phrases := c.Reused(m, &Sequel{Before: before, After: []core.Message{coretest.Assistant(core.Text(after))}})
		got := 0
		for _, v := range phrases {
			got += int(v)
		}
		if got != want {
			t.Errorf("%q: %d phrases, want %d", after, got, want)
		}
	}
}

func TestWeight(t *testing.T) {
	m := &Model{common: map[uint64]uint8{hashOf("usualName"): 2, hashOf("everyName"): 4}}
	var messages []core.Message
	for i := range 8 {
		text := "commonName"
		if i == 0 {
			text = "commonName rareName usualName everyName Berlin"
		}
		messages = append(messages, coretest.User(core.Text(text)), coretest.Assistant(core.Text("commonName")))
	}
	c := Read(coretest.Conversation(messages...))
	m.terms = make([]float32, 1<<14) // all weights are zero
	v := m.Evidence(c)
	for name, want := range map[string]float64{
		"rareName":   1,   // in one message of one project
		"usualName":  0.5, // two other projects of at most four have it
		"everyName":  0,
		"commonName": 0,   // in every message
		"Berlin":     0.5, // a capitalised word counts half
	} {
		if got := v.Weight(number(t, c, name)); math.Abs(got-want) > 0.02 {
			t.Errorf("%s weighs %.3f, want %.2f", name, got, want)
		}
	}
}

// With no weights and no trees, everything that counts is as likely as not.
func TestEstimateWithoutWeights(t *testing.T) {
	zero := func(features []Feature) map[string][]int {
		out := map[string][]int{}
		for _, f := range features {
			out[f.Name] = make([]int, f.Steps)
		}
		return out
	}
	data, err := json.Marshal(map[string]any{"terms": zero(TermFeatures()), "phrases": zero(PhraseFeatures())})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ParseModel(data, "")
	if err != nil {
		t.Fatal(err)
	}
	c := Read(coretest.Conversation(coretest.User(core.Text("rareName stays with the failed upload")), coretest.Assistant(core.Text("Yes."))))
	e := m.Estimate(c)
	n := number(t, c, "rareName")
	if math.Abs(float64(e.Names[n])-0.5) > 1e-6 || e.Words[n] != 0 {
		t.Errorf("the name is worth %v as a name and %v as a word, want 0.5 and 0", e.Names[n], e.Words[n])
	}
	n = number(t, c, "upload")
	if math.Abs(float64(e.Words[n])-0.5) > 1e-6 || e.Names[n] != 0 {
		t.Errorf("the word is worth %v as a word and %v as a name, want 0.5 and 0", e.Words[n], e.Names[n])
	}
	for n, v := range e.Phrases {
		if v != 0.5 {
			t.Errorf("phrase %d is worth %v, want 0.5", n, v)
		}
	}
	if sum := 0.5 * float64(len(e.Phrases)); e.phraseSum != sum {
		t.Errorf("the phrases are worth %v together, want %v", e.phraseSum, sum)
	}
}

func TestSuperseded(t *testing.T) {
	var messages []core.Message
	for i, path := range []string{"a.go", "b.go", "a.go"} {
		id := fmt.Sprint("c", i)
		messages = append(messages,
			coretest.Assistant(core.ToolCall{ID: id, Name: "read_file", Args: fmt.Sprintf(`{"path":%q}`, path)}),
			coretest.User(coretest.Result(id, "text of "+path)))
	}
	c := Read(coretest.Conversation(messages...))
	var got []bool
	for p := range c.Passages {
		if c.Passages[p].Kind == dialog.KindToolResult {
			got = append(got, c.Passages[p].old)
		}
	}
	if want := []bool{true, false, false}; !slices.Equal(got, want) {
		t.Errorf("superseded: %v, want %v", got, want)
	}
}

// A queue yields candidates by rate; of equal ones the newest first, then the shortest.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		one := rapid.Custom(func(rt *rapid.T) candidate {
			start := rapid.Int32Range(0, 5).Draw(rt, "start")
			return candidate{rapid.SampledFrom([]float32{1e-6, 0.5, 1, 1.01, 3, 1e6}).Draw(rt, "rate"), start, start + rapid.Int32Range(1, 3).Draw(rt, "lines")}
		})
		first, later := rapid.SliceOf(one).Draw(rt, "first"), rapid.SliceOf(one).Draw(rt, "later")
		first = slices.Repeat(first, rapid.SampledFrom([]int{1, 500}).Draw(rt, "copies"))
		q := newQueue(slices.Clone(first))
		for _, c := range later {
			q.push(c)
		}
		want := slices.Concat(first, later)
		if c, ok := q.top(); ok && rapid.Bool().Draw(rt, "worsen") { // the best one becomes the worst
			q.worsen(1e-7)
			i := slices.Index(want, c)
			want[i].rate = 1e-7
		}
		slices.SortStableFunc(want, func(a, b candidate) int {
			switch {
			case a.before(b):
				return -1
			case b.before(a):
				return 1
			}
			return 0
		})
		for i, w := range want {
			got, ok := q.top()
			if !ok || got != w {
				rt.Fatalf("number %d is %+v, want %+v", i, got, w)
			}
			q.pop()
		}
		if c, ok := q.top(); ok {
			rt.Fatalf("%+v is left", c)
		}
	})
	for _, tt := range []struct{ best, other candidate }{
		{candidate{2, 0, 1}, candidate{1, 9, 10}},
		{candidate{1, 9, 10}, candidate{1, 0, 1}},
		{candidate{1, 4, 5}, candidate{1, 4, 7}},
	} {
		if !tt.best.before(tt.other) || tt.other.before(tt.best) {
			t.Errorf("%+v is not before %+v", tt.best, tt.other)
		}
	}
}

// The room is never exceeded if what is fixed fits, down to one token, and hardly any of it is left.
func TestEveryRoom(t *testing.T) {
	testkit.Slow(t)
	var messages []core.Message
	for i := range 30 {
		id := fmt.Sprint("c", i)
		messages = append(messages,
			coretest.Assistant(core.Text(fmt.Sprintf("I look at part%d.", i)), core.ToolCall{ID: id, Name: "read_file", Args: fmt.Sprintf(`{"path":"src/part%d.go"}`, i)}),
			coretest.User(coretest.Result(id, fmt.Sprintf("func partName%d(input string) error {\n\treturn check%d(input)\n}", i, i))))
	}
	messages = coretest.Conversation(append(messages, coretest.User(core.Text("Go on with partName7.")))...)
	req := coretest.HalfRequest(messages)
	all := 0
	for i := range messages {
		all += messages[i].Tokens
	}
	for room := all / 10; room < all; room += 7 {
		res, err := Shorten(t.Context(), messages, Options{Room: room, Counter: req.Counter})
		if err != nil {
			t.Fatal(err)
		}
		if res.Tokens > room || res.Tokens < room*9/10 {
			t.Errorf("room for %d tokens: %d used", room, res.Tokens)
		}
		again, err := Shorten(t.Context(), messages, Options{Room: room, Counter: req.Counter})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(res.Messages, again.Messages, core.Message.Equal) {
			t.Errorf("room for %d tokens: a second run differs", room)
		}
	}
}
