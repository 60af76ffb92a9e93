package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/condensehq/condense/cmd/condense/internal/command"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/modeltest"
	"github.com/condensehq/condense/tokens"
)

func reversed(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// said returns all strings in the messages of a request.
func said(body []byte) string {
	var req struct {
		Messages []struct{ Content any }
	}
	if json.Unmarshal(body, &req) != nil {
		return ""
	}
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v + "\n")
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			walk(v["text"])
		}
	}
	for _, m := range req.Messages {
		walk(m.Content)
	}
	return b.String()
}

// A quiz is a vendor whose model asks for words of the history, reads them from what a reader sees, and grades.
type quiz struct {
	server                              *modeltest.Server
	mu                                  sync.Mutex
	authors, readers, graders, accounts int
	// recall, if not nil, returns the recalls for words that a reader does not see; nil to answer.
	recall     func(unseen []string, seen string) any
	recalled   []string                 // everything that was recalled in a prompt
	garble     func(text string) string // if not nil, changes or replaces the answer to a prompt
	strategies []string                 // whose names must not be told
}

var (
	longWord   = regexp.MustCompile(`\b[a-z_]{9,20}\b`)
	recallLine = regexp.MustCompile(`(?m)^recall .*$`) // which repeats the word
	asksWord   = regexp.MustCompile(`(?m)^(\d+)\. which word is (\S+) backwards\?`)
)

// serveQuiz starts the vendor, and configures its model as own.
func serveQuiz(t *testing.T, q *quiz) *quiz {
	t.Helper()
	q.server = modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		q.mu.Lock()
		defer q.mu.Unlock()
		requests := q.server.Requests() // they come one after the other
		answer := q.answer(t, said(requests[len(requests)-1].Body))
		text, is := answer.(string)
		if !is {
			out, _ := json.Marshal(answer)
			text = "```json\n" + string(out) + "\n```"
		}
		if q.garble != nil {
			text = q.garble(text)
		}
		modeltest.Stream(modeltest.Anthropic(text)...)(w, r)
	})
	t.Setenv("READER_KEY", "none")
	t.Setenv("ANTHROPIC_API_KEY", "")
	must(t, os.Mkdir("condense", 0o700)) // the user's own, which is trusted
	must(t, os.WriteFile("condense/condense.yaml", []byte(`
models:
  own: {api: anthropic, model: claude-haiku-4-5, base_url: "`+q.server.URL+`", api_key_env: READER_KEY}
`), 0o600))
	return q
}

func (q *quiz) calls() int { return q.authors + q.readers + q.graders + q.accounts }

func (q *quiz) answer(t *testing.T, text string) any {
	for _, name := range q.strategies {
		if strings.Contains(text, name+"/") {
			t.Errorf("a model is told the name of the strategy %s", name)
		}
	}
	switch {
	case strings.Contains(text, "Write 20 questions"):
		q.authors++
		history, _, _ := strings.Cut(text, "=== after")
		gold := longWord.FindAllString(history, -1)
		slices.Sort(gold)
		gold = slices.Compact(gold)
		var list []map[string]string
		for i, g := range gold[:20] {
			kind := []string{"request", "decisions", "next", "failures", "details", "files"}[i%6]
			list = append(list, map[string]string{"kind": kind, "question": "which word is " + reversed(g) + " backwards?", "gold": g})
		}
		return list
	case strings.Contains(text, "You take over the work"):
		q.readers++
		view, rest, _ := strings.Cut(text, "You take over the work")
		if strings.Contains(text, "right answer") || strings.Contains(text, "=== after") {
			t.Error("a reader sees more than a view")
		}
		if _, back, is := strings.Cut(view, "=== what you recalled of the rest"); is {
			back, _, _ = strings.Cut(back, "=== what you recalled of the rest")
			if q.recalled = append(q.recalled, back); strings.Contains(back, "still in the conversation") {
				t.Error("recalled content is said to be in view")
			}
		}
		view = recallLine.ReplaceAllString(view, "")
		answers, unseen := map[string]string{}, []string(nil)
		for _, m := range asksWord.FindAllStringSubmatch(rest, -1) {
			if answers[m[1]] = reversed(m[2]); !strings.Contains(view, answers[m[1]]) {
				unseen, answers[m[1]] = append(unseen, answers[m[1]]), "unknown"
			}
		}
		if q.recall != nil && strings.Contains(rest, `only the key "recall"`) {
			if recalls := q.recall(unseen, view); recalls != nil {
				return map[string]any{"recall": recalls}
			}
		}
		return map[string]any{"answers": answers, "go_on": "partly", "hindered": "much is missing"}
	case strings.Contains(text, "Grade each answer"):
		q.graders++
		return graded(text)
	}
	q.accounts++
	return "## Request\n- The user wants the work to be finished.\n\n## Next step\n- Go on with the tests.\n"
}

