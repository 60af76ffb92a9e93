package need

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// A Lesson is a conversation that was cut, and what was written after it.
type Lesson struct {
	Project string // lessons of one project are not independent
	Before  []core.Message
	After   []core.Message
	System  string // the system prompt, which need not be remembered
}

// What one later message asks for is bounded: one that writes a whole file says no more
// of what should have been kept than one that changes a line.
const (
	namesPerMessage   = 12.0 // in sum of weights
	phrasesPerMessage = 60
)

// needed returns, for every term and phrase of c, whether the person or the agent writes
// it in after before it is seen there: 1, or less for one of many; 0 if not.
func (c *Conversation) needed(m *Model, l *Lesson) (terms, phrases []float32) {
	terms, phrases = make([]float32, len(c.terms)), make([]float32, len(c.phrases))
	known := knownTerms(l)
	f := Read(l.After)
	seenTerm, seenPhrase := firsts(len(f.terms)), firsts(len(f.phrases))
	var ours []int32                    // terms that the message at hand asks for
	taken := make([]bool, len(c.terms)) // it or one before did
	total, asked, msg := 0.0, 0, -1
	flush := func() {
		scale := float32(min(1, namesPerMessage/max(total, 1e-9)))
		for _, n := range ours {
			terms[n] = 1
			if c.terms[n].class != classWord {
				terms[n] = scale
			}
		}
		ours, total, asked = ours[:0], 0, 0
	}
	for p := range f.Passages {
		pass := &f.Passages[p]
		if pass.Message != msg {
			flush()
			msg = pass.Message
		}
		own := whose(pass.Kind) != byTool
		for i := pass.Lines.Start; i < pass.Lines.End; i++ {
			for _, n := range f.TermsOf(i) {
				isNew := seenTerm[n] < 0 || seenTerm[n] == int32(msg)
				if seenTerm[n] < 0 {
					seenTerm[n] = int32(msg)
				}
				h := f.termAt.keys[n]
				at := c.termAt.find(h)
				if !own || !isNew || at < 0 || int(at) >= len(c.terms) || known[h] || taken[at] {
					continue
				}
				taken[at] = true
				ours = append(ours, at)
				if c.terms[at].class != classWord {
					total += c.weight(int(at), m.rarity(h))
				}
			}
			for _, n := range f.PhrasesOf(i) {
				n = max(n, ^n)
				isNew := seenPhrase[n] < 0 || seenPhrase[n] == int32(msg)
				if seenPhrase[n] < 0 {
					seenPhrase[n] = int32(msg)
				}
				at := c.phraseAt.find(f.phraseAt.keys[n])
				if own && isNew && at >= 0 && asked < phrasesPerMessage && phrases[at] == 0 {
					phrases[at] = 1
					asked++
				}
			}
		}
	}
	flush()
	return terms, phrases
}

func firsts(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = -1
	}
	return out
}

// knownTerms returns what the agent has from elsewhere: the words of the system prompt,
// the names of tools and of their parameters.
func knownTerms(l *Lesson) map[uint64]bool {
	out := map[uint64]bool{}
	var x lexer
	learn := func(s string) {
		x.read(s)
		for _, m := range x.mentions {
			out[m.hash] = true
		}
	}
	for line := range strings.SplitSeq(l.System, "\n") {
		learn(line)
	}
	for _, list := range [][]core.Message{l.Before, l.After} {
		for i := range list {
			for _, p := range list[i].Parts {
				call, ok := p.(core.ToolCall)
				if !ok {
					continue
				}
				learn(call.Name)
				var args map[string]json.RawMessage
				if json.Unmarshal([]byte(call.Args), &args) == nil {
					for _, k := range slices.Sorted(maps.Keys(args)) {
						learn(k)
					}
				}
			}
		}
	}
	return out
}

// leastProjects is in how many projects a term must stand to be noted as common.
const leastProjects = 2

// Common returns the terms that stand in several projects, in the form of common.txt.
func Common(projects map[string][][]core.Message) string {
	counts, names := map[uint64]int{}, map[uint64]string{}
	for _, name := range slices.Sorted(maps.Keys(projects)) {
		seen := map[uint64]bool{}
		for _, messages := range projects[name] {
			c := Read(messages)
			var x lexer
			for i := range c.Lines {
				x.read(c.Lines[i].Text)
				for _, m := range x.mentions {
					if !seen[m.hash] {
						seen[m.hash] = true
						counts[m.hash]++
					}
				}
			}
			for i := range c.Lines { // names, for those that may be listed
				nameTerms(c.Lines[i].Text, counts, names)
			}
		}
	}
	byCount := map[int][]string{}
	for h, n := range counts {
		if n >= leastProjects && names[h] != "" {
			byCount[n] = append(byCount[n], names[h])
		}
	}
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(byCount)) {
		slices.Sort(byCount[n])
		fmt.Fprintf(&b, "%d: %s\n", n, strings.Join(byCount[n], " "))
	}
	return b.String()
}

