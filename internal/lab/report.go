package lab

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/tokens"
)

// ReportFormat is the version of the JSON of a [Report]. It changes when a field changes its meaning or
// is removed, and not when a field is added.
const ReportFormat = 1

// A Report is the result of a comparison: all rows, and everything derived from them. The same rows give the same
// JSON. Undefined numbers are absent.
type Report struct {
	Format   int    `json:"format"`
	Seed     uint64 `json:"seed"`
	Encoding string `json:"encoding"`
	// Repeat is the number of runs of strategies that ask a language model.
	Repeat int `json:"repeat,omitempty"`
	// ByFolder reports whether intervals are over the folders of sessions.
	ByFolder bool `json:"by_folder,omitempty"`
	// Unverified reports that verdicts were not held against halves of the sessions.
	Unverified bool `json:"unverified,omitempty"`
	// Conclusion is the result in one sentence.
	Conclusion string `json:"conclusion,omitempty"`
	// Partial reports whether the run stopped before all sessions were finished.
	Partial bool `json:"partial,omitempty"`

	// Peers are other programs in the list of --peers, also those that are missing on this machine.
	Peers      []Peer         `json:"peers,omitempty"`
	Strategies []StrategyInfo `json:"strategies"` // the bounds, then the others in the given order
	Budgets    []string       `json:"budgets"`    // in the given order
	Modes      []string       `json:"modes"`      // that occur, sorted
	Measures   []Measure      `json:"measures"`
	Sessions   []SessionInfo  `json:"sessions"` // by name
	Skipped    []Skipped      `json:"skipped"`  // by name
	// Rows are by session, budget, place of the cut and strategy.
	Rows   []Row   `json:"rows"`
	Rounds []Round `json:"rounds,omitempty"`
	// Canaries count the surviving planted sentences, by session, budget, strategy and type.
	Canaries []Canary `json:"canaries,omitempty"`
	// Evidence counts the surviving gold evidence, by conversation, budget and strategy.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Spending has the distribution of tokens, with [Options.Spending]: of all sessions that could be read, even
	// those too short to be compared, first all together, then by mode.
	Spending []Spending `json:"spending,omitempty"`

	Tables      []Table      `json:"tables"`
	RoundLines  []RoundLine  `json:"round_lines,omitempty"`
	CanaryLines []CanaryLine `json:"canary_lines,omitempty"`
	// EvidenceLines are the means, by budget and strategy.
	EvidenceLines []EvidenceLine `json:"evidence_lines,omitempty"`
	Differences   []Difference   `json:"differences"`
	Verdicts      []Verdict      `json:"verdicts"`
	Warnings      []Warning      `json:"warnings"`
}

// A SessionInfo describes a session that was compared.
type SessionInfo struct {
	Name     string   `json:"name"` // of the item
	ID       string   `json:"id"`
	Source   string   `json:"source"`
	Mode     string   `json:"mode"`
	Messages int      `json:"messages"`
	Tokens   int      `json:"tokens"`
	Cuts     []string `json:"cuts"`
	// Hash identifies the conversation: sessions with the same hash are copies. Sessions with the same Said are
	// copies, too, unless they have different modes.
	Hash string `json:"hash"`
	Said string `json:"said,omitempty"`
}

// journalSuffix ends the name of a journal, a file next to its session.
const journalSuffix = ".condense"

