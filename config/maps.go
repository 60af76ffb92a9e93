package config

import (
	"maps"
	"math"
	"slices"
)

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// ceil rounds up to a whole number of tokens, forgiving what binary fractions add.
func ceil(v float64) int { return int(math.Ceil(v - 1e-9)) }
