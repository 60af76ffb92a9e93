package value

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/condensehq/condense/internal/value/parallel"
)

// A Model holds the weights of every step of every feature, and the terms that are common
// to unrelated projects. It never changes and is safe for concurrent use.
type Model struct {
	terms, phrases []float32
	// Trees correct the weights' estimates: of terms, and of the phrases of a line.
	termTrees, phraseTrees *forest
	common                 map[uint64]uint8 // rarity of the terms that several projects have
}

//go:embed weights.json
var weightsJSON []byte

//go:embed common.txt
var commonText string

// DefaultModel returns the model that comes with the package.
var DefaultModel = sync.OnceValues(func() (*Model, error) { return ParseModel(weightsJSON, commonText) })

// weights is the form of weights.json: for every feature its weights by step.
type weights struct {
	Note    string               `json:"note"`
	Terms   map[string][]float32 `json:"terms"`
	Phrases map[string][]float32 `json:"phrases"`
	// TermTrees and PhraseTrees hold nodes; see parseTrees.
	TermTrees   [][][]float32 `json:"term trees"`
	PhraseTrees [][][]float32 `json:"phrase trees"`
}

// ParseModel reads a model in the forms of weights.json and common.txt.
func ParseModel(data []byte, common string) (*Model, error) {
	var w weights
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	m := &Model{}
	var err error
	if m.terms, err = layOut(termFeatures, w.Terms); err != nil {
		return nil, fmt.Errorf("weights: terms: %w", err)
	}
	if m.phrases, err = layOut(phraseFeatures, w.Phrases); err != nil {
		return nil, fmt.Errorf("weights: phrases: %w", err)
	}
	if m.termTrees, err = parseTrees(w.TermTrees, termSize); err != nil {
		return nil, fmt.Errorf("weights: terms: %w", err)
	}
	if m.phraseTrees, err = parseTrees(w.PhraseTrees, lineSize); err != nil {
		return nil, fmt.Errorf("weights: phrases: %w", err)
	}
	m.common, err = parseCommon(common)
	return m, err
}

func layOut(features []Feature, w map[string][]float32) ([]float32, error) {
	var out []float32
	for _, f := range features {
		if len(w[f.Name]) != f.Steps {
			return nil, fmt.Errorf("%q has %d weights, want %d", f.Name, len(w[f.Name]), f.Steps)
		}
		out = append(out, w[f.Name]...)
	}
	return out, nil
}

// rareShares are the steps of the share of projects that have a term. It is a share rather than a number, so that
// adding projects does not make terms common. With fewer than shareOf projects, shareOf is the divisor.
var rareShares = []float64{0.12, 0.2, 0.27, 0.36}

const shareOf = 13

// rarities is the number of steps.
const rarities = 5

// parseCommon reads lines of a share of projects, as a fraction, and the terms that so many of them have.
func parseCommon(s string) (map[uint64]uint8, error) {
	out := make(map[uint64]uint8, 16384)
	for line := range strings.SplitSeq(s, "\n") {
		share, rest, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		count, all, _ := strings.Cut(share, "/")
		n, err1 := strconv.ParseUint(count, 10, 32)
		of, err2 := strconv.ParseUint(all, 10, 32)
		if err1 != nil || err2 != nil || of == 0 {
			return nil, fmt.Errorf("common terms: %q: want a share of projects like 3/16", share)
		}
		for t := range strings.FieldsSeq(rest) {
			out[hashOf(t)] = uint8(thresholds(float64(n)/float64(max(of, shareOf)), rareShares))
		}
	}
	return out, nil
}

// rarity returns the step of a term.
func (m *Model) rarity(h uint64) int { return int(m.common[h]) }

// An Estimate rates terms and phrases.
type Estimate struct {
	// Names and Words hold a value for every term, zero in one of them: the probability that it is written again,
	// times the difficulty of guessing it.
	Names, Words []float32
	// Phrases holds a value for every phrase.
	Phrases []float32
	// The sums of the values.
	nameSum, wordSum, phraseSum float64
}

// Estimate values all terms and phrases of c. The cost is linear.
func (m *Model) Estimate(c *Conversation) *Estimate {
	e := &Estimate{Names: make([]float32, len(c.terms)), Words: make([]float32, len(c.terms)), Phrases: make([]float32, len(c.phrases))}
	v := m.Evidence(c)
	// Sums are made in the order of the numbers: another order changes the last digit.
	inOrder(len(c.terms), func(from, to int, values []float64) {
		var x [termSize]float32
		line := int32(-1) // the line that x describes: consecutive terms are mostly of the same line
		for n := from; n < to; n++ {
			if c.terms[n].messages == 0 {
				continue
			}
			weight := v.Weight(n)
			if weight == 0 {
				continue
			}
			if c.terms[n].lastLine != line {
				line = c.terms[n].lastLine
				v.LineVector(int(line), x[:])
			}
			v.ofTerm(n, x[:])
			values[n-from] = sigmoid(v.odds[n]+m.termTrees.sum(x[:])) * weight
		}
	}, func(n int, v float64) {
		if c.terms[n].class == classWord {
			e.Words[n] = float32(v)
			e.wordSum += v
		} else {
			e.Names[n] = float32(v)
			e.nameSum += v
		}
	})
	more := make([]float32, len(c.Lines))
	parallel.Ranges(len(c.Lines), minValues, func(from, to int) {
		var some [64][lineSize]float32
		for ; from < to; from += len(some) {
			of := some[:min(len(some), to-from)]
			for i := range of {
				v.LineVector(from+i, of[i][:])
			}
			m.phraseTrees.sums(of, more[from:])
		}
	})
	inOrder(len(c.phrases), func(from, to int, values []float64) {
		var buf Steps
		type rated struct {
			phrase
			value float64
		}
		// Consecutive phrases of a line mostly have the same features, and so the same value. The index is the number of
		// words that are not fillers.
		var last [4]rated
		for n := from; n < to; n++ {
			f := &c.phrases[n]
			if f.messages > phraseMessages {
				continue
			}
			alike := &last[f.content&3]
			if alike.phrase != *f {
				alike.phrase, alike.value = *f, sigmoid(logit(m.phrases, v.PhraseSteps(n, &buf))+float64(more[f.lastLine]))
			}
			values[n-from] = alike.value
		}
	}, func(n int, p float64) {
		e.Phrases[n] = float32(p)
		e.phraseSum += p
	})
	return e
}