// copies returns the sessions that are copies of others, by name. The first by name counts as the original; journals
// come last.
func copies(all []SessionInfo) map[string]string {
	all = slices.Clone(all)
	journal := func(s SessionInfo) int { return len(s.Name) - len(strings.TrimSuffix(s.Name, journalSuffix)) }
	slices.SortFunc(all, func(a, b SessionInfo) int { return cmp.Or(journal(a)-journal(b), strings.Compare(a.Name, b.Name)) })
	first, of := map[string][]SessionInfo{}, map[string]string{}
	for _, s := range all {
		for _, key := range []string{s.Hash, s.Said} {
			same := slices.IndexFunc(first[key], func(o SessionInfo) bool {
				return o.Hash == s.Hash || o.Mode == s.Mode || o.Mode == "" || s.Mode == ""
			})
			if key != "" && same >= 0 {
				of[s.Name] = first[key][same].Name
				break
			}
		}
		if of[s.Name] == "" {
			first[s.Hash], first[s.Said] = append(first[s.Hash], s), append(first[s.Said], s)
		}
	}
	return of
}

// A Skipped is a session that was not compared.
type Skipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Unread bool   `json:"-"` // it could not be read
}

// A Table holds the means of one budget and mode.
type Table struct {
	Budget string `json:"budget"`
	Mode   string `json:"mode"` // empty: all modes together
	Lines  []Line `json:"lines"`
}

// A Line holds the means of one strategy.
type Line struct {
	Strategy string `json:"strategy"`
	Bound    bool   `json:"bound,omitempty"`
	Sessions int    `json:"sessions"`
	Cuts     int    `json:"cuts"`
	// Failed is the number of cuts at which the strategy failed or its result was rejected, in every run if there are
	// several; the means are over the others. Over is the number of cuts at which its mean size was above 1.03 of the
	// budget.
	Failed int `json:"failed"`
	Over   int `json:"over"`
	// Unfit reports that no verdict names the strategy as the best. A warning says why.
	Unfit bool `json:"unfit,omitempty"`
	// Values are the means by measure: over the cuts of each session, then over the sessions.
	Values map[string]Estimate `json:"values"`
	// KindsBefore and KindsAfter are tokens by kind, summed over the cuts.
	KindsBefore map[tokens.Kind]int `json:"kinds_before"`
	KindsAfter  map[tokens.Kind]int `json:"kinds_after"`
	Usage       core.Usage          `json:"usage,omitzero"`
}

// WriteJSON writes r, indented by one space, with a final newline.
func (r *Report) WriteJSON(w io.Writer) error { return writeJSON(w, r) }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(v)
}

// ReadReport reads the output of [Report.WriteJSON].
func ReadReport(rd io.Reader) (*Report, error) {
	var r Report
	if err := json.NewDecoder(rd).Decode(&r); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	if r.Format != ReportFormat {
		return nil, fmt.Errorf("report: format %d, this program reads %d", r.Format, ReportFormat)
	}
	return &r, nil
}

func describe(name string, s *score.Session) SessionInfo {
	return SessionInfo{
		Name: name, ID: s.ID, Source: s.Source, Mode: s.Mode, Messages: len(s.Messages), Tokens: core.TotalTokens(s.Messages),
		Hash: sessionHash(s), Said: saidHash(s),
	}
}

// report returns the report on the finished sessions.
func (r *runner) report(partial bool) *Report {
	out := &Report{
		Format: ReportFormat, Seed: r.opts.Seed, Encoding: r.opts.Encoding, Repeat: r.opts.Repeat, ByFolder: r.opts.ByFolder,
		Unverified: r.opts.Unverified, Partial: partial, Peers: r.opts.Peers, Strategies: slices.Clone(bounds),
	}
	for i := range r.strategies {
		s := &r.strategies[i]
		out.Strategies = append(out.Strategies, StrategyInfo{Name: s.Name, About: s.About, Key: s.Key, Apart: s.Unchecked || s.SizeOf != "", SizeOf: s.SizeOf})
	}
	out.Budgets = append(out.Budgets, plain.Each(r.opts.Budgets, func(b Budget) string { return b.String() })...)
	out.Spending = spending(r.sessions)
	for _, s := range r.sessions {
		if s.skipped != "" {
			out.Skipped = append(out.Skipped, Skipped{s.info.Name, s.skipped, s.unread})
			continue
		}
		out.Sessions = append(out.Sessions, s.info)
		out.Rows = append(out.Rows, s.rows...)
		out.Rounds = append(out.Rounds, s.rounds...)
		out.Canaries = append(out.Canaries, s.planted...)
		out.Evidence = append(out.Evidence, s.evidence...)
	}
	out.conclude()
	return out
}

