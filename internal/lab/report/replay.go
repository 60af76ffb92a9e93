package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
)

// maxRequests is the maximum number of requests that the page of a replay draws.
const maxRequests = 600_000

// WriteReplay writes r as a self-contained page: money against loss for every policy, and the life of every session. It
// contains names of sessions, and no text of them. Of opts, MaxText and MaxRows are not used. The requests of some
// sessions are left out of a page that would be too large, and it says so.
func WriteReplay(w io.Writer, r *lab.ReplayReport, opts *Options) error {
	o := opts.settled()
	r = cleanedReplay(r)
	d := newReplayData(r)
	p := &replayPage{
		head: newHead("What a policy saves, and what it loses", &o), Report: r, Folder: d.Folder, Drawn: d.Drawn, Scopes: replayScopes(r), Columns: replayColumns,
	}
	for i := range r.Sessions {
		if r.Sessions[i].Timed {
			p.Timed++
		}
	}
	var err error
	if p.Data, _, err = block("data", d); err != nil {
		return err
	}
	return write(w, "replay.html", p)
}

// A replayPage is the data of the template of a replay.
type replayPage struct {
	head
	Report  *lab.ReplayReport
	Timed   int // sessions with recorded times
	Folder  string
	Drawn   int // sessions whose requests are in the page
	Scopes  []replayScope
	Columns []replayColumn
}

// Short returns the name of a session without the common folder.
func (p *replayPage) Short(name string) string { return strings.TrimPrefix(name, p.Folder) }

// Percent returns a share of the check of the cache.
func (p *replayPage) Percent(n int) string {
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(1, p.Report.Check.Requests)))
}

// A replayScope is a table: the policies at one price on some of the sessions.
type replayScope struct {
	Scope, Title, Tariff string
	Sessions             int
	Rows                 []replayRow
}

type replayRow struct {
	Policy, About string
	Failed        int
	Cells         []cell
}

// A replayColumn is a number of a line.
type replayColumn struct {
	Title, Doc string
	Better     int
	of         func(*lab.ReplayLine) cell
}

// replayTitles are the scopes in words.
var replayTitles = map[string]string{
	lab.ScopeAll: "All sessions", lab.ScopeLong: "Sessions that reach 100,000 tokens", lab.ScopeA: "Half a", lab.ScopeB: "Half b",
	lab.ScopeLong + " " + lab.ScopeA: "Long sessions of half a", lab.ScopeLong + " " + lab.ScopeB: "Long sessions of half b",
}

var replayColumns = []replayColumn{
	{"USD", "Prompts and recorded answers, of all sessions together.", -1, func(l *lab.ReplayLine) cell { return plainCell("USD", l.USD) }},
	{"cost, % of untouched", "Mean over sessions, with its 95 % interval.", -1, func(l *lab.ReplayLine) cell {
		e, ok := l.Values["cheaper"]
		return percentCell(lab.Estimate{Mean: 1 - e.Mean, Low: 1 - e.High, High: 1 - e.Low}, ok, 1)
	}},
	{"lost in use, %", "Of what the agent or the user took from the conversation, what was not in the view when they did.", -1, func(l *lab.ReplayLine) cell {
		e, ok := l.Values["lost"]
		return percentCell(e, ok, 2)
	}},
	{"saved in all, %", "Of the cost of the untouched sessions together.", 1, func(l *lab.ReplayLine) cell {
		return percentCell(lab.Estimate{Mean: l.Saved, Low: l.Saved, High: l.Saved}, true, 1)
	}},
	{"dearest", "The largest ratio of the cost of a session to its cost untouched.", -1, func(l *lab.ReplayLine) cell { return plainCell("share", l.Worst) }},
	{"tokens sent", "Of all prompts.", -1, func(l *lab.ReplayLine) cell { return plainCell("tokens", float64(l.Sent)) }},
	{"cache hits, %", "Tokens read from the cache, of all that were sent.", 1, func(l *lab.ReplayLine) cell {
		return percentCell(lab.Estimate{Mean: l.HitRate, Low: l.HitRate, High: l.HitRate}, true, 1)
	}},
	{"epochs", "Condensations.", 0, func(l *lab.ReplayLine) cell { return plainCell("tokens", float64(l.Epochs)) }},
	{"paid back", "Epochs that had paid for themselves before the next one or the end of the session.", 0, func(l *lab.ReplayLine) cell { return plainCell("tokens", float64(l.Paid)) }},
	{"foreseen", "Epochs of which the prices and sizes predicted it.", 0, func(l *lab.ReplayLine) cell { return plainCell("tokens", float64(l.Foreseen)) }},
	{"panel at epoch", "How much of what the next 40 turns needed from before the epoch was left.", 1, func(l *lab.ReplayLine) cell { return estimateOf("share", l, lab.MeasurePanel) }},
	{"user’s words", "What is left of them at the end.", 1, func(l *lab.ReplayLine) cell { return estimateOf("share", l, lab.MeasureUser) }},
	{"peak", "Tokens of the largest prompt, mean over sessions.", -1, func(l *lab.ReplayLine) cell { return estimateOf("tokens", l, "peak") }},
}

func plainCell(unit string, v float64) cell {
	return cell{Defined: true, Value: strconv.FormatFloat(v, 'g', -1, 64), Text: number(unit, v)}
}

func percentCell(e lab.Estimate, ok bool, digits int) cell {
	if !ok {
		return cell{}
	}
	c := cell{Defined: true, Value: strconv.FormatFloat(100*e.Mean, 'g', -1, 64), Text: fixed(100*e.Mean, digits)}
	if e.Low != e.High {
		c.Range = fixed(100*e.Low, digits) + "–" + fixed(100*e.High, digits)
	}
	return c
}

