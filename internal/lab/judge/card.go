// Package judge says whether a plugin is any good. A [Watch] is the plugin with a record of its calls, [Card.Run] examines it and measures
// it on recorded sessions, the [Card] has the results and the verdict, and [Floors] are what a user demands of a card.
//
// An [Examination] is the result of the conformance suite alone.
package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/model"
)

// The verdicts, worst first.
const (
	verdictCrashes   = "crashes"
	verdictAsks      = "asks too much"
	verdictForges    = "forges"
	verdictBreaks    = "breaks rules"
	verdictNothing   = "does nothing"
	verdictChain     = "needs a chain"
	verdictTruncates = "only truncates"
	verdictForgets   = "forgets"
	verdictWorks     = "works"
)

// A Card has the results of judging a plugin.
type Card struct {
	Passed  bool   `json:"passed"` // it works, and meets every floor
	Verdict string `json:"verdict"`
	Why     string `json:"why"`

	Name      string         `json:"name"`
	Version   string         `json:"version"`
	SDK       string         `json:"sdk"`
	Doc       string         `json:"doc"`
	Abilities core.Abilities `json:"abilities"`
	May       string         `json:"may"` // the abilities in words
	ReadyMS   float64        `json:"ready_ms"`
	// Models says who answered its requests to models; Before is the chain that it was the first link of.
	Models string `json:"models,omitempty"`
	Before string `json:"before,omitempty"`

	Conformance Conformance `json:"conformance"`
	Recorded    Recorded    `json:"recorded"`
	// Modes begins with all recorded sessions together, under an empty name; then each mode follows.
	Modes []Mode `json:"modes"`
	// Worse lists the measures in which the data show it behind a built-in strategy in the same chain.
	Worse  []Loss  `json:"worse"`
	Floors []Floor `json:"floors"`
	// Readers has the answers of readers, if they were asked.
	Readers *lab.ReaderReport `json:"readers,omitempty"`
	Spent   string            `json:"-"` // what their models did and cost, in words

	ingest bool // it is asked to shorten new results
}

// A Conformance is the result of the conformance suite.
type Conformance struct {
	Cases         int       `json:"cases"`
	Failed        int       `json:"failed"`
	Declined      int       `json:"declined"`
	Acted         int       `json:"acted"`
	Deterministic *bool     `json:"deterministic"` // null if no two answers could be compared
	Stopped       string    `json:"stopped,omitempty"`
	Findings      []Finding `json:"findings"`
}

// A Recorded has its results on recorded sessions. Each conversation is asked for several times.
type Recorded struct {
	Sessions   int     `json:"sessions"`
	Calls      int     `json:"calls"`
	Due        int     `json:"due"`      // calls in which the conversation was above the target; Acted and Truncated count these alone
	Acted      int     `json:"acted"`    // and had an answer that changes something
	Messages   [3]int  `json:"messages"` // of the conversations: the fewest, the median, the most
	From       int     `json:"from"`     // the fewest messages of those that it changed
	Failed     int     `json:"failed"`   // without an answer
	Invalid    int     `json:"invalid"`
	Truncated  int     `json:"truncated"` // of Acted: it hid one run of messages, and nothing else
	MSPerMB50  float64 `json:"ms_per_mb_p50"`
	MSPerMB95  float64 `json:"ms_per_mb_p95"`
	PeakMemory int64   `json:"peak_memory,omitempty"` // bytes; absent where it cannot be measured
}

// A Mode has its results on the sessions of one mode. Shares are of 1.
type Mode struct {
	Mode string `json:"mode"`
	// Kept is the kept share of the content needed later, with truncation at the end of the chain, as in use. Own is the plugin's
	// share of the saved tokens; truncation saved the rest. Alone is the share kept without truncation, when Left of the tokens
	// are left.
	Kept    *lab.Estimate `json:"kept,omitempty"`
	Own     *lab.Estimate `json:"own,omitempty"`
	Alone   *lab.Estimate `json:"alone,omitempty"`
	Left    *lab.Estimate `json:"left,omitempty"`
	Against []Comparison  `json:"against"`
	// Shares of what its own views say: sentences of the user, lines as the user's that are not, lines of files that were replaced since,
	// and identifiers of
	// started or created things that are still there. Null where there was nothing to tell by.
	Words       *lab.Estimate `json:"words"`
	WrongAuthor *lab.Estimate `json:"wrong_author"`
	Superseded  *lab.Estimate `json:"superseded"`
	Outcomes    *lab.Estimate `json:"outcomes"`
}

