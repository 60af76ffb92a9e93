package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
	"github.com/condensehq/condense/tokens"
)

// A stub is author, reader and grader in one. Its answers can be replaced; nil is the usual one.
type stub struct {
	reader, grader func(ctx context.Context, text string) (string, error)
	kept           []string // prompts
	info           model.Info
	charge         func(p *model.Prompt, answer string) core.Usage
	question       string
}

// asks are the parts of prompts by which they are told apart.
const asksAuthor, asksReader = "Write 20 questions", "You take over the work"

func (s *stub) Info() model.Info {
	i := s.info
	i.Name, i.Free = "stub", true
	return i
}

func (s *stub) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	text := string(p.Messages[0].Parts[0].(core.Text))
	s.kept = append(s.kept, text)
	answer, err := "", error(nil)
	switch {
	case strings.Contains(text, asksAuthor):
		answer = `[` + strings.Repeat(`{"kind": "next", "question": "what `+s.question+`?", "gold": "this"},`, 19) + `{"kind": "next", "question": "why?", "gold": "that"}]`
	case strings.Contains(text, asksReader):
		answer = `{"answers": {"1": "this"}, "go_on": "yes"}`
		if s.reader != nil {
			answer, err = s.reader(ctx, text)
		}
	default:
		answer = graded()
		if s.grader != nil {
			answer, err = s.grader(ctx, text)
		}
	}
	if err != nil {
		return nil, err
	}
	u := core.Usage{Calls: 1}
	if s.charge != nil {
		u = s.charge(p, answer)
	}
	return &model.Answer{Text: answer, Usage: u}, nil
}

// graded returns grades for three readers.
func graded() string {
	grades := map[string]string{}
	for i := range 20 {
		grades[strconv.Itoa(i+1)] = "right"
	}
	b, _ := json.Marshal(map[string]any{"A": grades, "B": grades, "C": grades})
	return string(b)
}

// says returns a model that always answers with text.
func says(text string) func(context.Context, string) (string, error) {
	return func(context.Context, string) (string, error) { return text, nil }
}

// interviewed asks about one session, with cache as the folder of answers, unless it is empty.
func interviewed(t *testing.T, s *stub, recall int, cache string, budgets ...float64) *lab.ReaderReport {
	t.Helper()
	items, strategies, opts := interview(t, s, recall, cache, budgets...)
	r, err := lab.Interview(t.Context(), items, strategies, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func interview(t *testing.T, s *stub, recall int, cache string, budgets ...float64) ([]lab.Item, []lab.Strategy, *lab.ReaderOptions) {
	t.Helper()
	o := &lab.ReaderOptions{Author: s, Reader: s, Recall: recall}
	o.Cache, o.Now = cache, still
	for _, b := range budgets {
		o.Budgets = append(o.Budgets, lab.Budget{Share: b})
	}
	items, err := lab.Find("demo:swe-smith")
	if err != nil {
		t.Fatal(err)
	}
	p, err := smart.Strategy().Open(t.Context(), nil, registry.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return items, []lab.Strategy{{Name: "smart", Provider: p}}, o
}

// TestReaderRecallsNothing: a null among the recalls is one in vain, and a null in their place is none.
func TestReaderRecallsNothing(t *testing.T) {
	s, asked := &stub{}, 0
	s.reader = func(_ context.Context, text string) (string, error) {
		if !strings.Contains(text, `only the key "recall"`) {
			return `{"answers": {"1": "this"}}`, nil
		}
		if asked++; asked == 1 {
			return `{"recall": [null]}`, nil
		}
		return `{"answers": {}, "recall": null}`, nil
	}
	r := interviewed(t, s, 5000, "", 25)
	if asked != 2 || len(r.Answers) != 1 || len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0].Reason, "the reader answers no question") {
		t.Errorf("%d replies, %d answers, skipped %+v", asked, len(r.Answers), r.Skipped)
	}
	asked = 0
	s.reader = func(_ context.Context, _ string) (string, error) {
		if asked++; asked == 2 {
			return `{"recall": [null]}`, nil
		}
		return `{"answers": {"1": "this"}}`, nil
	}
	r = interviewed(t, s, 5000, "", 25)
	if len(r.Answers) != 2 || r.Answers[1].Recall.Calls != 1 || r.Answers[1].Recall.Vain != 1 {
		t.Errorf("%+v", r.Answers)
	}
}

// TestReaderNeverAnswers: a model that does not come to an end fails in the call, not in the run.
func TestReaderNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{grader: func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}
		r := interviewed(t, s, 0, "", 25)
		if len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0].Reason, "the grader: no answer in 10m0s") {
			t.Errorf("skipped %+v", r.Skipped)
		}
	})
}

// TestReaderGoesOnAfterABudget: what fails at one budget costs neither the answers of another one nor its turn.
func TestReaderGoesOnAfterABudget(t *testing.T) {
	n := 0
	s := &stub{reader: func(_ context.Context, text string) (string, error) {
		return fmt.Sprintf(`{"answers": {"1": "%d"}}`, len(text)), nil
	}}
	s.grader = func(context.Context, string) (string, error) {
		if n++; n == 2 {
			return `{}`, nil
		}
		return graded(), nil
	}
	r := interviewed(t, s, 0, "", 10, 25, 50)
	if len(r.Answers) != 2 || r.Answers[0].Budget != "10%" || r.Answers[1].Budget != "50%" || r.Sessions != 1 {
		t.Errorf("%d sessions, answers %+v", r.Sessions, r.Answers)
	}
	if len(r.Skipped) != 1 || r.Skipped[0].Reason != "25%: the grader: no grade for question 1" {
		t.Errorf("skipped %+v", r.Skipped)
	}
}

