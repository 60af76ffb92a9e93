package main

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/condensehq/condense/internal/testkit/modeltest"
)

// A strategy that asks a model runs several times, every run is in the price that is asked for, and tables, CSV and
// JSON show how far apart the runs are.
func TestCompareRepeats(t *testing.T) {
	alone(t)
	var calls atomic.Int64
	server := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request) { // another answer every time
		n := calls.Add(1)
		text := strings.Repeat(fmt.Sprintf("The agent read file %d and went on. ", n), int(n%5)*8+2)
		modeltest.Stream(modeltest.Anthropic(text)...)(w, r)
	})
	t.Setenv("REPEAT_KEY", "none")
	must(t, os.Mkdir("condense", 0o700)) // the user's own, which is trusted
	must(t, os.WriteFile("condense/condense.yaml", []byte(`
providers:
  summary: {strategy: native, settings: {model: own}}
models:
  own: {api: anthropic, model: claude-haiku-4-5, base_url: "`+server.URL+`", api_key_env: REPEAT_KEY}
`), 0o600))
	base := []string{"compare", "demo:swe-smith", "--cache", "cache", "--budgets", "25", "--strategies", "summary,slidingwindow"}
	cmd := func(more ...string) string { return in(t, append(append([]string(nil), base...), more...)...) }

	usd := func(text string) float64 {
		_, after, ok := strings.Cut(text, "summary (")
		v, err := strconv.ParseFloat(strings.Split(after, " ")[0], 64)
		if !ok || err != nil {
			t.Fatalf("no price in %q", text)
		}
		return v
	}
	one, three := usd(cmd("--repeat", "1")), usd(cmd())
	if one <= 0 || three < 2.9*one || three > 3.1*one || calls.Load() != 0 {
		t.Errorf("three runs would cost %v, one %v; %d calls before anybody agreed", three, one, calls.Load())
	}
	if got := cmd("--repeat", "1", "--yes"); !strings.Contains(got, "summary: it asks a language model and ran once") {
		t.Errorf("one run has no warning:\n%s", got)
	}
	single := calls.Load()
	table := cmd("--yes")
	if !strings.Contains(table, "strategies that ask a language model run 3 times at every cut, in rounds and with canaries (--repeat)") || !strings.Contains(table, "spread of the runs") || strings.Contains(table, "ran once") {
		t.Errorf("the table has no spread:\n%s", table)
	}
	if single == 0 || calls.Load() != 3*single {
		t.Errorf("%d calls for three runs, the first of them from the cache; one needs %d", calls.Load(), single)
	}
	if md := cmd("-o", "md"); !strings.Contains(md, "### budget 25%, spread of the runs") {
		t.Errorf("Markdown has no spread:\n%s", md)
	}
	records, err := csv.NewReader(strings.NewReader(cmd("-o", "csv", "--quiet"))).ReadAll()
	must(t, err)
	found := false
	for _, r := range records {
		switch {
		case r[2] == "slidingwindow" && r[10] != "1":
			t.Errorf("slidingwindow ran several times: %q", r)
		case r[2] == "summary" && r[4] == "size":
			found = true
			least, _ := strconv.ParseFloat(r[11], 64)
			most, _ := strconv.ParseFloat(r[12], 64)
			deviation, _ := strconv.ParseFloat(r[13], 64)
			if r[10] != "3" || least >= most || deviation <= 0 {
				t.Errorf("the spread of answers of different length is %q", r[10:])
			}
		}
	}
	if !found {
		t.Errorf("no size in %q", records)
	}
	if got := cmd("-o", "json", "--quiet"); !strings.Contains(got, `"deviation"`) || !strings.Contains(got, `"repeat": 3`) {
		t.Error("JSON has no spread")
	}
	if calls.Load() != 3*single {
		t.Error("results in the cache were paid for again")
	}
	if got := cmd("--repeat", "0"); !strings.Contains(got, "--repeat: 0 is less than 1") {
		t.Errorf("--repeat 0: %s", got)
	}
}
