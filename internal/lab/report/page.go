package report

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
)

// A page is the data of the template of a comparison.
type page struct {
	head
	Blocks []template.HTML

	Report     *lab.Report
	Strategies []strategyData
	Cuts       int
	Text       *embedding
	Folder     string // common to all sessions
	Rows       int    // in the page
	MaxPart    string
	Size       string // of the text
	Modes      []*modeCard
	Scopes     []scope
	Rounds     []roundRow
	Canaries   []canaryTable
	Evidence   []evidenceRow
	Golds      []string // budgets of Evidence
	Notes      []string // on the measures in which the best strategies are worse, each once
	Planted    bool     // there is nothing but canaries
	Gold       bool     // there is nothing but conversations with gold evidence
	Priced     bool     // some strategy called a model
	Repeated   bool     // and ran several times
}

func newPage(r *lab.Report, d *data, text *embedding, o *Options) *page {
	p := &page{
		Report: r, Folder: d.Folder, Strategies: d.Strategies, Text: text, Rows: len(d.Rows.Strategy),
		MaxPart: thousands(maxPart), Size: kibibytes(text.Bytes),
	}
	p.Planted = len(r.Rows) == 0 && len(r.CanaryLines) > 0
	p.Gold = len(r.Rows) == 0 && len(r.CanaryLines) == 0 && len(r.EvidenceLines) > 0
	title := "Which strategy keeps what was needed later"
	if p.Planted {
		title = "What is left of planted sentences"
	} else if p.Gold {
		title = "What is left of the evidence for questions"
	}
	p.head = newHead(title, o)
	p.Cuts += plain.Sum(r.Sessions, func(x lab.SessionInfo) int { return len(x.Cuts) })
	b := builder{report: r, unfit: unfitStrategies(r), about: map[string]string{}, measures: map[string]*lab.Measure{}}
	for i := range r.Strategies {
		b.about[r.Strategies[i].Name] = r.Strategies[i].About
	}
	for i := range r.Measures {
		b.measures[r.Measures[i].Name] = &r.Measures[i]
	}
	p.Modes = b.modes()
	for i := range r.Verdicts {
		for _, why := range r.Verdicts[i].Explained() {
			if !slices.Contains(p.Notes, why) {
				p.Notes = append(p.Notes, why)
			}
		}
	}
	for i := range r.Tables {
		s := b.scope(&r.Tables[i])
		p.Scopes = append(p.Scopes, s)
		p.Priced = p.Priced || s.Priced
	}
	p.Rounds = roundRows(r)
	p.Canaries = canaryTables(r)
	p.Evidence, p.Golds = evidenceRows(r), r.EvidenceBudgets()
	p.Repeated = repeated(r)
	return p
}

// repeated reports whether some number is the mean of several runs.
func repeated(r *lab.Report) bool {
	several := func(values map[string]lab.Estimate) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(values)), func(e lab.Estimate) bool { return e.Runs != nil })
	}
	return slices.ContainsFunc(r.Tables, func(t lab.Table) bool {
		return slices.ContainsFunc(t.Lines, func(l lab.Line) bool { return several(l.Values) })
	}) || slices.ContainsFunc(r.RoundLines, func(l lab.RoundLine) bool { return several(l.Values) }) ||
		slices.ContainsFunc(r.CanaryLines, func(l lab.CanaryLine) bool {
			return slices.ContainsFunc(l.Kept, func(e lab.Estimate) bool { return e.Runs != nil })
		}) || slices.ContainsFunc(r.EvidenceLines, func(l lab.EvidenceLine) bool { return l.Kept.Runs != nil })
}

// Compared reports whether there are results of cuts.
func (p *page) Compared() bool { return !p.Planted && !p.Gold }

// Short returns the name of a session without the common folder.
func (p *page) Short(name string) string { return Visible(strings.TrimPrefix(name, p.Folder)) }

