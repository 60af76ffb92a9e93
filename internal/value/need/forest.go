package need

import (
	"errors"
	"fmt"
)

// A forest is a sum of decision trees over the features of a line, of a term. It adds to what
// the weights say of each feature for itself what several say together.
type forest struct {
	nodes []node
	roots []int32
}

// A node asks whether a feature is less than at: the next node is next if it is, the one
// after that if not. A leaf has feature -1, and the value in at.
type node struct {
	at      float32
	next    int32
	feature int32
}

// sum returns what the trees say of x, as a difference of log odds.
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

// grow adds a tree whose nodes count from its root.
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

// parseTrees reads trees in the form of weights.json: nodes of [feature, at, next], leaves of
// [value].
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