// A Comparison compares it with a built-in strategy: in the same chain, or both by themselves at the size that the plugin leaves.
type Comparison struct {
	Than string       `json:"than"`
	Own  bool         `json:"own,omitempty"` // at the size that the plugin leaves by itself
	Kept lab.Estimate `json:"kept"`
	// Difference is the plugin's kept share less the other's, paired by conversation.
	Difference lab.Difference `json:"difference"`
}

// A Loss is a measure in which it is shown to be worse.
type Loss struct {
	Measure    string         `json:"measure"`
	Than       string         `json:"than"`
	Difference lab.Difference `json:"difference"`
}

// conform adds the results of the conformance suite.
func (c *Card) conform(r *coretest.Report) {
	var l Examination
	l.Add(r, Findings(r))
	c.Conformance = Conformance{
		Cases: len(l.Cases), Acted: l.Acted, Deterministic: l.Deterministic, Stopped: l.Stopped, Findings: l.Findings,
	}
	for _, k := range l.Cases {
		switch k.Result {
		case "failed":
			c.Conformance.Failed++
		case "declined":
			c.Conformance.Declined++
		}
	}
}

// watched adds its results on recorded sessions.
func (c *Card) watched(w *Watch) {
	r := &c.Recorded
	r.Calls, r.MSPerMB50, r.MSPerMB95, r.PeakMemory = len(w.calls), w.perMB(.5), w.perMB(.95), w.peak
	c.Models = w.models()
	var sizes []int
	for i := range w.calls {
		k := &w.calls[i]
		sizes = append(sizes, k.messages)
		if k.due {
			r.Due++
		}
		if k.acted && (r.From == 0 || k.messages < r.From) {
			r.From = k.messages
		}
		switch {
		case len(k.faults) > 0:
			r.Invalid++
		case k.broke():
			r.Failed++
		case !k.due:
		case k.truncated:
			r.Truncated++
			r.Acted++
		case k.acted:
			r.Acted++
		}
	}
	if slices.Sort(sizes); len(sizes) > 0 {
		r.Messages = [3]int{sizes[0], sizes[len(sizes)/2], sizes[len(sizes)-1]}
	}
}

// rivals are the strategies that it is compared with.
func (c *Card) rivals() []string {
	if c.Before != "" {
		return []string{c.Before}
	}
	against := rivals
	if c.ingest {
		against = shortens()
	}
	return plain.Each(against, func(b rival) string { return b.name })
}

// measured adds the laboratory's results.
func (c *Card) measured(r *lab.Report) {
	c.Recorded.Sessions = len(r.Sessions)
	c.Modes, c.Worse = []Mode{}, []Loss{}
	for i := range r.Tables {
		t := &r.Tables[i]
		m := Mode{
			Mode: t.Mode, Kept: estimate(t, inChain, lab.MeasurePanel), Own: estimate(t, inChain, lab.MeasureOwn),
			Alone: estimate(t, byItself, lab.MeasurePanel), Left: estimate(t, byItself, lab.MeasureKept), Against: []Comparison{},
			WrongAuthor: estimate(t, byItself, "wrong_author"), Superseded: estimate(t, byItself, "superseded"),
			Outcomes: estimate(t, byItself, "outcomes"), Words: estimate(t, byItself, lab.MeasureUser),
		}
		if m.Own != nil && c.Before != "" {
			m.Own.Mean = ownShare(r, t.Mode)
			m.Own.Low, m.Own.High = m.Own.Mean, m.Own.Mean
		}
		for _, name := range c.rivals() {
			m.against(r, t, inChain, name, name)
			m.against(r, t, byItself, name+atItsSize, name)
		}
		c.Modes = append(c.Modes, m)
	}
	titles := map[string]lab.Measure{}
	for _, m := range r.Measures {
		titles[m.Name] = m
	}
	for _, d := range r.Differences {
		m := titles[d.Measure]
		if d.A == inChain && slices.Contains(c.rivals(), d.B) && d.Mode == "" && d.Shown && d.Mean*float64(m.Better) < 0 {
			c.Worse = append(c.Worse, Loss{m.Title, d.B, d})
		}
	}
}

