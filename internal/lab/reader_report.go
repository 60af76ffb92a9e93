package lab

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/model"
)

// ReaderOptions adjust [Interview].
type ReaderOptions struct {
	Options // Budgets, MaxUSD, Cache, Encoding, Modes, ModeOf, Seed and Progress count
	// Author writes the questions and the right answers from the whole history and its continuation, and grades
	// answers without knowing their strategy. Reader sees one view at a time, and nothing else.
	Author, Reader model.Generator
	// Recall is the most tokens that readers may recall of a session, of views with numbers or handles; they are asked without it, too.
	Recall int
}

// A ReaderReport counts, for each strategy, the questions about sessions that its results can answer.
type ReaderReport struct {
	Format   int             `json:"format"`
	Budgets  []string        `json:"budgets"`
	Kinds    []string        `json:"kinds"`
	Author   string          `json:"author"`
	Reader   string          `json:"reader"`
	Sessions int             `json:"sessions"`
	Answers  []ReaderAnswers `json:"answers"`
	Skipped  []SkippedReader `json:"skipped,omitempty"`
	Usage    core.Usage      `json:"usage"`
	Cached   int             `json:"cached"` // answers of models that were in the cache
}

// A SkippedReader is a session that was not read, or only not with one strategy, with the reason.
type SkippedReader struct {
	Name     string `json:"name"`
	Reason   string `json:"reason"`
	Strategy string `json:"strategy,omitempty"`
}

// ReaderAnswers are one reader's answers to the questions about one session.
type ReaderAnswers struct {
	Session  string `json:"session"`
	Source   string `json:"source"`
	Budget   string `json:"budget"`
	Strategy string `json:"strategy"`
	Tokens   int    `json:"tokens"` // of the view
	// Points and Asked are by kind: a right answer is a point, one that is half right half a point.
	Points map[string]float64 `json:"points"`
	Asked  map[string]int     `json:"asked"`
	Wrong  int                `json:"wrong"`    // wrong answers, except "I do not know"
	GoOn   string             `json:"go_on"`    // whether the reader could go on with the work: yes, partly or no
	Hinder string             `json:"hindered"` // the reader's obstacles, in its words
	// Recall is set if the reader could recall. The name of the strategy then ends with " + recall".
	Recall *Recalled `json:"recall,omitempty"`
}

// The kinds of questions, and the number of each that a session gets.
var questionKinds = []struct {
	Name  string
	Count int
	About string
}{
	{"request", 4, "what the user wants, and the rules that the user gave"},
	{"decisions", 3, "what was decided, why, and what was rejected"},
	{"next", 3, "what is done, what is open, and what is the next step"},
	{"failures", 3, "what failed, why, and whether it is fixed"},
	{"details", 4, "exact details that the next steps need: names, signatures, numbers, paths, commands"},
	{"files", 3, "the present state of files"},
}

// Grades of an answer.
const (
	gradeRight = "right"
	gradeHalf  = "half"
	gradeWrong = "wrong"
	gradeNone  = "none" // it says that it does not know
)

var points = map[string]float64{gradeRight: 1, gradeHalf: 0.5, gradeWrong: 0, gradeNone: 0}

// readerFormat changes whenever the JSON does.
const readerFormat = 2

