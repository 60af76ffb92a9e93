package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/condensehq/condense/internal/testkit/modeltest"
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

// TestCompareReader: questions and right answers come from the whole session, each reader sees one view and nothing
// else, the grader does not learn whose an answer is, what it costs is said before anything is asked, and nothing is
// asked twice.
func TestCompareReader(t *testing.T) {
	alone(t)
	word := regexp.MustCompile(`\b[a-z_]{9,20}\b`)
	asks := regexp.MustCompile(`(?m)^(\d+)\. which word is (\S+) backwards\?`)
	var mu sync.Mutex
	authors, readers, graders := 0, 0, 0
	var gold []string
	var server *modeltest.Server
	server = modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests := server.Requests() // they come one after the other
		text := said(requests[len(requests)-1].Body)
		for _, name := range []string{"smart", "slidingwindow"} {
			if strings.Contains(text, name+"/") {
				t.Errorf("a model is told the name of the strategy %s", name)
			}
		}
		var answer any
		switch {
		case strings.Contains(text, "Write 20 questions"):
			authors++
			history, _, _ := strings.Cut(text, "=== after")
			gold = word.FindAllString(history, -1)
			slices.Sort(gold)
			gold = slices.Compact(gold)
			gold = gold[:20]
			var list []map[string]string
			for i, g := range gold {
				kind := []string{"request", "decisions", "next", "failures", "details", "files"}[i%6]
				list = append(list, map[string]string{"kind": kind, "question": "which word is " + reversed(g) + " backwards?", "gold": g})
			}
			answer = list
		case strings.Contains(text, "You take over the work"):
			readers++
			view, _, _ := strings.Cut(text, "You take over the work")
			if strings.Contains(text, "right answer") || strings.Contains(text, "=== after") {
				t.Error("a reader sees more than a view")
			}
			answers := map[string]string{}
			for _, q := range asks.FindAllStringSubmatch(text, -1) {
				if g := reversed(q[2]); strings.Contains(view, g) {
					answers[q[1]] = g
				} else {
					answers[q[1]] = "unknown"
				}
			}
			answer = map[string]any{"answers": answers, "go_on": "partly", "hindered": "much is missing"}
		case strings.Contains(text, "Grade each answer"):
			graders++
			grades := map[string]map[string]string{"A": {}, "B": {}}
			number, right := "", ""
			for line := range strings.SplitSeq(text, "\n") {
				if q := asks.FindStringSubmatch(line); q != nil {
					number = q[1]
				}
				if g, ok := strings.CutPrefix(line, "right answer: "); ok {
					right = g
				}
				for letter := range grades {
					if got, ok := strings.CutPrefix(line, letter+": "); ok {
						grades[letter][number] = map[bool]string{true: "right", false: "none"}[got == right]
					}
				}
			}
			answer = grades
		default:
			t.Errorf("an unknown request: %.300s", text)
		}
		out, _ := json.Marshal(answer)
		modeltest.Stream(modeltest.Anthropic("```json\n"+string(out)+"\n```")...)(w, r)
	})
	t.Setenv("READER_KEY", "none")
	must(t, os.Mkdir("condense", 0o700)) // the user's own, which is trusted
	must(t, os.WriteFile("condense/condense.yaml", []byte(`
models:
  own: {api: anthropic, model: claude-haiku-4-5, base_url: "`+server.URL+`", api_key_env: READER_KEY}
`), 0o600))
	base := []string{"compare", "demo:swe-smith", "--cache", "cache", "--reader", "own", "--strategies", "smart/balanced,slidingwindow/budget", "--budgets", "25%"}
	cmd := func(more ...string) string { return in(t, append(append([]string(nil), base...), more...)...) }

	if got := cmd(); !strings.Contains(got, "to read: at most") || !strings.Contains(got, "would spend money: agree with --yes") || authors+readers+graders != 0 {
		t.Fatalf("before anybody agreed %d requests were made:\n%s", authors+readers+graders, got)
	}
	table := cmd("--yes")
	if authors == 0 || readers != 2*authors || graders != authors {
		t.Errorf("%d authors, %d readers, %d graders for two strategies", authors, readers, graders)
	}
	for _, want := range []string{"questions answered", "smart/balanced", " of 20", "partly", "hindered by slidingwindow/budget in ", "much is missing"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	before := authors + readers + graders
	var report struct {
		Sessions int
		Usage    struct{ Calls int }
		Answers  []struct {
			Strategy string
			Points   map[string]float64
			Asked    map[string]int
		}
	}
	must(t, json.NewDecoder(strings.NewReader(cmd("-o", "json", "--quiet"))).Decode(&report)) // sessions that were skipped are named after it
	if authors+readers+graders != before || report.Usage.Calls != 0 {
		t.Error("answers in the cache were paid for again")
	}
	share := map[string]float64{}
	for _, a := range report.Answers {
		for k, p := range a.Points {
			share[a.Strategy] += p / float64(20*report.Sessions)
			if p > float64(a.Asked[k]) {
				t.Errorf("%s has %v points of %d", a.Strategy, p, a.Asked[k])
			}
		}
	}
	if s := share["smart/balanced"]; s <= 0 || s > 1 || s == share["slidingwindow/budget"] {
		t.Errorf("shares %v", share)
	}
	for _, wrong := range []struct{ flag, value, want string }{
		{"--rounds", "3", "--rounds has no meaning with --reader"}, {"--output", "html", "there are table, md and json"}, {"--author", "nobody", "--author: "},
	} {
		if got := cmd(wrong.flag, wrong.value); !strings.Contains(got, wrong.want) {
			t.Errorf("%s: %s", wrong.flag, got)
		}
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