// ownShare returns the plugin's share of all that its chain saved on the sessions of a mode; the laboratory knows that of truncation only.
func ownShare(r *lab.Report, mode string) float64 {
	own, all := 0, 0
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Strategy == inChain && (mode == "" || row.Mode == mode) {
			own += row.SavedBy[itself]
			for _, n := range row.SavedBy {
				all += n
			}
		}
	}
	return float64(own) / float64(max(1, all))
}

func estimate(t *lab.Table, strategy, measure string) *lab.Estimate {
	for i := range t.Lines {
		if e, ok := t.Lines[i].Values[measure]; ok && t.Lines[i].Strategy == strategy {
			return &e
		}
	}
	return nil
}

// against adds the comparison of a row of the plugin with one of a built-in strategy.
func (m *Mode) against(r *lab.Report, t *lab.Table, own, other, than string) {
	kept := estimate(t, other, lab.MeasurePanel)
	i := slices.IndexFunc(r.Differences, func(d lab.Difference) bool {
		return d.A == own && d.B == other && d.Budget == t.Budget && d.Mode == t.Mode && d.Measure == lab.MeasurePanel
	})
	if kept != nil && i >= 0 {
		m.Against = append(m.Against, Comparison{than, own == byItself, *kept, r.Differences[i]})
	}
}

// forging are the rules against answers that attribute text to another author, or use an ability that the plugin did not declare.
var forging = []string{
	"keep-words", "keep-role", "new-role", "keep-system", "keep-calls", "keep-reasoning", "known-ids", "declared-abilities",
}

// minOwn is the least share of the saving for which a plugin counts as doing something.
const minOwn = 0.05

// lossless is the least share of the text needed later that a plugin that loses nothing leaves; the measure has two digits.
const lossless = 0.995

func (c *Card) verdict(w *Watch) (verdict, why string) {
	r := &c.Recorded
	if r.Failed > 0 {
		k := w.calls[slices.IndexFunc(w.calls, func(k call) bool { return k.broke() })]
		if _, why, ok := strings.Cut(k.err.Error(), model.ErrQuota.Error()+": "); ok {
			return verdictAsks, fmt.Sprintf("in %d of %d calls on recorded sessions: %s", r.Failed, r.Calls, why)
		}
		return verdictCrashes, fmt.Sprintf("on its work path: %d of %d calls on recorded sessions ended without an answer%s: %v", r.Failed, r.Calls, k.when, k.err)
	}
	broken := c.broken(w)
	var forged, others []string
	for _, f := range broken {
		switch {
		case f.Rule == "return" || f.Rule == "answer-ordinary":
			return verdictCrashes, "a call of the conformance suite ended without an answer: " + f.Text
		case slices.Contains(forging, f.Rule):
			forged = append(forged, f.Text)
		default:
			others = append(others, f.Text)
		}
	}
	all := c.all()
	own := all.Own
	little := own != nil && max(own.Mean, w.own) < minOwn && c.Before == "" && !c.ingest
	switch {
	case len(forged) > 0:
		return verdictForges, forged[0] + more(len(forged)-1)
	case len(others) > 0:
		return verdictBreaks, others[0] + more(len(others)-1)
	case c.Conformance.Stopped != "":
		return verdictBreaks, c.Conformance.Stopped
	case r.Acted == 0:
		return verdictNothing, fmt.Sprintf(
			"it changed none of %d recorded conversations above the target; what was saved, the rest of the chain saved", r.Due)
	case little && w.forgot == "" && r.Truncated < r.Acted && all.Alone != nil && all.Alone.Mean >= lossless && all.Left.Mean < 1:
		return verdictChain, fmt.Sprintf(
			"alone it saves %.2g %% of the tokens and loses nothing that was needed later: judge it with --chain 'mine,smart'",
			100*(1-all.Left.Mean))
	case little:
		return verdictNothing, fmt.Sprintf("next to nothing: %.2f of what its chain saved; truncation saved the rest", own.Mean)
	case r.Truncated == r.Acted:
		return verdictTruncates, fmt.Sprintf(
			"each of the %d conversations that it changed lost one run of messages, and nothing is left of them", r.Acted)
	case w.forgot != "":
		return verdictForgets, w.forgot
	}
	if s := w.time(.95, func(k *call) float64 { return k.took.Seconds() }); s > patience.Seconds() {
		return verdictWorks, fmt.Sprintf("slowly: %.1f s a call at the 95th percentile, and a person waits %v; %s", s, patience, c.worth())
	}
	return verdictWorks, c.worth()
}