// WriteJSON writes r.
func (r *ReaderReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Share returns the share of the points of a strategy, of one kind or of all if kind is empty, and the number of
// questions.
func (r *ReaderReport) Share(budget, strategy, kind string) (share float64, asked int) {
	sum := 0.0
	for i := range r.Answers {
		a := &r.Answers[i]
		if a.Budget != budget || a.Strategy != strategy {
			continue
		}
		for k, n := range a.Asked {
			if kind == "" || k == kind {
				asked += n
				sum += a.Points[k]
			}
		}
	}
	return sum / float64(max(1, asked)), asked
}

// Table returns the heads and rows of the table for a budget; a head that begins with > is that of a number.
func (r *ReaderReport) Table(budget string) (heads []string, rows [][]any) {
	names, recalls := r.arms(budget)
	heads = []string{"strategy", ">tokens", ">answered"}
	heads = append(heads, plain.Each(r.Kinds, func(k string) string { return ">" + k })...)
	if heads = append(heads, ">wrong", ">could go on"); recalls {
		heads = append(heads, ">recalled", ">in vain")
	}
	for _, name := range names {
		n, tokens, wrong, goOn, back := 0, 0, 0, map[string]int{}, Recalled{}
		for i := range r.Answers {
			x := &r.Answers[i]
			if x.Budget != budget || x.Strategy != name {
				continue
			}
			n, tokens, wrong = n+1, tokens+x.Tokens, wrong+x.Wrong
			goOn[x.GoOn]++
			if y := x.Recall; y != nil {
				back = Recalled{back.Tokens + y.Tokens, back.Calls + y.Calls, back.Vain + y.Vain}
			}
		}
		row := []any{name, tokens / n, r.Answered(budget, name, "")}
		row = append(row, plain.Each(r.Kinds, func(k string) any { return r.Answered(budget, name, k) })...)
		row = append(row, wrong, fmt.Sprintf("yes %d, partly %d of %d", goOn["yes"], goOn["partly"], n))
		if recalls && strings.HasSuffix(name, withRecall) {
			row = append(row, back.Tokens/n, fmt.Sprintf("%d of %d", back.Vain, back.Calls))
		} else if recalls {
			row = append(row, "", "")
		}
		rows = append(rows, row)
	}
	return heads, rows
}

// arms returns the names of the strategies with answers, one with recall behind the same view, and whether there is one.
func (r *ReaderReport) arms(budget string) (names []string, recalls bool) {
	for i := range r.Answers {
		if x := &r.Answers[i]; x.Budget == budget && !slices.Contains(names, x.Strategy) {
			at := slices.Index(names, strings.TrimSuffix(x.Strategy, withRecall)) + 1 // behind the same view
			at = cmp.Or(at, len(names))
			names, recalls = slices.Insert(names, at, x.Strategy), recalls || x.Recall != nil
		}
	}
	return names, recalls
}

// Paired returns a line for each set of sessions about which not all strategies have answers, with the shares of all in it.
func (r *ReaderReport) Paired(budget string) (lines []string) {
	names, _ := r.arms(budget)
	with, most := map[string][]string{}, 0
	for _, a := range r.Answers {
		if a.Budget == budget {
			with[a.Strategy] = append(with[a.Strategy], a.Session)
			most = max(most, len(with[a.Strategy]))
		}
	}
	done := map[string]bool{}
	for _, name := range names {
		set := strings.Join(with[name], "\n")
		if len(with[name]) == most || done[set] {
			continue
		}
		done[set] = true
		own := ReaderReport{}
		own.Answers = append(own.Answers, plain.Only(r.Answers, func(a ReaderAnswers) bool { return slices.Contains(with[name], a.Session) })...)
		line := fmt.Sprintf("in the %d of %d sessions with %s: ", len(with[name]), most, name)
		shares := plain.Each(names, func(other string) string { return other + " " + own.Answered(budget, other, "") })
		lines = append(lines, line+strings.Join(shares, "; "))
	}
	return lines
}

// Answered is [ReaderReport.Share] in words, with a 95 % interval over the sessions.
func (r *ReaderReport) Answered(budget, strategy, kind string) string {
	var shares []float64
	for i := range r.Answers {
		one := ReaderReport{Answers: r.Answers[i : i+1]}
		if share, asked := one.Share(budget, strategy, kind); asked > 0 {
			shares = append(shares, share)
		}
	}
	share, asked := r.Share(budget, strategy, kind)
	if e, _ := newSampler(1).estimate(shares); e.Sessions > 1 {
		return fmt.Sprintf("%.2f [%.2f, %.2f] of %d", share, e.Low, e.High, asked)
	}
	return fmt.Sprintf("%.2f of %d", share, asked)
}
