package lab

import (
	"math"
	"math/rand/v2"
	"slices"
)

// rounds of the bootstrap: the ends of a 95 % interval are then known to about 2 % of its
// width.
const resamples = 2000

// An Estimate is a mean over sessions with its 95 % interval, from a bootstrap over
// sessions: the turns of one are not independent. See [tail] for the ends.
type Estimate struct {
	Mean     float64 `json:"mean"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Sessions int     `json:"sessions"`
	// OfOracle is Mean over the mean of the oracle on the same sessions; absent where it
	// says nothing.
	OfOracle *float64 `json:"of_oracle,omitempty"`
}

// A sampler draws sessions, the same ones for every estimate over as many sessions, so
// that equal inputs have equal intervals whatever else is estimated.
type sampler struct {
	seed  uint64
	draws map[int][]int32
}

func newSampler(seed uint64) *sampler { return &sampler{seed: seed, draws: map[int][]int32{}} }

// remembered is up to how many sessions draws are kept: all together have 66 MB.
const remembered = 128

// drawn returns resamples times n draws of n sessions.
func (s *sampler) drawn(n int) []int32 {
	if d, ok := s.draws[n]; ok {
		return d
	}
	rng := rand.New(rand.NewPCG(s.seed, uint64(n))) //nolint:gosec // no secret
	d := make([]int32, resamples*n)
	for i := range d {
		d[i] = int32(rng.IntN(n))
	}
	if n <= remembered {
		s.draws[n] = d
	}
	return d
}

// estimate returns the mean of v, one value for each session.
func (s *sampler) estimate(v []float64) (Estimate, bool) {
	n := len(v)
	if n == 0 {
		return Estimate{}, false
	}
	e := Estimate{Mean: mean(v), Sessions: n}
	if n > maxDrawn {
		// The normal approximation is as good with so many, and needs no draws.
		half := 1.96 * deviation(v, e.Mean) / math.Sqrt(float64(n))
		e.Low, e.High = e.Mean-half, e.Mean+half
		return e, true
	}
	d := s.drawn(n)
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for _, at := range d[i*n : (i+1)*n] {
			sum += v[at]
		}
		means[i] = sum / float64(n)
	}
	slices.Sort(means)
	cut := int(math.Round(tail(n) * resamples))
	e.Low, e.High = means[cut], means[resamples-1-cut]
	return e, true
}

// tail returns the share of resampled means to cut off at each end for an interval of 95 %
// over n sessions: 2.5 % if there are many, less if there are few, because the plain
// percentiles are too narrow by what Student's t is wider than the normal and by
// sqrt((n-1)/n). These are the expanded percentiles of T. Hesterberg, "What Teachers Should
// Know About the Bootstrap", The American Statistician 69 (2015).
func tail(n int) float64 {
	if n < 2 {
		return 0
	}
	const z = 1.959964
	df := float64(n - 1)
	// Student's quantile by the expansion of Cornish and Fisher: 0.1 % off with five
	// degrees of freedom, less with more.
	t := z + (z*z*z+z)/(4*df) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*df*df) + (3*z*z*z*z*z*z*z+19*z*z*z*z*z+17*z*z*z-15*z)/(384*df*df*df)
	return math.Erfc(t*math.Sqrt(float64(n)/df)/math.Sqrt2) / 2
}

// maxDrawn bounds the memory and the time of the bootstrap.
const maxDrawn = 2000

func mean(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

func deviation(v []float64, m float64) float64 {
	s := 0.0
	for _, x := range v {
		s += (x - m) * (x - m)
	}
	return math.Sqrt(s / float64(max(1, len(v)-1)))
}