// patience is how long a person waits for an agent's next step before it seems to be stuck: a sixtieth of the default timeout.
const patience = core.DefaultTimeout / 60

// broken returns the first fault of every rule that was broken: on recorded sessions, then in the conformance suite.
func (c *Card) broken(w *Watch) []Finding {
	var all []Finding
	add := func(f Finding) {
		if !slices.ContainsFunc(all, func(o Finding) bool { return o.Rule == f.Rule }) {
			all = append(all, f)
		}
	}
	for i := range w.calls {
		for _, f := range w.calls[i].faults {
			add(f)
		}
	}
	for _, f := range c.Conformance.Findings {
		f.Text = f.Rule + ": " + strings.TrimPrefix(f.Text, f.Rule+": ")
		add(f)
	}
	return all
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more rules)", n)
}

// all returns its results on all sessions.
func (c *Card) all() *Mode {
	if len(c.Modes) == 0 {
		return &Mode{}
	}
	return &c.Modes[0]
}

// worth describes how much a working plugin keeps by itself, next to the best built-in strategy at that size.
func (c *Card) worth() string {
	m := c.all()
	if m.Alone == nil || m.Left == nil {
		return "no recorded session could be measured"
	}
	text := fmt.Sprintf("by itself it leaves %.2f of the tokens, and %.2f of what was needed later", m.Left.Mean, m.Alone.Mean)
	all := &lab.Estimate{Mean: 1} // where nothing could be lost
	lost := [...]string{
		"the user's words are gone", "the user's lines are not theirs", "files' lines were replaced since", "started or created things are gone",
	}
	said := []string{text}
	for i, share := range []float64{1 - cmp.Or(m.Words, all).Mean, mean(m.WrongAuthor), mean(m.Superseded), 1 - cmp.Or(m.Outcomes, all).Mean} {
		if share > 0 {
			said = append(said, fmt.Sprintf("%.3f of %s", share, lost[i]))
		}
	}
	text = strings.Join(said, "; ")
	for _, a := range m.Against {
		switch {
		case c.Before != "" && m.Kept != nil:
			return fmt.Sprintf("before %s, %.2f of what was needed later is kept, by %s alone %.2f (%s); %s", a.Than, m.Kept.Mean, a.Than, a.Kept.Mean, interval(a.Difference), text)
		case a.Own:
			return text + fmt.Sprintf("; %s at that size %.2f (%s)", a.Than, a.Kept.Mean, interval(a.Difference))
		}
	}
	return text
}

// interval returns a paired difference in words.
func interval(d lab.Difference) string {
	what := "no difference shown"
	switch {
	case d.Shown && d.Mean > 0:
		what = "better"
	case d.Shown:
		what = "worse"
	case d.Low > 0 || d.High < 0:
		what = "too few sessions to show a difference"
	}
	return fmt.Sprintf("%s: %+.2f, 95 %% interval %+.2f to %+.2f, %s", what, d.Mean, d.Low, d.High, d.Of())
}