// nameTerms notes the spelling of terms that were counted.
func nameTerms(line string, counts map[uint64]int, names map[uint64]string) {
	for s := range strings.FieldsFuncSeq(line, func(r rune) bool { return r >= 0x80 || bytesOf[r]&isWord == 0 && r != '.' && r != '-' }) {
		for _, cand := range []string{s, strings.Trim(s, ".-_"), strings.TrimPrefix(s, "v")} {
			noteName(cand, counts, names)
		}
		for part := range strings.SplitSeq(s, ".") {
			noteName(strings.Trim(part, "-_"), counts, names)
		}
	}
}

func noteName(s string, counts map[uint64]int, names map[uint64]string) {
	if len(s) < 3 || len(s) > 32 {
		return
	}
	if h := hashOf(s); counts[h] > 0 && names[h] == "" {
		names[h] = s
	}
}

// A sample is a term or phrase of a lesson: its steps, how much it counts, whether it was
// needed.
type sample struct {
	steps  []uint16
	x      []float32 // what the trees see
	weight float32
	needed float32
}

// Settings of the training. Rate and epochs are those with the least loss on projects
// that were left out: with ten times the rate or six epochs the loss on what is seen goes
// on falling, and that on what is not rises by a tenth.
const (
	keepTerms   = 5     // of terms that were not needed, one in so many is looked at, for all
	keepPhrases = 16    // the same of phrases
	epochs      = 2     // how often all samples are gone through
	rate        = 0.015 // of AdaGrad
	decay       = 2e-6  // of a weight, towards zero, by every sample
	fewestNeeds = 5.0   // a lesson that asks for less is given no more weight
)

// Loss returns how surprised m is, per lesson weighted as in training, by what is needed
// of terms and of phrases.
func (m *Model) Loss(lessons []Lesson) (terms, phrases float64) {
	rng := rand.New(rand.NewPCG(17, 4)) //nolint:gosec // no secret
	var s []sample
	for i := range lessons {
		s = m.termSamples(s, &lessons[i], rng)
	}
	terms = lossOf(m.terms, m.termTrees, s)
	s = s[:0]
	for i := range lessons {
		s = m.phraseSamples(s, &lessons[i], rng)
	}
	return terms, lossOf(m.phrases, m.phraseTrees, s)
}

// lossOf is per unit of what was needed, so that lessons of different length compare.
func lossOf(w []float32, trees *forest, samples []sample) float64 {
	loss, all := 0.0, 0.0
	for i := range samples {
		s := &samples[i]
		p, y := sigmoid(logit(w, s.steps)+trees.sum(s.x)), float64(s.needed)
		loss -= float64(s.weight) * (y*math.Log(p+1e-12) + (1-y)*math.Log(1-p+1e-12))
		all += float64(s.weight) * y
	}
	return loss / max(1e-9, all)
}

// Train fits a model to lessons. The same lessons in the same order give the same model.
func Train(lessons []Lesson, common string, log io.Writer) (*Model, error) {
	table, err := parseCommon(common)
	if err != nil {
		return nil, err
	}
	m := &Model{common: table, terms: make([]float32, width(termFeatures)), phrases: make([]float32, width(phraseFeatures))}
	rng := rand.New(rand.NewPCG(17, 4)) //nolint:gosec // no secret
	var samples []sample
	for i := range lessons {
		samples = m.termSamples(samples, &lessons[i], rng)
	}
	fit(m.terms, samples, rng, log, "terms")
	m.termTrees = boost(m.terms, samples, rng, log, "terms")
	samples = samples[:0]
	for i := range lessons {
		samples = m.phraseSamples(samples, &lessons[i], rng)
	}
	fit(m.phrases, samples, rng, log, "phrases")
	m.phraseTrees = boost(m.phrases, samples, rng, log, "phrases")
	return m, nil
}

func width(features []feature) int {
	n := 0
	for _, f := range features {
		n += f.steps
	}
	return n
}

