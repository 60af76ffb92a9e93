package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// Settings of the trees. They are few and small, for a small file of weights, and shrinkage is strong. With
// more trees the loss on projects that were left out rises.
const (
	trees     = 80
	leaves    = 12
	shrinkage = 0.08
	rows      = 0.5  // share of the samples that a tree is fitted to
	minCurve  = 40.0 // least sum of second derivatives in a leaf, as of about 200 samples
	ridge     = 20.0 // penalty on the value of a leaf
	bins      = 64   // of a feature
	edgesFrom = 20_000
)

// A leaf is a leaf of a growing tree. It has the samples order[from:to].
type leaf struct {
	node, from, to int
	slope, curve   float64 // first and second derivative of the loss
	gain           float64 // of the best split
	feature, bin   int
}

// A grower fits trees to samples.
type grower struct {
	samples []sample
	edges   [][]float32 // of the bins of each feature
	binned  [][]uint8   // by feature and sample
	weight  []float64
	odds    []float64 // log odds so far
	slope   []float64
	curve   []float64
	order   []int32 // samples of the current tree, by leaf
	spare   []int32
	used    []int // features that the current tree may use
}

// boost fits trees to the residuals of the weights w: gradient boosting with second derivatives and
// leaf-wise growth (Friedman, 2001; Chen and Guestrin, 2016).
func (t *trainer) boost(w []float32, samples []sample, what string) []tree {
	if len(samples) == 0 {
		return nil
	}
	g := newGrower(w, samples, t.rng)
	out := make([]tree, trees)
	nodes := 0
	for i := range out {
		out[i] = g.tree(t.rng)
		nodes += len(out[i])
	}
	fmt.Fprintf(t.log, "%s: %d trees, %d nodes\n", what, len(out), nodes)
	return out
}

func newGrower(w []float32, samples []sample, rng *rand.Rand) *grower {
	n := len(samples)
	g := &grower{
		samples: samples, weight: bounded(samples), odds: make([]float64, n), slope: make([]float64, n), curve: make([]float64, n),
		order: make([]int32, n), spare: make([]int32, n),
	}
	for i := range samples {
		g.odds[i] = logit(w, samples[i].steps)
	}
	for f := range samples[0].x {
		v := make([]float32, edgesFrom)
		for i := range v {
			v[i] = samples[rng.IntN(n)].x[f]
		}
		slices.Sort(v)
		var edges []float32
		last := v[0]
		for b := 1; b < bins; b++ {
			if q := v[len(v)*b/bins]; q > last {
				edges = append(edges, q)
				last = q
			}
		}
		col := make([]uint8, n)
		for i := range samples {
			x := samples[i].x[f]
			col[i] = uint8(sort.Search(len(edges), func(k int) bool { return x < edges[k] }))
		}
		g.edges, g.binned = append(g.edges, edges), append(g.binned, col)
	}
	return g
}

// bounded returns the weights of samples, relative to their mean and at most 20.
func bounded(samples []sample) []float64 {
	mean := 0.0
	for i := range samples {
		mean += float64(samples[i].weight)
	}
	mean /= max(1, float64(len(samples)))
	w := make([]float64, len(samples))
	for i := range samples {
		w[i] = min(20, float64(samples[i].weight)/mean)
	}
	return w
}

// tree fits one more tree to a random half of the samples, with two thirds of the features.
func (g *grower) tree(rng *rand.Rand) tree {
	for i := range g.samples {
		p := sigmoid(g.odds[i])
		g.slope[i] = g.weight[i] * (p - float64(g.samples[i].reused))
		g.curve[i] = g.weight[i] * p * (1 - p)
	}
	g.order = g.order[:0]
	for i := range g.samples {
		if rng.Float64() < rows {
			g.order = append(g.order, int32(i))
		}
	}
	g.used = g.used[:0]
	for f := range g.edges {
		if rng.IntN(3) > 0 {
			g.used = append(g.used, f)
		}
	}
	out := tree{{feature: -1}}
	open := []leaf{g.leaf(0, 0, len(g.order))}
	for len(open) < leaves {
		best := 0
		for k := range open {
			if open[k].gain > open[best].gain {
				best = k
			}
		}
		l := open[best]
		if l.gain <= 0 {
			break
		}
		mid := g.split(&l)
		next := len(out)
		out[l.node] = node{feature: l.feature, at: g.edges[l.feature][l.bin], next: next}
		out = append(out, node{feature: -1}, node{feature: -1})
		open[best] = g.leaf(next, l.from, mid)
		open = append(open, g.leaf(next+1, mid, l.to))
	}
	for _, l := range open {
		v := math.Round(-shrinkage*l.slope/(l.curve+ridge)*1e4) / 1e4
		out[l.node].at = float32(v)
	}
	for i := range g.samples {
		g.odds[i] += float64(out.value(g.samples[i].x))
	}
	return out
}

// leaf returns the leaf of the samples order[from:to] with its best split.
func (g *grower) leaf(at, from, to int) leaf {
	l := leaf{node: at, from: from, to: to}
	for _, i := range g.order[from:to] {
		l.slope += g.slope[i]
		l.curve += g.curve[i]
	}
	whole := l.slope * l.slope / (l.curve + ridge)
	for _, f := range g.used {
		var slope, curve [bins]float64
		col := g.binned[f]
		for _, i := range g.order[from:to] {
			slope[col[i]] += g.slope[i]
			curve[col[i]] += g.curve[i]
		}
		s, c := 0.0, 0.0
		for b := range g.edges[f] {
			s += slope[b]
			c += curve[b]
			if c < minCurve || l.curve-c < minCurve {
				continue
			}
			rest := l.slope - s
			if gain := s*s/(c+ridge) + rest*rest/(l.curve-c+ridge) - whole; gain > l.gain+1e-6 {
				l.gain, l.feature, l.bin = gain, f, b
			}
		}
	}
	return l
}

// split orders the samples of l by the side of its split, and returns the index of the first on the right
// side.
func (g *grower) split(l *leaf) int {
	mid, other := l.from, 0
	col := g.binned[l.feature]
	for _, i := range g.order[l.from:l.to] {
		if int(col[i]) <= l.bin {
			g.order[mid] = i
			mid++
		} else {
			g.spare[other] = i
			other++
		}
	}
	copy(g.order[mid:l.to], g.spare[:other])
	return mid
}
