package compare

import (
	"math"
	"math/rand/v2"
	"slices"
)

// rounds of the bootstrap: the ends of a 95 % interval are then known to about 2 % of its
// width.
const resamples = 2000

// An Estimate is a mean over sessions with its 95 % interval. The interval is that of the
// percentile bootstrap over sessions, as those of one agent's turns are not independent;
// with fewer than five sessions it is too narrow to believe.
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

func (s *sampler) drawn(n int) []int32 {
	d, ok := s.draws[n]
	if !ok {
		rng := rand.New(rand.NewPCG(s.seed, uint64(n))) //nolint:gosec // no secret
		d = make([]int32, resamples*n)
		for i := range d {
			d[i] = int32(rng.IntN(n))
		}
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
	e.Low, e.High = means[resamples*25/1000], means[resamples*975/1000-1]
	return e, true
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
