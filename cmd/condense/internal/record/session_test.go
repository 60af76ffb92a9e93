package record_test

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/record"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// The recording of an agent's loop through a gateway has what the client said and a condensation for
// every epoch, and its view is what the vendor got.
func TestRecordedLoops(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		api   upstream.API
		model string
	}{{upstream.Messages, "claude-opus-5-5"}, {upstream.Chat, "gpt-5.1"}, {upstream.Responses, "gpt-5.1"}} {
		t.Run(string(test.api), func(t *testing.T) {
			t.Parallel()
			const window = 60_000
			vendor := upstream.New(upstream.Options{Window: window})
			v := httptest.NewServer(vendor)
			defer v.Close()
			values, err := config.New(small(window), config.Options{})
			if err != nil {
				t.Fatal(err)
			}
			h, err := condense.Open(t.Context(), &condense.Options{Config: values})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			r, err := record.New(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			g, err := live.New(h, &live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": v.URL, "openai": v.URL}}, Reports: live.Reports{Record: r.Record}})
			if err != nil {
				t.Fatal(err)
			}
			s := httptest.NewServer(g)
			c := upstream.Client{URL: s.URL, API: test.api, Model: test.model, Session: "s1", HTTP: s.Client()}
			_, err = c.Say(t.Context(), "Read all the files, one after the other.")
			s.Close()
			for _, end := range []func() error{g.Close, r.Close, h.Close} {
				if err := end(); err != nil {
					t.Error(err)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			paths, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || len(paths) != 1 {
				t.Fatalf("recordings: %v, %v", paths, err)
			}
			d := readFile(t, paths[0])
			records := vendor.Turns()
			if diff := cmp.Diff(wordsOf(t, c.Body), words(d.Journal.Messages())); diff != "" {
				t.Errorf("what the client said (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wordsOf(t, records[len(records)-1].Body), words(d.Journal.View())); diff != "" {
				t.Errorf("what was sent (-want +got):\n%s", diff)
			}
			epochs := 0
			for _, done := range d.Journal.Condensations() {
				if done.Provider == "epoch" {
					epochs++
				}
			}
			if n := g.Stats().EpochCount; epochs != n || n == 0 {
				t.Errorf("%d condensations for %d epochs", epochs, n)
			}
		})
	}
}

func small(window int) config.Values {
	return config.Values{DefaultProfile: "small", Profiles: map[string]config.ProfileValues{"small": {Window: &window}}}
}