// TestReaderIgnoresAnEmptyCache: an entry of the cache that holds no answer is asked again.
func TestReaderIgnoresAnEmptyCache(t *testing.T) {
	for _, empty := range []string{`""`, `null`} {
		dir := t.TempDir()
		interviewed(t, &stub{}, 0, dir, 25)
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return os.WriteFile(path, []byte(empty), 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
		s := &stub{}
		if r := interviewed(t, s, 0, dir, 25); len(s.kept) != 3 || r.Cached != 0 || len(r.Answers) != 1 {
			t.Errorf("%s: %d calls, %d of the cache, answers %+v, skipped %+v", empty, len(s.kept), r.Cached, r.Answers, r.Skipped)
		}
	}
}

// TestReaderAnswersInOtherForms: answers count under any key with the number of the question, and as they were written, with words around
// them. A reply without such a key is none, and asked for again.
func TestReaderAnswersInOtherForms(t *testing.T) {
	for reply, want := range map[string][]string{
		`{"answers": {"Q1": "the first", "question 2": "the second"}}`:                                      {"A: the first\n", "A: the second\n"},
		`{"answers": {"1": 1234567, "2": 0.10, "3": true, "4": ["a", "b"]}}`:                                {"A: 1234567\n", "A: 0.10\n", "A: true\n", `A: ["a", "b"]` + "\n"},
		`Here is [my] answer to {all} of [1] them: {"answers": {"1": "so"}, "hindered": "a } in {"}. {End}`: {"A: so\n"},
		`{} or rather {"answers": {"1": "so", "2": null, "3": ""}}`:                                         {"A: so\n", "A: unknown\n"},
	} {
		s := &stub{reader: says(reply)}
		r := interviewed(t, s, 0, "", 25)
		last := s.kept[len(s.kept)-1]
		for _, w := range want {
			if !strings.Contains(last, w) {
				t.Errorf("%s: no %q, skipped %+v, in\n%.500s", reply, w, r.Skipped, last)
			}
		}
	}
	dir := t.TempDir()
	for _, reply := range []string{`{"answers": {"first": "this", "0": "no", "21": "no"}}`, `{"answers": {"first": "this"}}`, `{"answers": ["this"]}`, `[[[[`} {
		s := &stub{reader: says(reply)}
		if r := interviewed(t, s, 0, dir, 25); len(r.Answers) != 0 || r.Usage.Calls == 0 {
			t.Errorf("%s: answers %+v of %d calls", reply, r.Answers, r.Usage.Calls)
		}
	}
	if r := interviewed(t, &stub{}, 0, dir, 25); len(r.Answers) != 1 {
		t.Errorf("a reply without an answer is in the cache: %+v", r.Skipped)
	}
}

// TestReaderTellsNoKeys: a reader's own words are kept without text in the form of a key, also one that is cut.
func TestReaderTellsNoKeys(t *testing.T) {
	key := "sk-ant-api03-" + strings.Repeat("Ab3x", 20)
	for _, before := range []string{"", strings.Repeat("a ", 180)} {
		s := &stub{reader: says(`{"answers": {"1": "this"}, "hindered": "` + before + `the key ` + key + `"}`)}
		r := interviewed(t, s, 0, "", 25)
		if len(r.Answers) != 1 || r.Answers[0].Hinder == "" || strings.Contains(r.Answers[0].Hinder, "Ab3x") {
			t.Errorf("%+v", r.Answers)
		}
	}
}

// TestReaderCostsNoMoreThanPlanned: also if everybody writes as much as they may, and reads what the others wrote.
func TestReaderCostsNoMoreThanPlanned(t *testing.T) {
	e, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	s := &stub{question: strings.Repeat("x y ", 55)}
	s.charge = func(p *model.Prompt, answer string) core.Usage {
		return core.Usage{Calls: 1, InputTokens: e.CountText(p.System) + e.CountText(string(p.Messages[0].Parts[0].(core.Text))), OutputTokens: e.CountText(answer)}
	}
	s.reader = func(_ context.Context, text string) (string, error) {
		if strings.Contains(text, `only the key "recall"`) {
			return `{"recall": [` + strings.Repeat(`"m1 m2 m3 m4 m5 m6 m7 m8 m9 m10 m11 m12", `, 19) + `"m1"]}`, nil
		}
		return `{"answers": {` + strings.Repeat(`"0": "", `, 9) + `"1": "` + strings.Repeat("x y ", 1200) + `"}}`, nil
	}
	for _, recall := range []int{0, 100} {
		items, strategies, opts := interview(t, s, recall, "", 25)
		_, plan, err := lab.PlanInterview(t.Context(), items, strategies, opts)
		if err != nil {
			t.Fatal(err)
		}
		r, err := lab.Interview(t.Context(), items, strategies, opts)
		if err != nil {
			t.Fatal(err)
		}
		if u := r.Usage; len(r.Answers) == 0 || u.Calls > plan.Calls || u.InputTokens > plan.InputTokens || u.OutputTokens > plan.OutputTokens || recall == 0 && plan.InputTokens > 2*u.InputTokens {
			t.Errorf("recall %d: planned %+v, spent %+v, skipped %+v", recall, plan, u, r.Skipped)
		}
	}
}
