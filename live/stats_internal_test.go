package live

import (
	"testing"
)

// TestObservedIsNotSaved: what a gateway only observed was sent as it came, also of one of a version that counted it like the rest.
func TestObservedIsNotSaved(t *testing.T) {
	seen := Stats{Requests: 2, EpochCount: 1, Tokens: Tokens{Received: 100, Sent: 40, Saved: 60, Net: 60}, Saved: 1}
	old := seen
	old.Observe = true
	watched := Stats{Requests: 2, Observe: true, Tokens: Tokens{Received: 100, Sent: 100}, Observed: &Observed{Epochs: 3, Ingested: 2, Sent: 40, Saved: 60, CostSaved: 2}}
	var sum Stats
	for _, s := range []*Stats{&seen, &old, &watched, &watched} {
		sum.add(s)
	}
	if got := sum.Tokens; got.Received != 400 || got.Sent != 340 || got.Saved != 60 || sum.EpochCount != 1 || sum.Requests != 8 || sum.Saved != 1 {
		t.Errorf("%+v", sum)
	}
	if want := (Observed{Epochs: 6, Ingested: 4, Sent: 80, Saved: 120, CostSaved: 4}); *sum.Observed != want {
		t.Errorf("%+v", sum.Observed)
	}
}
