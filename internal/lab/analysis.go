package lab

import (
	"cmp"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/tokens"
)

// An analysis derives tables, differences and verdicts from the rows of a report.
type analysis struct {
	*Report
	sampler *sampler
	groups  map[group][]*Row   // in the order of Rows
	unfit   map[fitness]bool   // strategies that no verdict may name
	has     map[[2]string]bool // budgets and modes that have rows
}

type (
	group   struct{ budget, mode, strategy string }
	fitness struct{ budget, strategy string }
)

func newAnalysis(r *Report) *analysis {
	a := &analysis{Report: r, sampler: newSampler(r.Seed), groups: map[group][]*Row{}, unfit: map[fitness]bool{}, has: map[[2]string]bool{}}
	for i := range r.Rows {
		row := &r.Rows[i]
		g := group{row.Budget, "", row.Strategy}
		a.has[[2]string{row.Budget, row.Mode}] = true
		a.groups[g] = append(a.groups[g], row)
		if row.Mode != "" {
			g.mode = row.Mode
			a.groups[g] = append(a.groups[g], row)
		}
	}
	return a
}

// scopes calls f with every budget and mode that has rows. Mode "" is all modes together and comes first.
func (a *analysis) scopes(f func(budget, mode string)) {
	for _, b := range a.Budgets {
		for _, m := range slices.Concat([]string{""}, a.Modes) {
			if m == "" || a.has[[2]string{b, m}] {
				f(b, m)
			}
		}
	}
}

// tables returns the means of every budget and mode.
func (a *analysis) tables() []Table {
	a.Modes = slices.DeleteFunc(a.Modes, func(m string) bool { return m == "" })
	var out []Table
	a.scopes(func(budget, mode string) {
		t := Table{Budget: budget, Mode: mode}
		for i := range a.Strategies {
			s := &a.Strategies[i]
			if rows := a.groups[group{budget, mode, s.Name}]; len(rows) > 0 {
				t.Lines = append(t.Lines, a.line(s, rows))
			}
		}
		if len(t.Lines) > 0 {
			out = append(out, t)
		}
	})
	return out
}

func (a *analysis) line(s *StrategyInfo, rows []*Row) Line {
	l := Line{Strategy: s.Name, Bound: s.Bound, Values: map[string]Estimate{}, KindsBefore: map[tokens.Kind]int{}, KindsAfter: map[tokens.Kind]int{}}
	sessions := map[string]bool{}
	for _, r := range rows {
		l.Cuts++
		sessions[r.Session] = true
		l.Usage = l.Usage.Add(r.Usage)
		if !r.measured() {
			l.Failed++
			continue
		}
		if r.Values[MeasureSize] > overSize {
			l.Over++
		}
		for k, n := range r.KindsBefore {
			l.KindsBefore[k] += n
		}
		for k, n := range r.KindsAfter {
			l.KindsAfter[k] += n
		}
	}
	l.Sessions = len(sessions)
	l.Unfit = s.Apart || a.unfit[fitness{rows[0].Budget, s.Name}]
	for i := range a.Measures {
		name := a.Measures[i].Name
		if e, ok := a.estimate(rows, func(r *Row) (v float64, ok bool) { v, ok = r.Values[name]; return v, ok }); ok {
			e.Runs = spread(rows, name)
			l.Values[name] = e
		}
	}
	return l
}

// estimate returns the mean of value over sessions.
func (a *analysis) estimate(rows []*Row, value func(*Row) (float64, bool)) (Estimate, bool) {
	v, sessions := meansBySession(rows, value)
	if !a.ByFolder {
		return a.sampler.estimate(v)
	}
	folders := plain.Each(sessions, folderOf)
	return a.sampler.clustered(v, folders)
}

// folderOf returns the folder of a session, or its project in it if the file is named PROJECT--NAME.
func folderOf(session string) string {
	dir, base := filepath.Split(session)
	if project, _, ok := strings.Cut(base, "--"); ok && project != "" {
		return filepath.Join(dir, project)
	}
	return filepath.Clean(dir)
}

// meansBySession returns the mean of value over the rows of each session, in the order of the rows. Rows for which value
// is not defined are skipped.
func meansBySession(rows []*Row, value func(*Row) (float64, bool)) (means []float64, sessions []string) {
	sum, n := 0.0, 0
	flush := func(session string) {
		if n > 0 {
			means, sessions = append(means, sum/float64(n)), append(sessions, session)
		}
		sum, n = 0, 0
	}
	for i, r := range rows {
		if i > 0 && rows[i-1].Session != r.Session {
			flush(rows[i-1].Session)
		}
		if v, ok := value(r); ok {
			sum += v
			n++
		}
	}
	if len(rows) > 0 {
		flush(rows[len(rows)-1].Session)
	}
	return means, sessions
}

// A Warning is something that a reader should know before trusting a number.
type Warning struct {
	Strategy string `json:"strategy,omitempty"` // empty: all strategies
	Budget   string `json:"budget,omitempty"`   // empty: all budgets
	Text     string `json:"text"`
	// Unfit reports that no verdict, on this budget if one is named, names the strategy as the
	// best. See also [Line].
	Unfit bool `json:"unfit,omitempty"`
}

// compared returns the strategies that are compared: all except the bounds.
func (a *analysis) compared() []string {
	return plain.Each(plain.Only(a.Strategies, func(x StrategyInfo) bool { return !x.Bound }), func(x StrategyInfo) string { return x.Name })
}

