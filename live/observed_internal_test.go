package live

import "testing"

// TestObservedIsNotSaved: what a gateway only observed was sent as it came.
func TestObservedIsNotSaved(t *testing.T) {
	seen := Stats{Requests: 2, EpochCount: 1, Tokens: Tokens{Received: 100, Sent: 40, Saved: 60, Net: 60}}
	watched := seen
	watched.Observe = true
	var sum Stats
	sum.add(&seen)
	sum.add(&watched)
	if got := sum.Tokens; got.Received != 200 || got.Sent != 140 || got.Saved != 60 || sum.EpochCount != 1 || sum.Requests != 4 {
		t.Errorf("%+v", sum)
	}
}
