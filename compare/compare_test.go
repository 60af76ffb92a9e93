package compare_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/compare"
	"github.com/condensehq/condense/providers/slidingwindow"
)

// TestOptions: what a caller asks for is what is measured, and the report says so; what it cannot measure, it warns of.
func TestOptions(t *testing.T) {
	mine := compare.Strategy{Name: "mine", About: "the newest", Key: "k1", Provider: slidingwindow.New(slidingwindow.DefaultConfig())}
	r, err := compare.Run(t.Context(), compare.Demo()[:1], []compare.Strategy{mine}, &compare.Options{
		Budgets: []compare.Budget{{Share: 40}}, Encoding: "cl100k_base", Seed: 7, Jobs: 2, Repeat: 2, ByFolder: true, Cache: t.TempDir(),
		MaxUSD: 1, Now: func() time.Time { return time.Unix(1, 0) },
	})
	if err != nil || r.Partial || len(r.Warnings) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"seed":7`, `"encoding":"cl100k_base"`, `"repeat":2`, `"by_folder":true`, `"budgets":["40%"]`, `"about":"the newest"`, `"key":"k1"`, r.Warnings[0],
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %s", want)
		}
	}
	var indented strings.Builder
	if err := r.WriteJSON(&indented); err != nil || !json.Valid([]byte(indented.String())) || !strings.HasPrefix(indented.String(), "{\n \"format\"") {
		t.Errorf("%v: %.40q", err, indented.String())
	}
	if none, err := compare.Run(t.Context(), compare.Demo()[:1], []compare.Strategy{mine}, &compare.Options{Modes: []string{"nobody's"}}); err == nil && len(none.Warnings) == 0 {
		t.Error("sessions of another mode are measured")
	}
}