// minValues is the number of values that justifies a goroutine.
const minValues = 512

// inOrder yields n values in order. Work computes them concurrently, by ranges, and writes those that are not 0.
func inOrder(n int, work func(from, to int, values []float64), yield func(n int, v float64)) {
	values := make([]float64, min(n, 1<<16))
	for start := 0; start < n; start += len(values) {
		values := values[:min(len(values), n-start)]
		clear(values)
		parallel.Ranges(len(values), minValues, func(from, to int) { work(start+from, start+to, values[from:to]) })
		for i, v := range values {
			yield(start+i, v)
		}
	}
}

// phraseMessages is the most messages in which a distinctive phrase occurs; a more frequent phrase is a formula.
const phraseMessages = 3

// logit returns the log-odds that the weights predict for a feature vector given as bucket
// indices.
func logit(w []float32, steps []uint16) float64 {
	x := 0.0
	for _, s := range steps {
		x += float64(w[s])
	}
	return x
}

// weight returns the cost of losing term n: 1 if it occurs in one message of one project, 0 if it occurs everywhere.
func (c *Conversation) weight(n, rarity int) float64 {
	t := &c.terms[n]
	all := float64(c.messages)
	idf := math.Log((1+all)/(0.5+float64(t.messages))) / math.Log((1+all)/1.5)
	w := min(1, max(0, idf)) * (1 - float64(rarity)/(rarities-1))
	if t.class == classCapital {
		w /= 2
	}
	return w
}

// bestTerms returns, for every line, the greatest of the odds of its terms.
func bestTerms(c *Conversation, odds []float32) []float32 {
	best := make([]float32, len(c.Lines))
	for l := range c.Lines {
		for _, n := range c.TermsOf(l) {
			best[l] = max(best[l], odds[n])
		}
	}
	return best
}

// A forest is a sum of decision trees over the features of a line or of a term. The weights rate each feature by
// itself; the trees add the effect of combinations.
type forest struct {
	nodes []node
	roots []int32
}

// A node compares a feature with at: if it is less, the next node is next, else next+1. A leaf has feature -1 and its
// value in at.
type node struct {
	at      float32
	next    int32
	feature int32
}

// sum returns the trees' estimate for x, as a difference of log-odds. The race detector skips it: the trees do not
// change once they are read, x belongs to the caller, and watching these reads took a large part of the tests' time.
//
//go:norace
func (f *forest) sum(x []float32) float64 {
	s := float32(0)
	for _, i := range f.roots {
		n := &f.nodes[i]
		for n.feature >= 0 {
			i = n.next
			if !(x[n.feature] < n.at) {
				i++
			}
			n = &f.nodes[i]
		}
		s += n.at
	}
	return float64(s)
}

// sums adds the estimates for lines to sums, which are 0, as [forest.sum] does, tree by tree: one tree stays in the processor's cache.
//
//go:norace
func (f *forest) sums(lines [][lineSize]float32, sums []float32) {
	for _, root := range f.roots {
		for l := range lines {
			n := &f.nodes[root]
			for n.feature >= 0 {
				i := n.next
				if !(lines[l][n.feature] < n.at) {
					i++
				}
				n = &f.nodes[i]
			}
			sums[l] += n.at
		}
	}
}

// grow adds a tree, whose nodes are numbered from its root.
func (f *forest) grow(tree []node) {
	root := int32(len(f.nodes))
	f.roots = append(f.roots, root)
	for _, n := range tree {
		if n.feature >= 0 {
			n.next += root
		}
		f.nodes = append(f.nodes, n)
	}
}

// parseTrees reads trees in the form of weights.json: nodes of [feature, at, next], leaves of [value].
func parseTrees(trees [][][]float32, features int) (*forest, error) {
	f := &forest{}
	for t, list := range trees {
		tree := make([]node, len(list))
		for i, v := range list {
			switch {
			case len(v) == 1:
				tree[i] = node{feature: -1, at: v[0]}
			case len(v) == 3 && v[0] >= 0 && int(v[0]) < features && int(v[2]) > i && int(v[2])+1 < len(list):
				tree[i] = node{feature: int32(v[0]), at: v[1], next: int32(v[2])}
			default:
				return nil, fmt.Errorf("tree %d: node %d is %v, want [value] or [feature, at, next]", t, i, v)
			}
		}
		if len(tree) == 0 {
			return nil, errors.New("a tree without nodes")
		}
		f.grow(tree)
	}
	return f, nil
}
