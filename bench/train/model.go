package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/condensehq/condense/internal/value"
)

// A model is the result of training: weights of every step of every feature, trees that correct them, and the terms
// that are common to unrelated projects.
type model struct {
	terms, phrases         []float32
	termTrees, phraseTrees []tree
	words                  *vocabulary
}

// newModel returns a model whose weights are all zero.
func newModel(words *vocabulary) *model {
	return &model{terms: make([]float32, width(value.TermFeatures())), phrases: make([]float32, width(value.PhraseFeatures())), words: words}
}

func width(features []value.Feature) int {
	n := 0
	for _, f := range features {
		n += f.Steps
	}
	return n
}

// open returns m as the program reads it, to be used for a project. See vocabulary.common.
func (m *model) open(project string) (*value.Model, error) {
	return value.ParseModel(m.weights(""), m.words.common(project))
}

// weights returns the weights of m in the form of weights.json.
func (m *model) weights(note string) []byte {
	lines := func(features []value.Feature, w []float32) string {
		list := make([]string, len(features))
		for i, f := range features {
			v, _ := json.Marshal(w[:f.Steps]) //nolint:errchkjson // numbers
			w = w[f.Steps:]
			list[i] = fmt.Sprintf("    %q: %s", f.Name, v)
		}
		return join(list)
	}
	trees := func(trees []tree) string {
		list := make([]string, len(trees))
		for i, t := range trees {
			list[i] = "    " + t.String()
		}
		return join(list)
	}
	return fmt.Appendf(nil, "{\n  \"note\": %q,\n  \"terms\": {\n%s  },\n  \"phrases\": {\n%s  },\n  \"term trees\": [\n%s  ],\n  \"phrase trees\": [\n%s  ]\n}\n",
		note, lines(value.TermFeatures(), m.terms), lines(value.PhraseFeatures(), m.phrases), trees(m.termTrees), trees(m.phraseTrees))
}

// join returns list as the lines of a JSON list or object.
func join(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, ",\n") + "\n"
}

// A tree is a decision tree. Its root is node 0.
type tree []node

// A node compares a feature with at: if it is less, the next node is next, else next+1. A leaf has feature -1 and its
// value in at.
type node struct {
	feature int
	at      float32
	next    int
}

// value returns the log-odds that t adds for x.
func (t tree) value(x []float32) float32 {
	n := t[0]
	for n.feature >= 0 {
		if x[n.feature] < n.at {
			n = t[n.next]
		} else {
			n = t[n.next+1]
		}
	}
	return n.at
}

// String returns t in the form of weights.json: [feature, at, next] for a node, [value] for a leaf.
func (t tree) String() string {
	list := make([][]float32, len(t))
	for i, n := range t {
		list[i] = []float32{float32(n.feature), n.at, float32(n.next)}
		if n.feature < 0 {
			list[i] = []float32{n.at}
		}
	}
	v, _ := json.Marshal(list) //nolint:errchkjson // numbers
	return string(v)
}

// logit returns the log odds that weights w give to steps.
func logit(w []float32, steps []uint16) float64 {
	x := 0.0
	for _, s := range steps {
		x += float64(w[s])
	}
	return x
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
