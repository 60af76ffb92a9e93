package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/search"
	"github.com/condensehq/condense/tokens"
)

// searchDepth is the number of hits in which messages count; agents get as many. Sessions count in the order of their best hits.
const searchDepth = 10

// A SearchReport says how well the search finds the messages that answer questions.
type SearchReport struct {
	Lines []SearchLine `json:"lines"` // all questions, then by ability
	// Indexed and Answered are the median times of reading a conversation and of answering a question, in milliseconds.
	Indexed  float64   `json:"indexed_ms"`
	Answered float64   `json:"answered_ms"`
	Skipped  []Skipped `json:"skipped,omitempty"`
}

// A SearchLine is a mean over questions with text, with intervals over conversations.
type SearchLine struct {
	Ability   string `json:"ability,omitempty"`
	Questions int    `json:"questions"`
	// At5 and At10 are the shares of the gold messages among the first hits.
	At5  Estimate `json:"recall_5"`
	At10 Estimate `json:"recall_10"`
	// Session1 and Session5 are the shares of the questions with a gold message in the session of the best hit, and in the
	// first five different sessions; absent if the messages name none.
	Session1 *Estimate `json:"session_1,omitempty"`
	Session5 *Estimate `json:"session_5,omitempty"`
}

// A found question has the shares of a [SearchLine].
type found struct {
	conversation, ability string
	at5, at10             float64
	sessions              bool
	session1, session5    float64
}

// Search asks the questions of conversations with evidence as queries in the whole conversation.
func Search(ctx context.Context, items []Item, seed uint64) (*SearchReport, error) {
	r := &SearchReport{}
	var all []found
	var indexed, answered []float64
	enc, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return nil, err
	}
	counter := tokens.NewCounter(enc)
	for _, it := range items {
		if !it.Evidence {
			return nil, fmt.Errorf("%s: the search is measured on evidence:PATH only", it.Name)
		}
		g, err := it.gold(counter)
		if err != nil {
			r.Skipped = append(r.Skipped, Skipped{Name: it.Name, Reason: err.Error()})
			continue
		}
		j := history.New()
		if err := j.Append(g.session.Messages...); err != nil {
			return nil, fmt.Errorf("%s: %w", it.Name, err)
		}
		begin := time.Now()
		x, err := search.NewIndex(ctx, recall.New(j).Own.All())
		if err != nil {
			return nil, err
		}
		indexed = append(indexed, milliseconds(time.Since(begin)))
		for i := range g.questions {
			q, err := search.Parse(g.questions[i].text)
			if err != nil || len(g.questions[i].evidence) == 0 {
				continue // without text, or about lines
			}
			begin := time.Now()
			_, _ = x.Find(q, searchDepth)
			answered = append(answered, milliseconds(time.Since(begin)))
			hits, _ := x.Find(q, math.MaxInt)
			f := g.found(&g.questions[i], hits)
			f.conversation = it.Name
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return r, errors.New("no question has a text; convert the conversations again")
	}
	r.Indexed, r.Answered = median(indexed), median(answered)
	abilities := []string{""}
	for i := range all {
		if !slices.Contains(abilities, all[i].ability) {
			abilities = append(abilities, all[i].ability)
		}
	}
	slices.Sort(abilities)
	s := newSampler(seed)
	for _, ability := range abilities {
		r.Lines = append(r.Lines, searchLine(s, all, ability))
	}
	return r, nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// found compares hits with the evidence of a question.
func (g *gold) found(q *goldQuestion, hits []search.Hit) found {
	f := found{ability: q.ability}
	var gold, sessions []string
	for _, id := range q.evidence {
		gold = append(gold, g.sittings[id])
	}
	share := 1 / float64(len(q.evidence))
	for k, h := range hits {
		id := h.Piece.Places[0].Message.ID
		if k < searchDepth && slices.Contains(q.evidence, id) {
			f.at10 += share
			if k < searchDepth/2 {
				f.at5 += share
			}
		}
		at := g.sittings[id]
		f.sessions = f.sessions || at != ""
		if slices.Contains(sessions, at) {
			continue
		}
		if sessions = append(sessions, at); len(sessions) <= 5 && slices.Contains(gold, at) {
			f.session5 = 1
			if len(sessions) == 1 {
				f.session1 = 1
			}
		}
	}
	return f
}

// searchLine returns the means over the questions of an ability, or over all if it is empty.
func searchLine(s *sampler, all []found, ability string) SearchLine {
	l := SearchLine{Ability: ability}
	mean := func(value func(f *found) (float64, bool)) Estimate {
		var values []float64
		var groups []string
		for i := range all {
			f := &all[i]
			if v, ok := value(f); ok && (ability == "" || f.ability == ability) {
				values, groups = append(values, v), append(groups, f.conversation)
			}
		}
		e, _ := s.clustered(values, groups)
		e.Sessions, e.Folders = len(values), 0
		return e
	}
	l.At5 = mean(func(f *found) (float64, bool) { return f.at5, true })
	l.At10 = mean(func(f *found) (float64, bool) { return f.at10, true })
	l.Questions = l.At5.Sessions
	if e := mean(func(f *found) (float64, bool) { return f.session1, f.sessions }); e.Sessions > 0 {
		five := mean(func(f *found) (float64, bool) { return f.session5, f.sessions })
		l.Session1, l.Session5 = &e, &five
	}
	return l
}
