package filecmd

import (
	"fmt"
	"math"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// A vendorCount is the size of the next request by the vendor's count, which the agent recorded or the model's name tells.
type vendorCount struct {
	Tokens   int `json:"tokens"`             // estimated: the newest recorded count and the messages since
	Recorded int `json:"recorded,omitempty"` // the newest in the file; 0 if it has none
	Counted  int `json:"counted"`            // the same request by our count
	Besides  int `json:"besides,omitempty"`  // of Tokens: content that the agent sends and the file does not hold
	Window   int `json:"window"`             // of the model

	factor float64 // the vendor's tokens for one of ours
}

func (v *vendorCount) String() string {
	how := fmt.Sprintf("%.2f for one of ours", v.factor)
	if v.Recorded > 0 {
		how = fmt.Sprintf("%s recorded, %s of them not in the file", size.Group(v.Recorded), size.Group(v.Besides))
	}
	return fmt.Sprintf("%s tokens (%s); window %s = %s of ours", size.Group(v.Tokens), how, size.Group(v.Window), size.Group(v.ours(v.Window)))
}

// ours is a number of the vendor's tokens in ours.
func (v *vendorCount) ours(n int) int { return int(float64(n) / v.factor) }

// Limits of a believable factor. Claude's newest models count up to 2.2 tokens for one of o200k_base: see tokens.json of package
// catalog.
const (
	minFactor, maxFactor = 1, 2.5
	leastApart           = 2_000 // tokens between two counts whose difference tells the factor
)

// vendorCountOf returns the vendor's count for a document whose requests go to a model with that window. It is nil where
// nothing tells it: our count is then the best there is.
func vendorCountOf(d *transcript.Document, t *condense.Turn, counter *tokens.Counter, window int) *vendorCount {
	recorded := d.Recorded()
	v := &vendorCount{Window: window, factor: catalog.TokenFactor(d.Model)}
	if len(recorded) == 0 && v.factor == 1 {
		return nil
	}
	prompt, definitions := counter.Overhead(t.System, t.Tools)
	ours := []int{prompt + definitions} // of the first n messages
	for _, m := range d.Journal.View() {
		ours = append(ours, ours[len(ours)-1]+core.MessageTokens(counter, m))
	}
	v.Counted = ours[len(ours)-1]
	if len(recorded) == 0 {
		v.Tokens = int(float64(v.Counted) * v.factor)
		return v
	}
	first, last := recorded[0], recorded[len(recorded)-1]
	for i, r := range recorded[1:] {
		if r.Tokens < recorded[i].Tokens {
			first = r // the agent left something out
		}
	}
	if apart := ours[last.Messages] - ours[first.Messages]; apart >= leastApart {
		v.factor = min(max(float64(last.Tokens-first.Tokens)/float64(apart), minFactor), maxFactor)
	}
	v.Recorded = last.Tokens
	v.Tokens = last.Tokens + int(math.Ceil(float64(v.Counted-ours[last.Messages])*v.factor))
	v.Besides = max(0, last.Tokens-int(float64(ours[last.Messages])*v.factor))
	if v.Besides > window/2 { // for another model's window, the agent sends something else
		v.Recorded, v.Besides, v.Tokens = 0, 0, int(float64(v.Counted)*v.factor)
	}
	if v.Recorded == 0 && v.factor == 1 {
		return nil
	}
	return v
}