// graded grades answers that are the right word, or not.
func graded(text string) any {
	grades := map[string]map[string]string{}
	number, right := "", ""
	for line := range strings.SplitSeq(text, "\n") {
		if q := asksWord.FindStringSubmatch(line); q != nil {
			number = q[1]
		}
		if g, ok := strings.CutPrefix(line, "right answer: "); ok {
			right = g
		} else if letter, got, ok := strings.Cut(line, ": "); ok && len(letter) == 1 {
			if grades[letter] == nil {
				grades[letter] = map[string]string{}
			}
			grades[letter][number] = map[bool]string{true: "right", false: "none"}[got == right]
		}
	}
	return grades
}

// TestCompareReader: questions and right answers come from the whole session, each reader sees one view and nothing
// else, the grader does not learn whose an answer is, what it costs is said before anything is asked, and nothing is
// asked twice.
func TestCompareReader(t *testing.T) {
	alone(t)
	q := serveQuiz(t, &quiz{strategies: []string{"smart", "slidingwindow"}})
	base := []string{"compare", "demo:swe-smith", "--cache", "cache", "--reader", "own", "--strategies", "smart/balanced,slidingwindow/budget", "--budgets", "25%"}
	cmd := func(more ...string) string { return in(t, append(append([]string(nil), base...), more...)...) }

	if got := cmd(); !strings.Contains(got, "to read: at most") || !strings.Contains(got, "would spend money: agree with --yes") || q.calls() != 0 {
		t.Fatalf("before anybody agreed %d requests were made:\n%s", q.calls(), got)
	}
	table := cmd("--yes")
	if q.authors == 0 || q.readers != 2*q.authors || q.graders != q.authors {
		t.Errorf("%d authors, %d readers, %d graders for two strategies", q.authors, q.readers, q.graders)
	}
	for _, want := range []string{"questions answered", "smart/balanced", " of 20", "partly", "hindered by slidingwindow/budget in ", "much is missing"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	before := q.calls()
	report := reported(t, cmd("-o", "json", "--quiet"))
	if q.calls() != before || report.Usage.Calls != 0 {
		t.Error("answers in the cache were paid for again")
	}
	share := report.shares(t)
	if s := share["smart/balanced"]; s <= 0 || s > 1 || s == share["slidingwindow/budget"] {
		t.Errorf("shares %v", share)
	}
	for _, wrong := range []struct{ flag, value, want string }{
		{"--rounds", "3", "--rounds has no meaning with --reader"}, {"--peers", "x", "--peers has no meaning with --reader"}, {"--output", "html", "there are table, md and json"}, {"--author", "nobody", "--author: "},
	} {
		if got := cmd(wrong.flag, wrong.value); !strings.Contains(got, wrong.want) {
			t.Errorf("%s: %s", wrong.flag, got)
		}
	}
}

// A readerReport is a part of the JSON.
type readerReport struct {
	Sessions int
	Usage    struct{ Calls int }
	Answers  []struct {
		Strategy string
		Tokens   int
		Points   map[string]float64
		Asked    map[string]int
		Recall   *struct{ Tokens, Calls, Vain int }
	}
}

// reported reads the report, after which come the sessions that were skipped.
func reported(t *testing.T, text string) (r readerReport) {
	t.Helper()
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&r); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return r
}

// shares returns the share of 20 questions that each strategy answers.
func (r readerReport) shares(t *testing.T) map[string]float64 {
	t.Helper()
	share := map[string]float64{}
	for _, a := range r.Answers {
		for k, p := range a.Points {
			share[a.Strategy] += p / float64(20*r.Sessions)
			if p > float64(a.Asked[k]) {
				t.Errorf("%s has %v points of %d", a.Strategy, p, a.Asked[k])
			}
		}
	}
	return share
}

