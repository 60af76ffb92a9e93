package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

// TestProviderAsksTheHost: a compiled-in provider gets vectors of the user's model, as a plugin does, and lets a built-in strategy work on a
// part; it is told what is wrong with either.
func TestProviderAsksTheHost(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || r.URL.Path != "/v1/embeddings" {
			t.Errorf("asked %s %+v, %v", r.URL.Path, ask, err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"data":[{"index":0,"embedding":[%d,1]}],"usage":{"prompt_tokens":3}}`, len(ask.Model))
	}))
	t.Cleanup(server.Close)
	near := `near: {api: openai, model: nomic, base_url: "` + server.URL + `/v1", embeddings: true, price: {input: 1000000}}`
	for name, tt := range map[string]struct {
		models, wrong string
		is            error
	}{
		"one":            {models: near},
		"none":           {wrong: "no model of the configuration has embeddings: true", is: errors.ErrUnsupported},
		"several":        {models: near + `, other: {api: openai, model: m, embeddings: true}`, wrong: "it is set for near, other", is: core.ErrUnavailable},
		"an API without": {models: `near: {api: anthropic, model: m, base_url: "` + server.URL + `", embeddings: true}`, wrong: "has no embeddings", is: errors.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var embedded, run error
			strategy := registry.Define("asker", "Asks the host.", func() struct{} { return struct{}{} },
				func(_ context.Context, _ struct{}, env registry.Env) (core.CondensationProvider, error) {
					return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
						vectors, usage, err := env.Embed(ctx, []string{"a text"})
						if embedded = err; err == nil && (len(vectors) != 1 || vectors[0][0] != 5 || usage.USD != 3) {
							t.Errorf("got %v for %+v", vectors, usage)
						}
						_, run = env.Run(ctx, req, "smrt", nil)
						res, err := env.Run(ctx, req, "slidingwindow", json.RawMessage(`{}`))
						if err == nil {
							res.Usage = res.Usage.Add(usage)
						}
						return res, err
					}), nil
				})
			h, err := condense.Open(t.Context(), &condense.Options{
				Load:       loadText(t, "tokenizer: chars4\nmodels: {"+tt.models+"}\nprofiles: {p: {window: 10000, chain: [asker]}}\nproviders: {asker: {strategy: asker}}\n"),
				Strategies: []registry.Strategy{strategy},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			c := talk(400)
			r, err := h.Manage(t.Context(), c, condense.Turn{Profile: "p", Trigger: core.TriggerManual})
			if err != nil || !r.Acted || r.Attempts[0].Provider != "asker" || r.Attempts[0].Err != nil {
				t.Fatalf("%v: %+v", err, r)
			}
			if tt.wrong == "" && (embedded != nil || r.Attempts[0].Usage.USD != 3) ||
				tt.wrong != "" && (!errors.Is(embedded, tt.is) || !strings.Contains(embedded.Error(), tt.wrong)) {
				t.Errorf("vectors: error %v, usage %+v", embedded, r.Attempts[0].Usage)
			}
			if run == nil || !strings.Contains(run.Error(), `no strategy "smrt"; did you mean "smart"?`) {
				t.Errorf("an unknown strategy: error %v", run)
			}
		})
	}
}