func kibibytes(bytes int) string {
	if bytes < 1<<20 {
		return thousands((bytes+1023)>>10) + " KiB"
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}

// A builder makes the tables of a page from a report.
type builder struct {
	report   *lab.Report
	unfit    map[string]bool
	about    map[string]string
	measures map[string]*lab.Measure
}

// A name is a strategy in a table.
type name struct {
	Name, About string
	Bound       bool // only for reference
	Unfit       bool
	Below       []string // budgets at which it keeps less than lines chosen at random
}

func (b *builder) name(strategy string, bound bool) name {
	return name{Name: strategy, About: b.about[strategy], Bound: bound, Unfit: b.unfit[strategy]}
}

// A modeCard has the verdicts on a mode and the panel by strategy and budget.
type modeCard struct {
	Mode, Anchor   string
	All            bool
	Sessions, Cuts int
	Verdicts       []verdict
	Budgets        []string
	Rows           []modeRow
	Curve          []curveRow
}

type verdict struct {
	Budget string
	Shown  bool
	Word   string
	Text   string
	// Disagreement says that the two yardsticks name different strategies.
	Disagreement string
	Worse        string // in which measures the best strategy is worse
	AtSize       []string
	// Names are the strategies that the table of all verdicts shows, More is the number of others.
	Names []string
	More  int
}

// tooFew is shown instead of a verdict if there are not enough sessions.
const tooFew = "not enough sessions"

// allFew returns v, or one verdict if there are not enough sessions under every budget.
func allFew(v []verdict) []verdict {
	for i := range v {
		if v[i].Word != tooFew || v[i].Text != v[0].Text || len(v[i].AtSize) > 0 {
			return v
		}
	}
	if len(v) < 2 {
		return v
	}
	one := v[0]
	one.Budget = "all"
	return []verdict{one}
}

// maxNames is the maximum number of strategies in a cell of that table.
const maxNames = 2

func newVerdict(v *lab.Verdict) verdict {
	const none = "no difference shown"
	out := verdict{Budget: v.Budget, Shown: v.Shown, Word: none, Text: strings.TrimPrefix(v.Text, none+" "), Disagreement: v.Disagreement, Worse: v.WorseIn(), AtSize: v.AtSize}
	switch {
	case v.Shown:
		out.Word = "better"
	case len(v.Ties) == 0 && len(v.ByGain) > 0:
		out.Word = "disagreement"
	case v.Few:
		out.Word, out.Text = tooFew, strings.TrimPrefix(v.Text, tooFew+" ")
		return out
	}
	if v.Best != "" {
		out.Names = append([]string{v.Best}, v.Ties...)
		out.More = max(0, len(out.Names)-maxNames)
		out.Names = out.Names[:len(out.Names)-out.More]
	}
	return out
}

// Listed returns the verdicts to list.
func (c *modeCard) Listed() []verdict { return allFew(c.Verdicts) }

// Verdict returns the verdict on a budget, or nil.
func (c *modeCard) Verdict(budget string) *verdict {
	for i := range c.Verdicts {
		if c.Verdicts[i].Budget == budget {
			return &c.Verdicts[i]
		}
	}
	return nil
}

type modeRow struct {
	name
	Cells []cell // by budget
}

// A curveRow is a point of the figure of tokens left and content kept.
type curveRow struct {
	name
	Budget           string
	Kept, Panel, Far cell
}

func (b *builder) modes() []*modeCard {
	var out []*modeCard
	for i, m := range slices.Concat([]string{""}, b.report.Modes) {
		c := &modeCard{Mode: m, Anchor: fmt.Sprintf("mode-%d", i), All: m == ""}
		for _, v := range b.report.Verdicts {
			if v.Mode == m {
				c.Verdicts = append(c.Verdicts, newVerdict(&v))
			}
		}
		lines := map[string]map[string]*lab.Line{} // by strategy and budget
		for t := range b.report.Tables {
			table := &b.report.Tables[t]
			if table.Mode != m {
				continue
			}
			c.Budgets = append(c.Budgets, table.Budget)
			for l := range table.Lines {
				x := &table.Lines[l]
				c.Sessions, c.Cuts = max(c.Sessions, x.Sessions), max(c.Cuts, x.Cuts)
				if lines[x.Strategy] == nil {
					lines[x.Strategy] = map[string]*lab.Line{}
				}
				lines[x.Strategy][table.Budget] = x
			}
		}
		if len(c.Budgets) == 0 {
			continue
		}
		for s := range b.report.Strategies {
			info := &b.report.Strategies[s]
			if lines[info.Name] == nil {
				continue
			}
			row := modeRow{name: b.name(info.Name, info.Bound)}
			for _, budget := range c.Budgets {
				x := lines[info.Name][budget]
				if x == nil {
					row.Cells = append(row.Cells, cell{})
					continue
				}
				panel := estimate(b.measures[lab.MeasurePanel], x.Values)
				row.Cells = append(row.Cells, panel)
				c.Curve = append(c.Curve, curveRow{
					row.name, budget, estimate(b.measures[lab.MeasureKept], x.Values),
					panel, estimate(b.measures[lab.MeasureFar], x.Values),
				})
			}
			c.Rows = append(c.Rows, row)
		}
		below(c)
		slices.SortStableFunc(c.Rows, func(x, y modeRow) int { return cmp.Compare(meanOf(y.Cells), meanOf(x.Cells)) })
		out = append(out, c)
	}
	return out
}

// below marks the strategies that keep less of what was needed later than lines chosen at random.
func below(c *modeCard) {
	at := slices.IndexFunc(c.Rows, func(r modeRow) bool { return r.Name == lab.Random })
	if at < 0 {
		return
	}
	for i := range c.Rows {
		for k, budget := range c.Budgets {
			if own, random := c.Rows[i].Cells[k], c.Rows[at].Cells[k]; own.Defined && random.Defined && own.Mean < random.Mean {
				c.Rows[i].Below = append(c.Rows[i].Below, budget)
			}
		}
	}
}

func meanOf(cells []cell) float64 {
	sum, n := 0.0, 0
	for i := range cells {
		if cells[i].Defined {
			sum += cells[i].Mean
			n++
		}
	}
	return sum / float64(max(1, n))
}