// TestCompareReaderRecalls: a reader who may recall finds more, is given no more tokens than it may have, is told apart from one who may
// not, costs nothing the second time, and has to answer in the end. A view without numbers has no such reader.
func TestCompareReaderRecalls(t *testing.T) {
	alone(t)
	greps := func(unseen []string, _ string) any {
		var calls []any
		for _, w := range unseen {
			calls = append(calls, map[string]any{"grep": w, "tokens": 200})
		}
		return append(calls, "m99999")
	}
	q := serveQuiz(t, &quiz{recall: greps, strategies: []string{"smart", "slidingwindow"}})
	cmd := func(more ...string) string {
		return in(t, append([]string{"compare", "demo:swe-smith", "--cache", "cache", "--reader", "own", "--strategies", "smart/balanced,slidingwindow/budget", "--budgets", "25%"}, more...)...)
	}
	most := func(text string) (calls int) {
		_, err := fmt.Sscanf(text[strings.Index(text, "at most"):], "at most %d model calls", &calls)
		must(t, err)
		return calls
	}
	without, with := most(cmd()), most(cmd("--recall", "5k"))
	report := reported(t, cmd("--recall", "5k", "--yes", "-o", "json", "--quiet"))
	if spent := q.calls(); with <= without || spent > with || report.Usage.Calls != spent {
		t.Errorf("%d calls and %d reported; at most %d were announced, %d without recall", spent, report.Usage.Calls, with, without)
	}
	share, recallers := report.shares(t), 0
	if share["smart/balanced + recall"] <= share["smart/balanced"] || len(share) != 3 {
		t.Errorf("shares %v", share)
	}
	for _, a := range report.Answers {
		if a.Recall != nil {
			if recallers++; a.Recall.Calls < 2 || a.Recall.Vain < 1 || a.Recall.Vain == a.Recall.Calls || a.Recall.Tokens == 0 || a.Recall.Tokens > 5000 {
				t.Errorf("%s: %+v", a.Strategy, *a.Recall)
			}
		}
	}
	if recallers != report.Sessions {
		t.Errorf("%d readers could recall, in %d sessions", recallers, report.Sessions)
	}
	before := q.calls()
	if table := cmd("--recall", "5k"); q.calls() != before || !strings.Contains(table, "smart/balanced + recall") || !strings.Contains(table, "in vain") || strings.Contains(table, "slidingwindow/budget + recall") {
		t.Errorf("%d more requests for\n%s", q.calls()-before, table)
	}

	encoding, err := tokens.Open(tokens.O200kBase)
	must(t, err)
	q.recalled = nil
	q.recall = func([]string, string) any {
		return []any{map[string]any{"what": "m1-m9", "tokens": 100}, map[string]any{"grep": "a"}}
	} // never stops
	report = reported(t, cmd("--recall", "300", "--yes", "-o", "json", "--quiet"))
	if len(q.recalled) == 0 || report.Sessions == 0 {
		t.Fatalf("nothing was recalled: %+v", report)
	}
	for _, text := range q.recalled {
		if n := encoding.CountText(text); n > 300+100 { // and the recalls
			t.Errorf("%d tokens were recalled:\n%s", n, text)
		}
	}
	q.garble = func(string) string { return `{"recall": ["m1"]}` } // though it may not any more
	if got := cmd("--recall", "200", "--yes"); !strings.Contains(got, "no smart/balanced + recall in demo:swe-smith") || !strings.Contains(got, "the reader answers no question") {
		t.Errorf("got\n%s", got)
	}
	before, q.garble = q.calls(), nil
	if got := cmd("--recall", "200", "--yes"); q.calls() == before || !strings.Contains(got, "smart/balanced + recall") {
		t.Errorf("it was not asked again:\n%s", got)
	}
	for _, wrong := range [][2]string{{"-5", "got \"-5\""}, {"1,500", "64k"}, {"many", "got \"many\""}} {
		if got := cmd("--recall", wrong[0]); !strings.Contains(got, "--recall: ") || !strings.Contains(got, wrong[1]) {
			t.Errorf("--recall %s: %s", wrong[0], got)
		}
	}
	if got := in(t, "compare", "demo:swe-smith", "--recall", "5k"); !strings.Contains(got, "need --reader") {
		t.Error(got)
	}
	if got := cmd("--recall", "0", "--yes"); strings.Contains(got, "+ recall") || !strings.Contains(got, "questions answered") {
		t.Error(got)
	}
}