// resamples is the number of bootstrap samples. With 2,000, the ends of a 95 % interval are exact to
// about 2 % of its width.
const resamples = 2000

// An Estimate is a mean over sessions with a 95 % interval from a bootstrap over sessions, because the
// turns of one session are not independent. See tail for the ends of the interval.
type Estimate struct {
	Mean     float64 `json:"mean"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Sessions int     `json:"sessions"`
	// Folders is the number of folders that the sessions are in, if the interval is over folders: see
	// [Options.ByFolder].
	Folders int `json:"folders,omitempty"`
	// Runs is present if the strategy ran several times.
	Runs *Spread `json:"runs,omitempty"`
}

// samples is the number of independent samples of e.
func (e Estimate) samples() int { return cmp.Or(e.Folders, e.Sessions) }

// Of returns the sessions of e in words, with the folders if these count.
func (e Estimate) Of() string {
	if e.Folders == 0 {
		return size.Plural(e.Sessions, "session")
	}
	return size.Plural(e.Sessions, "session") + " in " + size.Plural(e.Folders, "folder")
}

// A sampler draws sessions at random. Every estimate over n sessions uses the same draws, so equal
// inputs have equal intervals.
type sampler struct {
	seed  uint64
	draws map[int][]int32
}

func newSampler(seed uint64) *sampler { return &sampler{seed: seed, draws: map[int][]int32{}} }

// remembered is the largest number of sessions for which draws are kept. All of them take 66 MB.
const remembered = 128

// drawn returns the indices of resamples samples of n sessions each, one sample after the other.
func (s *sampler) drawn(n int) []int32 {
	if d, ok := s.draws[n]; ok {
		return d
	}
	rng := rand.New(rand.NewPCG(s.seed, uint64(n))) //nolint:gosec // no secret
	d := make([]int32, resamples*n)
	for i := range d {
		d[i] = int32(rng.IntN(n))
	}
	if n <= remembered {
		s.draws[n] = d
	}
	return d
}

// estimate returns the mean of v, one value for each session.
func (s *sampler) estimate(v []float64) (Estimate, bool) {
	n := len(v)
	if n == 0 {
		return Estimate{}, false
	}
	e := Estimate{Mean: mean(v), Sessions: n}
	if n > maxDrawn {
		// Here the normal approximation is as good, and needs no draws.
		half := 1.96 * deviation(v, e.Mean) / math.Sqrt(float64(n))
		e.Low, e.High = e.Mean-half, e.Mean+half
		return e, true
	}
	e.Low, e.High = s.interval(n, func(drawn []int32) float64 {
		sum := plain.Sum(drawn, func(at int32) float64 { return v[at] })
		return sum / float64(n)
	})
	return e, true
}

// interval returns the ends of a 95 % interval of a mean over n samples; meanOf returns it for those that are drawn.
func (s *sampler) interval(n int, meanOf func(drawn []int32) float64) (low, high float64) {
	d, means := s.drawn(n), make([]float64, resamples)
	for i := range means {
		means[i] = meanOf(d[i*n : (i+1)*n])
	}
	slices.Sort(means)
	cut := int(math.Round(tail(n) * resamples))
	return means[cut], means[resamples-1-cut]
}

// clustered returns the mean of v, one value for each session, with an interval over the folders of the sessions:
// sessions in one folder are alike, so folders are the independent samples.
func (s *sampler) clustered(v []float64, folders []string) (Estimate, bool) {
	if len(v) == 0 {
		return Estimate{}, false
	}
	at := map[string]int{}
	var sums, counts []float64
	for i, f := range folders {
		k, ok := at[f]
		if !ok {
			k = len(sums)
			at[f], sums, counts = k, append(sums, 0), append(counts, 0)
		}
		sums[k] += v[i]
		counts[k]++
	}
	n := len(sums)
	e := Estimate{Mean: mean(v), Sessions: len(v), Folders: n}
	e.Low, e.High = s.interval(n, func(drawn []int32) float64 {
		sum, count := 0.0, 0.0
		for _, k := range drawn {
			sum += sums[k]
			count += counts[k]
		}
		return sum / count
	})
	return e, true
}

// tail returns the share of resampled means to cut off at each end for a 95 % interval over n sessions: 2.5 % for
// many sessions, less for few. With few sessions plain percentiles are too narrow, by the factor sqrt((n-1)/n) and by
// the ratio of Student's t to the normal distribution. These are the expanded percentiles of T. Hesterberg, "What
// Teachers Should Know About the Bootstrap", The American Statistician 69 (2015).
func tail(n int) float64 {
	if n < 2 {
		return 0
	}
	const z = 1.959964
	df := float64(n - 1)
	// Student's quantile by the Cornish-Fisher expansion. The error is 0.1 % with five degrees of
	// freedom and less with more.
	t := z + (z*z*z+z)/(4*df) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*df*df) + (3*z*z*z*z*z*z*z+19*z*z*z*z*z+17*z*z*z-15*z)/(384*df*df*df)
	return math.Erfc(t*math.Sqrt(float64(n)/df)/math.Sqrt2) / 2
}

// maxDrawn limits the memory and the time of the bootstrap.
const maxDrawn = 2000

func mean(v []float64) float64 {
	s := plain.Sum(v, func(x float64) float64 { return x })
	return s / float64(len(v))
}

func deviation(v []float64, m float64) float64 {
	s := plain.Sum(v, func(x float64) float64 { return (x - m) * (x - m) })
	return math.Sqrt(s / float64(max(1, len(v)-1)))
}