// conclude sorts the results and derives the rest of the report from them.
func (r *Report) conclude() {
	r.Measures = Measures()
	r.sort()
	r.dropCopies()
	modes := plain.Set(plain.Each(r.Sessions, func(x SessionInfo) string { return x.Mode }))
	r.Modes = slices.Sorted(maps.Keys(modes))
	a := newAnalysis(r)
	r.Warnings = a.warnings() // sets a.unfit, which the others use
	r.Tables = a.tables()
	r.RoundLines = a.roundLines()
	r.CanaryLines = a.canaryLines()
	r.EvidenceLines = a.evidenceLines()
	r.Warnings = append(r.Warnings, evidenceWarnings(r.EvidenceLines)...)
	r.Differences = a.differences()
	r.Verdicts = a.verdicts()
	r.Conclusion = r.conclusion()
	// In JSON empty lists are arrays, not null.
	r.Skipped, r.Sessions, r.Rows = some(r.Skipped), some(r.Sessions), some(r.Rows)
	r.Modes, r.Warnings, r.Differences, r.Verdicts, r.Tables = some(r.Modes), some(r.Warnings), some(r.Differences), some(r.Verdicts), some(r.Tables)
}

func some[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// dropCopies skips all but the first of sessions with the same content. A folder of logs often has copies, and
// counting them twice would make intervals too narrow.
func (r *Report) dropCopies() {
	copies := copies(r.Sessions)
	if len(copies) == 0 {
		return
	}
	r.Sessions = slices.DeleteFunc(r.Sessions, func(s SessionInfo) bool {
		of := copies[s.Name]
		if of != "" {
			r.Skipped = append(r.Skipped, Skipped{Name: s.Name, Reason: "the same conversation as " + of})
		}
		return of != ""
	})
	r.Rows = slices.DeleteFunc(r.Rows, func(row Row) bool { return copies[row.Session] != "" })
	r.Rounds = slices.DeleteFunc(r.Rounds, func(x Round) bool { return copies[x.Session] != "" })
	r.Canaries = slices.DeleteFunc(r.Canaries, func(x Canary) bool { return copies[x.Session] != "" })
	r.Evidence = slices.DeleteFunc(r.Evidence, func(x Evidence) bool { return copies[x.Session] != "" })
	r.sort()
}

// ranks are the places of strategies or policies in a list.
func ranks(list []StrategyInfo) map[string]int {
	return plain.Index(list, func(x StrategyInfo) string { return x.Name })
}

func (r *Report) sort() {
	rank := ranks(r.Strategies)
	budget := map[string]int{}
	for i, b := range r.Budgets {
		budget[b] = i
	}
	slices.SortFunc(r.Sessions, func(a, b SessionInfo) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Skipped, func(a, b Skipped) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(r.Rows, func(a, b Row) int {
		return cmp.Or(strings.Compare(a.Session, b.Session), budget[a.Budget]-budget[b.Budget], a.At-b.At, strings.Compare(a.Cut, b.Cut), rank[a.Strategy]-rank[b.Strategy])
	})
	slices.SortStableFunc(r.Rounds, func(a, b Round) int {
		return cmp.Or(strings.Compare(a.Session, b.Session), rank[a.Strategy]-rank[b.Strategy], a.Run-b.Run, a.Round-b.Round)
	})
	slices.SortStableFunc(r.Canaries, func(a, b Canary) int { return strings.Compare(a.Session, b.Session) }) // they come in order
	slices.SortStableFunc(r.Evidence, func(a, b Evidence) int { return strings.Compare(a.Session, b.Session) })
}