func estimateOf(unit string, l *lab.ReplayLine, name string) cell {
	return estimate(&lab.Measure{Name: name, Unit: unit}, l.Values)
}

func replayScopes(r *lab.ReplayReport) []replayScope {
	about := map[string]string{}
	for i := range r.Policies {
		about[r.Policies[i].Name] = r.Policies[i].About
	}
	var out []replayScope
	for i := range r.Lines {
		l := &r.Lines[i]
		if n := len(out); n == 0 || out[n-1].Scope != l.Scope || out[n-1].Tariff != l.Tariff {
			out = append(out, replayScope{Scope: l.Scope, Title: replayTitles[l.Scope], Tariff: l.Tariff, Sessions: l.Sessions})
		}
		row := replayRow{Policy: l.Policy, About: about[l.Policy], Failed: l.Failed}
		row.Cells = append(row.Cells, plain.Each(replayColumns, func(c replayColumn) cell { return c.of(l) })...)
		s := &out[len(out)-1]
		s.Rows = append(s.Rows, row)
	}
	return out
}

// replayData is the JSON for the script of a replay.
type replayData struct {
	Kind     string       `json:"kind"` // replay
	Policies []string     `json:"policies"`
	Tariffs  []string     `json:"tariffs"`
	Window   int          `json:"window"`
	Folder   string       `json:"folder"`
	Sessions []string     `json:"sessions"`
	Points   []replayDot  `json:"points"`
	Plays    []replayPlay `json:"plays"`
	Drawn    int          `json:"-"`
}

// A replayDot is a policy in the figure of money against loss.
type replayDot struct {
	Scope    string       `json:"scope"`
	Tariff   string       `json:"tariff"`
	Policy   string       `json:"policy"`
	Sessions int          `json:"sessions"`
	Cheaper  lab.Estimate `json:"cheaper"`
	Lost     lab.Estimate `json:"lost"`
}

// A replayPlay is the life of a session under a policy. Session, Policy and Tariff are indices.
type replayPlay struct {
	Session int               `json:"session"`
	Policy  int               `json:"policy"`
	Tariff  int               `json:"tariff"`
	USD     float64           `json:"usd"`
	Plain   float64           `json:"plain"` // untouched
	Had     *float64          `json:"had"`
	Epochs  []lab.PlayedEpoch `json:"epochs"`
	Error   string            `json:"error,omitempty"`
	Size    []int             `json:"size"` // by request
	Cached  []int             `json:"cached"`
}

func newReplayData(r *lab.ReplayReport) *replayData {
	d := &replayData{Kind: "replay", Window: r.Window, Points: []replayDot{}, Plays: []replayPlay{}, Sessions: []string{}}
	policies, tariffs, sessions := map[string]int{}, map[string]int{}, map[string]int{}
	for i := range r.Policies {
		policies[r.Policies[i].Name] = i
		d.Policies = append(d.Policies, r.Policies[i].Name)
	}
	for i := range r.Tariffs {
		tariffs[r.Tariffs[i].Name] = i
		d.Tariffs = append(d.Tariffs, r.Tariffs[i].Name)
	}
	requests := map[string]int{}
	for i := range r.Plays {
		requests[r.Plays[i].Session] += len(r.Plays[i].Size)
	}
	names := make([]string, 0, len(r.Sessions))
	names = append(names, plain.Each(r.Sessions, func(x lab.PlayedSession) string { return x.Name })...)
	d.Folder = commonFolder(names)
	left := maxRequests
	for _, name := range names {
		if requests[name] > left {
			continue
		}
		left -= requests[name]
		sessions[name] = len(d.Sessions)
		d.Sessions = append(d.Sessions, strings.TrimPrefix(name, d.Folder))
	}
	d.Drawn = len(d.Sessions)
	for i := range r.Plays {
		p := &r.Plays[i]
		s, ok := sessions[p.Session]
		if !ok {
			continue
		}
		d.Plays = append(d.Plays, replayPlay{
			s, policies[p.Policy], tariffs[p.Tariff], p.USD, p.Untouched, p.Had, slices.Clone(p.Epochs), line(p.Error, 500), p.Size, p.Cached,
		})
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		cheaper, ok1 := l.Values["cheaper"]
		lost, ok2 := l.Values["lost"]
		if ok1 && ok2 && !math.IsNaN(cheaper.Mean+lost.Mean) {
			d.Points = append(d.Points, replayDot{l.Scope, l.Tariff, l.Policy, l.Sessions, cheaper, lost})
		}
	}
	return d
}

// cleanedReplay returns a copy of r in which every name and text is visible.
func cleanedReplay(r *lab.ReplayReport) *lab.ReplayReport {
	out := *r
	makeVisible(&out.Conclusion)
	out.Policies = each(r.Policies, func(s *lab.StrategyInfo) { makeVisible(&s.Name, &s.About) })
	out.Tariffs = each(r.Tariffs, func(t *lab.Tariff) { makeVisible(&t.Name) })
	out.Sessions = each(r.Sessions, func(s *lab.PlayedSession) { makeVisible(&s.Name, &s.Source, &s.Mode) })
	out.Skipped = each(r.Skipped, func(s *lab.Skipped) { makeVisible(&s.Name, &s.Reason) })
	out.Plays = each(r.Plays, func(p *lab.Played) {
		makeVisible(&p.Session, &p.Source, &p.Mode, &p.Policy, &p.Tariff, &p.Error)
		p.Epochs = each(p.Epochs, func(e *lab.PlayedEpoch) { makeVisible(&e.Reason) })
	})
	out.Lines = each(r.Lines, func(l *lab.ReplayLine) { makeVisible(&l.Policy, &l.Tariff) })
	return &out
}
