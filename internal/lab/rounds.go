package lab

import (
	"cmp"
	"context"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
)

// A Round is one of several condensations of a session as it grows. The view is condensed to half whenever it reaches
// a size, which is chosen so that the session has the requested number of rounds. After each, the view is written in
// a transcript format and read again, as between two runs of an agent: a later round knows only the part of the
// earlier ones that is in the file.
type Round struct {
	Strategy string `json:"strategy"`
	Session  string `json:"session"`
	Source   string `json:"source"`
	Mode     string `json:"mode"`
	Run      int    `json:"run,omitempty"` // 2 and up: another run of a strategy that asks a language model
	Round    int    `json:"round"`         // from 1
	At       int    `json:"at"`            // messages of the session before it
	After    int    `json:"after"`         // tokens
	// Format is the format in which the view was written and read again.
	Format string `json:"format,omitempty"`
	// Outcome is the chain's. Unless it is applied or insufficient, the view is unchanged.
	Outcome core.Outcome `json:"outcome"`
	// Error is why the view could not be written and read again; then it is the last round.
	Error string `json:"error,omitempty"`
	// Setbacks is the number of providers of the chain that failed, were rejected or could not work.
	Setbacks int `json:"setbacks,omitempty"`
	// Usage is both condensations' use of models.
	Usage core.Usage `json:"usage,omitzero"`
	// Panel and User measure the view against the whole session so far. Once and OnceUser measure a
	// single condensation of the whole session so far, to the same size.
	Panel    *float64 `json:"panel,omitempty"`
	User     *float64 `json:"user,omitempty"`
	Once     *float64 `json:"once,omitempty"`
	OnceUser *float64 `json:"once_user,omitempty"`
	// FirstUser and FirstFiles measure how much is left of the user's words and of the touched files from before the
	// first round.
	FirstUser  *float64 `json:"first_user,omitempty"`
	FirstFiles *float64 `json:"first_files,omitempty"`
}

// A RoundLine holds the means of one strategy after a number of rounds.
type RoundLine struct {
	Strategy string `json:"strategy"`
	Round    int    `json:"round"`
	// Values are "panel", "user", "once", "once_user", "first_user", "first_files" as in
	// [Round].
	Values map[string]Estimate `json:"values"`
}

// roundLines returns the means over sessions of every strategy and round.
func (a *analysis) roundLines() []RoundLine {
	most := 0
	for i := range a.Rounds {
		most = max(most, a.Rounds[i].Round)
	}
	var out []RoundLine
	for _, s := range a.compared() {
		for n := 1; n <= most; n++ {
			values := map[string]*repeatedly{}
			for i := range a.Rounds {
				r := &a.Rounds[i]
				if r.Strategy != s || r.Round != n {
					continue
				}
				for name, v := range map[string]*float64{
					MeasurePanel: r.Panel, MeasureUser: r.User, "once": r.Once, "once_user": r.OnceUser, "first_user": r.FirstUser, "first_files": r.FirstFiles,
				} {
					if values[name] == nil {
						values[name] = &repeatedly{}
					}
					if v != nil {
						values[name].add(r.Session, r.Run, *v)
					}
				}
			}
			l := RoundLine{Strategy: s, Round: n, Values: map[string]Estimate{}}
			for name, v := range values {
				if e, ok := v.estimate(a.sampler); ok {
					l.Values[name] = e
				}
			}
			if len(l.Values) > 0 {
				out = append(out, l)
			}
		}
	}
	return out
}

// shortestLong is the fewest tokens of a session that is condensed in rounds.
const shortestLong = 30_000

// roundsRoom is the share of a session over which its rounds are spread: views grow by whole turns, and the messages
// after the last round show later needs.
const roundsRoom = 0.75

// roundSize returns the size in tokens at which a session is condensed to half, so that a session of total tokens has
// the requested rounds.
func (o *Options) roundSize(total int) int {
	return int(roundsRoom * 2 * float64(total) / float64(o.Rounds+1))
}

// rounds condenses the session in rounds with every strategy.
func (w *sessionWork) rounds(ctx context.Context, name string) ([]Round, error) {
	total := core.TotalTokens(w.session.Messages)
	if total < shortestLong {
		return nil, nil
	}
	var out []Round
	for i := range w.run.strategies {
		s := &w.run.strategies[i]
		if s.SizeOf != "" {
			continue // it would be as without
		}
		key := func(run int) string { return w.roundsKey(s.Key, run) }
		play := func() ([]Round, error) { return w.along(ctx, name, s, w.run.opts.roundSize(total)) }
		rounds, err := laps(w, s, key, play, func(r *Round, run int) {
			r.Strategy, r.Session, r.Source, r.Mode, r.Run = s.Name, name, w.session.Source, w.session.Mode, run
		})
		if err != nil {
			return nil, err
		}
		out = append(out, rounds...)
	}
	return out, nil
}

// along condenses with s whenever the view has size tokens.
func (w *sessionWork) along(ctx context.Context, name string, s *Strategy, size int) ([]Round, error) {
	var out []Round
	var view []core.Message
	var first *score.Scorer
	tokens := 0
	for i := range w.session.Messages {
		m := &w.session.Messages[i]
		if tokens >= size && m.Role == core.RoleAssistant && len(out) < w.run.opts.Rounds {
			cut, ok := score.CutAt(w.session, "round", i)
			if !ok {
				break
			}
			b := w.trial(name, task{budget: "rounds", cut: cut, room: size / 2})
			b.scorer = w.scorer(cut)
			first = cmp.Or(first, b.scorer)
			r := Round{Strategy: s.Name, Session: name, Source: w.session.Source, Mode: w.session.Mode, Round: len(out) + 1, At: i}
			next, _, err := b.condense(ctx, s, view, len(out)+1)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			r.Outcome = core.OutcomeFailed
			if err == nil {
				r.Outcome, _ = outcome(next)
				r.Setbacks, _, _ = setbacks(next)
				r.Usage = r.Usage.Add(next.Usage)
				r.Format = w.fileFormat()
				if view, err = reread(next.Messages, r.Format, len(out)+1, w.counter); err != nil {
					r.Outcome, r.Error = core.OutcomeFailed, err.Error()
					return append(out, r), nil //nolint:nilerr // a format that cannot hold the view is a result
				}
			}
			once, _, err := b.condense(ctx, s, cut.Prefix(), len(out)+1)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err == nil {
				r.Usage = r.Usage.Add(once.Usage)
				score := b.scorer.Score(once.Messages)
				r.Once, r.OnceUser = value(score.Panel()), value(score.UIR.Value())
			}
			score, start := b.scorer.Score(view), first.Score(view)
			r.Panel, r.User = value(score.Panel()), value(score.UIR.Value())
			r.FirstUser, r.FirstFiles = value(start.UIR.Value()), value(start.Artefacts.Value())
			tokens = sizeOf(w.counter, view)
			r.After = tokens
			out = append(out, r)
			if tokens >= size { // it would be due again at once
				break
			}
		}
		view = append(view, *m)
		tokens += m.Tokens
	}
	return out, nil
}

func (r Round) lap() (core.Usage, bool) {
	return r.Usage, r.Outcome == core.OutcomeFailed || r.Setbacks > 0
}

func value(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &v
}
