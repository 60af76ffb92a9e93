package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/search"
	"github.com/condensehq/condense/tokens"
)

// depth is the number of hits in which messages count; agents get as many. Sessions count in the order of their best hits.
const depth = 10

// A found question has the shares of its gold messages among the first 5 and 10 hits, and whether one is in the session of the best
// hit, or in the first five different sessions.
type found struct {
	conversation, ability string
	shares                []float64 // without the sessions if the messages name none
}

// searched asks the questions of the conversations in folders as queries in the whole conversation, and prints the mean shares.
func searched(folders []string) error {
	var all []found
	var indexed, answered []float64
	enc, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return err
	}
	counter := tokens.NewCounter(enc)
	for _, folder := range folders {
		names, err := filepath.Glob(filepath.Join(folder, "*.json"))
		if err != nil {
			return err
		}
		for _, name := range names {
			var c conversation
			if err := read(name, &c); err != nil {
				return err
			}
			j := history.New()
			if err := j.Append(c.measured(counter)...); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			begin := time.Now()
			x, err := search.NewIndex(context.Background(), recall.New(j).Own.All())
			if err != nil {
				return err
			}
			indexed = append(indexed, milliseconds(begin))
			for i := range c.Questions {
				q, err := search.Parse(c.Questions[i].Text)
				if err != nil || len(c.Questions[i].Evidence) == 0 {
					continue // without text, or about lines
				}
				begin := time.Now()
				_, _ = x.Find(q, depth)
				answered = append(answered, milliseconds(begin))
				hits, _ := x.Find(q, math.MaxInt)
				all = append(all, found{name, c.Questions[i].Ability, c.found(&c.Questions[i], hits)})
			}
		}
	}
	if len(all) == 0 {
		return errors.New("no question has a text; convert the conversations again")
	}
	abilities := []string{""}
	for _, f := range all {
		if !slices.Contains(abilities, f.ability) {
			abilities = append(abilities, f.ability)
		}
	}
	slices.Sort(abilities)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ability\tquestions\trecall at 5\tat 10\tsession at 1\tat 5")
	for _, a := range slices.Compact(abilities) {
		fmt.Fprintln(w, row(all, a))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("\nMeans over questions, with the half width of the 95 %% interval over conversations. Median times: %.1f ms to read a conversation, %.1f ms to answer a question.\n", median(indexed), median(answered))
	return nil
}

// measured returns the messages as condense reads them.
func (c *conversation) measured(counter core.Counter) []core.Message {
	var out []core.Message
	for i := range c.Messages {
		out = append(out, c.Messages[i].Message())
	}
	core.Measure(counter, out)
	return out
}

// found compares hits with the evidence of a question.
func (c *conversation) found(q *question, hits []search.Hit) []float64 {
	sitting := func(id string) string {
		i := slices.IndexFunc(c.Messages, func(m message) bool { return m.ID == id })
		return c.Messages[i].Session
	}
	var gold, sessions []string
	for _, id := range q.Evidence {
		gold = append(gold, sitting(id))
	}
	share, named := 1/float64(len(q.Evidence)), false
	shares := make([]float64, 4)
	for k, h := range hits {
		id := h.Piece.Places[0].Message.ID
		if k < depth && slices.Contains(q.Evidence, id) {
			shares[1] += share
			if k < depth/2 {
				shares[0] += share
			}
		}
		at := sitting(id)
		named = named || at != ""
		if slices.Contains(sessions, at) {
			continue
		}
		if sessions = append(sessions, at); len(sessions) <= 5 && slices.Contains(gold, at) {
			shares[3] = 1
			if len(sessions) == 1 {
				shares[2] = 1
			}
		}
	}
	if !named {
		return shares[:2]
	}
	return shares
}

// row is the line of an ability, or of all questions if it is empty.
func row(all []found, ability string) string {
	name, n := ability, 0
	if name == "" {
		name = "all questions"
	}
	line := ""
	for column := range 4 {
		by := map[string][]float64{}
		var conversations []string
		count := 0
		for _, f := range all {
			if ability != "" && f.ability != ability || column >= len(f.shares) {
				continue
			}
			if by[f.conversation] == nil {
				conversations = append(conversations, f.conversation)
			}
			by[f.conversation] = append(by[f.conversation], f.shares[column])
			count++
		}
		if column == 0 {
			n = count
		}
		line += "\t" + interval(by, conversations)
	}
	return fmt.Sprintf("%s\t%d%s", name, n, line)
}

// interval is the mean of values, with half of its bootstrap interval over conversations.
func interval(by map[string][]float64, conversations []string) string {
	if len(conversations) == 0 {
		return ""
	}
	mean := func(of []string) float64 {
		sum, n := 0.0, 0
		for _, c := range of {
			for _, v := range by[c] {
				sum += v
				n++
			}
		}
		return sum / float64(n)
	}
	const samples, seed = 2000, 1
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // a sample
	means := make([]float64, samples)
	drawn := make([]string, len(conversations))
	for i := range means {
		for k := range drawn {
			drawn[k] = conversations[random.IntN(len(conversations))]
		}
		means[i] = mean(drawn)
	}
	slices.Sort(means)
	return fmt.Sprintf("%.3f ±%.3f", mean(conversations), (means[samples*975/1000]-means[samples*25/1000])/2)
}

func milliseconds(begin time.Time) float64 { return float64(time.Since(begin).Microseconds()) / 1000 }

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