// TestCompareReaderArms: the agent's own compaction is an arm where a session records one, and else that is said. Strategies that name no
// model have the reader's. One whose model fails has no answers: those of the truncation that follows it are not its own.
func TestCompareReaderArms(t *testing.T) {
	alone(t)
	q := serveQuiz(t, &quiz{})
	cmd := func(more ...string) string {
		return in(t, append([]string{"compare", "demo:swe-smith", "demo:context-evaluator", "--cache", "cache", "--reader", "own", "--yes", "--quiet"}, more...)...)
	}
	text := cmd("-o", "json")
	report, sessions := reported(t, text), map[string]int{}
	for _, a := range report.Answers {
		sessions[a.Strategy]++
		if a.Tokens == 0 {
			t.Errorf("%s has an empty view", a.Strategy)
		}
	}
	want := map[string]int{"smart/balanced": 2, "headtail": 2, "native": 2, "handover": 2, "recorded": 1}
	if report.Sessions != 2 || !maps.Equal(sessions, want) || q.accounts == 0 || q.authors != 2 {
		t.Errorf("%d sessions, answers %v, %d accounts, %d authors\n%s", report.Sessions, sessions, q.accounts, q.authors, text)
	}
	if table := cmd(); !strings.Contains(table, "in the 1 of 2 sessions with recorded: smart/balanced 0.") || strings.Count(table, "in the 1 of 2") != 1 {
		t.Error(table)
	}
	if !strings.Contains(text, "no recorded in demo:swe-smith") || !strings.Contains(text, "no compaction by the agent is recorded") {
		t.Error(text[strings.LastIndex(text, "}"):])
	}
	sized := reported(t, cmd("--strategies", "slidingwindow,smart/balanced~slidingwindow", "-o", "json"))
	if a := sized.Answers; len(a) != 4 || a[1].Tokens > a[0].Tokens || a[3].Tokens > a[2].Tokens {
		t.Errorf("a view that is to have the size of another: %+v", a)
	}
	if got := in(t, "compare", "canaries:demo:swe-smith", "--reader", "own", "--yes"); !strings.Contains(got, "not about canaries") {
		t.Error(got)
	}
	q.garble = func(text string) string {
		if strings.HasPrefix(text, "##") {
			return ""
		}
		return text
	}
	before := q.authors
	if got := cmd("--strategies", `account=handover{"tokens":777},smart/balanced`); !strings.Contains(got, "no account in demo:swe-smith") || strings.Contains(got, "hindered by account") || q.authors != before {
		t.Errorf("%d authors\n%s", q.authors, got)
	}
	must(t, os.WriteFile("condense/condense.yaml", fmt.Appendf(nil, "models: {own: {api: anthropic, model: claude-sonnet-4-5, base_url: %q, api_key_env: READER_KEY}}", q.server.URL), 0o600))
	before = q.readers
	if cmd("--strategies", "smart/balanced"); q.readers == before {
		t.Error("the answers of another model are those of this one")
	}
	if got := cmd("--reader", "anthropic/claude-haiku-4-5"); !strings.Contains(got, "--reader: the environment variable ANTHROPIC_API_KEY is not set") {
		t.Error(got)
	}
}

// TestCompareReaderGoesOn: a run that was stopped blames no strategy, and the next one asks only for the rest. Several budgets share the
// questions, without a cache too.
func TestCompareReaderGoesOn(t *testing.T) {
	alone(t)
	q := serveQuiz(t, &quiz{})
	args := []string{"compare", "demo:swe-smith", "--reader", "own", "--strategies", "smart/balanced,headtail", "--budgets", "12%,25%", "--yes"}
	ctx, cancel := context.WithCancel(t.Context())
	q.garble = func(text string) string {
		if q.readers == 2 {
			cancel()
		}
		return text
	}
	var out bytes.Buffer
	command.Run(ctx, append(args, "--cache", "cache"), strings.NewReader(""), &out, &out)
	if got := out.String(); !strings.Contains(got, "interrupted after 0 sessions; the next run continues") || strings.Contains(got, "no headtail") {
		t.Errorf("got\n%s", got)
	}
	q.garble = nil
	if got := in(t, append(args, "--cache", "cache")...); !strings.Contains(got, "budget 25%: questions answered") || q.authors != 1 || q.graders != 2 || q.readers > 5 {
		t.Errorf("%d authors, %d readers, %d graders\n%s", q.authors, q.readers, q.graders, got)
	}
	if got := in(t, append(args, "--cache", "none")...); !strings.Contains(got, "at most 7 model calls") || q.authors != 2 {
		t.Errorf("%d authors\n%s", q.authors, got)
	}
}