func (m *Model) termSamples(out []sample, l *Lesson, rng *rand.Rand) []sample {
	c := Read(l.Before)
	needed, _ := c.needed(m, l)
	total := [2]float64{} // of names and of words
	weight := make([]float64, len(c.terms))
	for n := range c.terms {
		weight[n] = c.weight(n, m.rarity(c.termAt.keys[n]))
		total[flag(c.terms[n].class == classWord)] += weight[n] * float64(needed[n])
	}
	base, best := m.odds(c)
	f := c.focus()
	var buf [40]uint16
	for n := range c.terms {
		if c.terms[n].messages == 0 || weight[n] == 0 {
			continue
		}
		w := weight[n] / max(fewestNeeds, total[flag(c.terms[n].class == classWord)])
		if needed[n] == 0 {
			if rng.IntN(keepTerms) > 0 {
				continue
			}
			w *= keepTerms
		}
		steps := slices.Clone(c.termSteps(n, m.rarity(c.termAt.keys[n]), &buf))
		x := make([]float32, termSize)
		l := c.terms[n].lastLine
		c.lineVector(f, int(l), best[l], x)
		c.termVector(n, m.rarity(c.termAt.keys[n]), float32(sigmoid(base[n])), x)
		out = append(out, sample{steps, x, float32(w), needed[n]})
	}
	return out
}

func (m *Model) phraseSamples(out []sample, l *Lesson, rng *rand.Rand) []sample {
	c := Read(l.Before)
	_, needed := c.needed(m, l)
	total := 0.0
	for n := range c.phrases {
		if c.phrases[n].messages <= phraseMessages {
			total += float64(needed[n])
		}
	}
	_, best := m.odds(c)
	lines := c.lineVectors(c.focus(), best)
	var buf [40]uint16
	for n := range c.phrases {
		f := &c.phrases[n]
		if f.messages > phraseMessages {
			continue
		}
		w := 1 / max(fewestNeeds, total)
		if needed[n] == 0 {
			if rng.IntN(keepPhrases) > 0 {
				continue
			}
			w *= keepPhrases
		}
		steps := slices.Clone(c.phraseSteps(n, best[f.lastLine], &buf))
		l := int(f.lastLine) * lineSize
		out = append(out, sample{steps, lines[l : l+lineSize], float32(w), needed[n]})
	}
	return out
}

// fit is logistic regression by stochastic gradient descent with a rate for every weight
// (AdaGrad: Duchi, Hazan and Singer, 2011).
func fit(w []float32, samples []sample, rng *rand.Rand, log io.Writer, what string) {
	mean := 0.0
	for i := range samples {
		mean += float64(samples[i].weight)
	}
	mean /= max(1, float64(len(samples)))
	squares := make([]float64, len(w))
	x := make([]float64, len(w))
	for epoch := range epochs {
		rng.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
		loss, all := 0.0, 0.0
		for i := range samples {
			s := &samples[i]
			z := 0.0
			for _, k := range s.steps {
				z += x[k]
			}
			p := sigmoid(z)
			y, weight := float64(s.needed), min(20, float64(s.weight)/mean)
			loss -= weight * (y*math.Log(p+1e-12) + (1-y)*math.Log(1-p+1e-12))
			all += weight
			g := weight * (p - y)
			for _, k := range s.steps {
				d := g + decay*x[k]
				squares[k] += d * d
				x[k] -= rate * d / (math.Sqrt(squares[k]) + 1e-6)
			}
		}
		fmt.Fprintf(log, "%s: epoch %d, %d samples, loss %.5f\n", what, epoch+1, len(samples), loss/max(1e-9, all))
	}
	for k := range w {
		w[k] = float32(math.Round(x[k]*1000) / 1000)
	}
}

// Weights returns the weights of m in the form of weights.json.
func (m *Model) Weights(note string) []byte {
	lines := func(features []feature, w []float32) string {
		var b strings.Builder
		base := 0
		for i, f := range features {
			v, _ := json.Marshal(w[base : base+f.steps]) //nolint:errchkjson // numbers
			base += f.steps
			sep := ","
			if i == len(features)-1 {
				sep = ""
			}
			fmt.Fprintf(&b, "    %q: %s%s\n", f.name, v, sep)
		}
		return b.String()
	}
	return fmt.Appendf(nil, "{\n  \"note\": %q,\n  \"terms\": {\n%s  },\n  \"phrases\": {\n%s  },\n  \"term trees\": [\n%s  ],\n  \"phrase trees\": [\n%s  ]\n}\n",
		note, lines(termFeatures, m.terms), lines(phraseFeatures, m.phrases), m.termTrees.write(), m.phraseTrees.write())
}

// Parse reads a model in the forms of weights.json and common.txt.
func Parse(weights []byte, common string) (*Model, error) { return parseModel(weights, common) }
