package core_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
)

// A file that is read and written again must not lose what its condensations took.
func TestStepJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(core.Step{Name: "layout", Looked: 3, Duration: 149 * time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	var s core.Step
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	if s.Duration != 149*time.Microsecond {
		t.Errorf("got %v, want 149µs", s.Duration)
	}
	again, err := json.Marshal(s)
	if err != nil || string(again) != string(data) {
		t.Errorf("got %s (%v), want %s", again, err, data)
	}
	for _, hostile := range []string{`{"ms": 1e300}`, `{"ms": -5}`} {
		if err := json.Unmarshal([]byte(hostile), &s); err != nil || s.Duration != 0 {
			t.Errorf("%s: got %v, %v", hostile, s.Duration, err)
		}
	}
}