// TestJudgeAsksReaders: a plugin that works is read beside smart and truncation, and the answers are on every form of its card; the cost is
// said before. Without the flag, or about a plugin that does nothing, no model is asked.
func TestJudgeAsksReaders(t *testing.T) {
	testkit.Process(t)
	plugin := filepath.Join(t.TempDir(), "plugin")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", plugin, "./testdata/plugin").CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	alone(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	q := serveQuiz(t, &quiz{strategies: []string{"smart", "slidingwindow"}})
	judge := func(does string, more ...string) string {
		return in(t, append([]string{"plugin", "judge", plugin, "--sessions", "demo:entire", "--settings", `{"do":"` + does + `"}`}, more...)...)
	}
	if got := judge("results"); strings.Contains(got, "readers") || q.calls() != 0 {
		t.Errorf("%d calls, and\n%s", q.calls(), got)
	}
	if got := judge("results", "--reader", "own"); !strings.Contains(got, "1 session to read: at most 5 model calls") || !strings.Contains(got, "agree with --yes") || q.calls() != 0 {
		t.Fatalf("%d calls, and\n%s", q.calls(), got)
	}
	if got := judge("nothing", "--reader", "own", "--yes"); !strings.Contains(got, `no reader is asked about a plugin whose verdict is "does nothing"`) || q.calls() != 0 {
		t.Errorf("%d calls, and\n%s", q.calls(), got)
	}
	if got := judge("results", "--reader", "nobody"); !strings.Contains(got, `--reader: there is no language model "nobody"`) {
		t.Error(got)
	}
	for _, form := range []string{"text", "html", "json"} {
		got := html.UnescapeString(judge("results", "--reader", "own", "--recall", "1k", "--yes", "--as", form))
		for _, want := range []string{"works", "the plugin", "slidingwindow", "smart/balanced + recall"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", form, want, got)
			}
		}
		if form != "json" && !strings.Contains(got, "1 session to a quarter, asked and graded by claude-haiku-4-5 at 127.0.0.1") {
			t.Errorf("%s: no readers in\n%s", form, got)
		}
	}
	if q.authors != 1 || q.readers != 4 || q.graders != 1 {
		t.Errorf("%d authors, %d readers, %d graders", q.authors, q.readers, q.graders)
	}
}

// TestCompareReaderRefusesNonsense: a session about which a model does not answer as it was asked is skipped, and
// nothing that it wrote is in the reason.
func TestCompareReaderRefusesNonsense(t *testing.T) {
	alone(t)
	server := modeltest.Serve(t, modeltest.Stream(modeltest.Anthropic("I would rather SING [1, 2")...))
	t.Setenv("READER_KEY", "none")
	must(t, os.Mkdir("condense", 0o700))
	must(t, os.WriteFile("condense/condense.yaml", []byte(fmt.Sprintf("models:\n  own: {api: anthropic, model: claude-haiku-4-5, base_url: %q, api_key_env: READER_KEY}\n", server.URL)), 0o600))
	got := in(t, "compare", "demo:swe-smith", "--cache", "none", "--reader", "own", "--strategies", "smart/balanced", "--budgets", "25%", "--yes")
	if !strings.Contains(got, "the author: the answer is not") || strings.Contains(got, "SING") || !strings.Contains(got, "no session could be read") {
		t.Errorf("got\n%s", got)
	}
}

// TestReadingNeedsAgreement: a limit is an amount of money, and no agreement about a model whose price nobody knows. What a reader says is
// text in a report in Markdown.
func TestReadingNeedsAgreement(t *testing.T) {
	alone(t)
	q := serveQuiz(t, &quiz{})
	for _, args := range [][]string{{"compare", "demo:swe-smith"}, {"plugin", "judge", "none", "--reader", "own"}} {
		for _, limit := range []string{"-1", "NaN", "much"} {
			if got := in(t, append(args, "--max-cost", limit)...); !strings.Contains(got, "--max-cost") || !strings.Contains(got, "this is not an amount of money") {
				t.Errorf("%v %s: %s", args, limit, got)
			}
		}
	}
	const hint = "![x](https://x.example) <b>"
	q.garble = func(text string) string { return strings.ReplaceAll(text, "much is missing", hint) }
	args := []string{"compare", "demo:swe-smith", "--reader", "own", "--strategies", "smart/balanced", "--budgets", "25%", "--cache", "none", "--max-cost", "5"}
	if got := in(t, append(args, "-o", "md")...); strings.Contains(got, hint) || !strings.Contains(got, `\!\[x\]\(https\://x.example\) \<b\>`) {
		t.Error(got)
	}
	if got := in(t, args...); !strings.Contains(got, hint) {
		t.Error(got)
	}
	must(t, os.WriteFile("condense/condense.yaml", fmt.Appendf(nil, "models: {own: {api: anthropic, model: nobodys-model, base_url: %q, api_key_env: READER_KEY}}", q.server.URL), 0o600))
	before := q.calls()
	if got := in(t, args...); !strings.Contains(got, "price unknown") || !strings.Contains(got, "would spend money: agree with --yes\n") || q.calls() != before {
		t.Errorf("%d calls\n%s", q.calls()-before, got)
	}
}
