package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/condensehq/condense/internal/value"
)

// A lesson is a conversation that was cut, with the messages after the cut.
type lesson struct {
	value.Sequel

	Project string // lessons of one project are not independent
}

// A sample is a term or phrase of a lesson.
type sample struct {
	steps  []uint16
	x      []float32 // the trees' input
	weight float32   // in the loss
	reused float32   // 1 if it was, less for one of many
}

// Settings of the training. Rate and epochs have the least loss on projects that were left out. With ten times the
// rate or six epochs the loss on the training set falls further, and the loss on the others rises by a tenth.
const (
	keepTerms   = 5     // one in so many terms that were not reused is a sample, and counts for all
	keepPhrases = 16    // the same for phrases
	epochs      = 2     // passes over all samples
	rate        = 0.015 // of AdaGrad
	decay       = 2e-6  // of a weight towards zero, per sample
	minReused   = 5.0   // a lesson with fewer reused terms gets no more weight
)

// A trainer makes samples of lessons. The same lessons give the same samples.
type trainer struct {
	lessons []lesson
	rng     *rand.Rand
	log     io.Writer
}

func newTrainer(lessons []lesson, log io.Writer) *trainer {
	return &trainer{lessons, rand.New(rand.NewPCG(17, 4)), log} //nolint:gosec // no secret
}

// train fits a model to lessons. The same lessons in the same order give the same model.
func train(lessons []lesson, words *vocabulary, log io.Writer) (*model, error) {
	t := newTrainer(lessons, log)
	m := newModel(words)
	samples, err := t.samples(m, (*trainer).terms)
	if err != nil {
		return nil, err
	}
	m.terms, m.termTrees = t.fit(samples, len(m.terms), "terms")
	if samples, err = t.samples(m, (*trainer).phrases); err != nil {
		return nil, err
	}
	m.phrases, m.phraseTrees = t.fit(samples, len(m.phrases), "phrases")
	return m, nil
}

// loss returns the log loss of m on the terms and on the phrases of lessons, weighted as in
// training.
func (m *model) loss(lessons []lesson) (terms, phrases float64, err error) {
	t := newTrainer(lessons, io.Discard)
	samples, err := t.samples(m, (*trainer).terms)
	if err != nil {
		return 0, 0, err
	}
	terms = lossOf(m.terms, m.termTrees, samples)
	samples, err = t.samples(m, (*trainer).phrases)
	return terms, lossOf(m.phrases, m.phraseTrees, samples), err
}

// lossOf returns the log loss divided by the weight of the reused samples, so that lessons of different length
// can be compared.
func lossOf(w []float32, trees []tree, samples []sample) float64 {
	loss, all := 0.0, 0.0
	for i := range samples {
		s := &samples[i]
		more := float32(0)
		for _, t := range trees {
			more += t.value(s.x)
		}
		p, y := sigmoid(logit(w, s.steps)+float64(more)), float64(s.reused)
		loss -= float64(s.weight) * (y*math.Log(p+1e-12) + (1-y)*math.Log(1-p+1e-12))
		all += float64(s.weight) * y
	}
	return loss / max(1e-9, all)
}

// samples makes samples of all lessons. Their features depend on the estimates of m so far.
func (t *trainer) samples(m *model, from func(*trainer, []sample, *value.Model, *lesson) []sample) ([]sample, error) {
	models := map[string]*value.Model{}
	var out []sample
	for i := range t.lessons {
		l := &t.lessons[i]
		if models[l.Project] == nil {
			model, err := m.open(l.Project)
			if err != nil {
				return nil, err
			}
			models[l.Project] = model
		}
		out = from(t, out, models[l.Project], l)
	}
	return out, nil
}

func (t *trainer) terms(out []sample, m *value.Model, l *lesson) []sample {
	c := value.Read(l.Before)
	reused, _ := c.Reused(m, &l.Sequel)
	v := m.Evidence(c)
	names, words := 0.0, 0.0
	total := func(n int) *float64 {
		if c.Term(n).Word {
			return &words
		}
		return &names
	}
	for n := range reused {
		*total(n) += v.Weight(n) * float64(reused[n])
	}
	var buf value.Steps
	for n := range reused {
		w := v.Weight(n)
		if c.Term(n).Messages == 0 || w == 0 {
			continue
		}
		w /= max(minReused, *total(n))
		if reused[n] == 0 {
			if t.rng.IntN(keepTerms) > 0 {
				continue
			}
			w *= keepTerms
		}
		x := make([]float32, value.TermSize)
		v.TermVector(n, x)
		out = append(out, sample{slices.Clone(v.TermSteps(n, &buf)), x, float32(w), reused[n]})
	}
	return out
}

func (t *trainer) phrases(out []sample, m *value.Model, l *lesson) []sample {
	c := value.Read(l.Before)
	_, reused := c.Reused(m, &l.Sequel)
	total := 0.0
	for n := range reused {
		if _, formula := c.PhraseLine(n); !formula {
			total += float64(reused[n])
		}
	}
	v := m.Evidence(c)
	lines := make([][]float32, len(c.Lines)) // the trees' input for each line, which its phrases share
	var buf value.Steps
	for n := range reused {
		line, formula := c.PhraseLine(n)
		if formula {
			continue
		}
		w := 1 / max(minReused, total)
		if reused[n] == 0 {
			if t.rng.IntN(keepPhrases) > 0 {
				continue
			}
			w *= keepPhrases
		}
		if lines[line] == nil {
			lines[line] = make([]float32, value.LineSize)
			v.LineVector(line, lines[line])
		}
		out = append(out, sample{slices.Clone(v.PhraseSteps(n, &buf)), lines[line], float32(w), reused[n]})
	}
	return out
}

// fit fits weights to samples, then trees to the residuals.
func (t *trainer) fit(samples []sample, weights int, what string) ([]float32, []tree) {
	w := t.descend(samples, weights, what)
	trees := t.boost(w, samples, what)
	return w, trees
}

// descend is logistic regression by stochastic gradient descent with a learning rate for each weight
// (AdaGrad: Duchi, Hazan and Singer, 2011).
func (t *trainer) descend(samples []sample, weights int, what string) []float32 {
	mean := 0.0
	for i := range samples {
		mean += float64(samples[i].weight)
	}
	mean /= max(1, float64(len(samples)))
	squares := make([]float64, weights)
	x := make([]float64, weights)
	for epoch := range epochs {
		t.rng.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
		loss, all := 0.0, 0.0
		for i := range samples {
			s := &samples[i]
			z := 0.0
			for _, k := range s.steps {
				z += x[k]
			}
			p := sigmoid(z)
			y, weight := float64(s.reused), min(20, float64(s.weight)/mean)
			loss -= weight * (y*math.Log(p+1e-12) + (1-y)*math.Log(1-p+1e-12))
			all += weight
			g := weight * (p - y)
			for _, k := range s.steps {
				d := g + decay*x[k]
				squares[k] += d * d
				x[k] -= rate * d / (math.Sqrt(squares[k]) + 1e-6)
			}
		}
		fmt.Fprintf(t.log, "%s: epoch %d, %d samples, loss %.5f\n", what, epoch+1, len(samples), loss/max(1e-9, all))
	}
	w := make([]float32, weights)
	for k := range w {
		w[k] = float32(math.Round(x[k]*1000) / 1000)
	}
	return w
}
