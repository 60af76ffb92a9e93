package live_test

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/otlptranslator"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// A meter has what a gateway measures, as condense serve does.
type meter struct {
	registry *prometheus.Registry
	spans    *tracetest.InMemoryExporter
}

func newMeter(t *testing.T, o *live.Options) *meter {
	t.Helper()
	m := &meter{registry: prometheus.NewRegistry(), spans: tracetest.NewInMemoryExporter()}
	pull, err := otelprometheus.New(otelprometheus.WithRegisterer(m.registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		t.Fatal(err)
	}
	metrics, traces := sdkmetric.NewMeterProvider(sdkmetric.WithReader(pull)), sdktrace.NewTracerProvider(sdktrace.WithSyncer(m.spans))
	t.Cleanup(func() { _, _ = metrics.Shutdown(context.Background()), traces.Shutdown(context.Background()) })
	o.Reports.Meter, o.Reports.Tracer, o.Reports.Metrics = metrics, traces, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
}

// families are the metrics by name.
func (m *meter) families(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	all, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*dto.MetricFamily{}
	for _, f := range all {
		if f.GetName() != "target_info" {
			found[f.GetName()] = f
		}
	}
	return found
}

// sum is the value of a metric, of all series with a label.
func sum(f *dto.MetricFamily, label, value string) float64 {
	total := 0.0
	for _, m := range f.GetMetric() {
		if label == "" || slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == label && l.GetValue() == value }) {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	return total
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	documented = regexp.MustCompile("(?m)^\\| `([a-zA-Z_]+)` \\| ([^|]*) \\|")
	label      = regexp.MustCompile("`([a-z_]+)`")
	labels     = regexp.MustCompile(`\{[^}]*\}|by \([^)]*\)`) // of a query
	word       = regexp.MustCompile(`\b(?:condense|gen_ai|go|process)_[a-zA-Z0-9_]+`)
)

// The metrics of the gateway, those of the document and those of the board are the same, and so are their labels.
func TestEveryNumberIsDocumented(t *testing.T) {
	v := newVendor(t)
	var m *meter
	g, _ := serve(t, v, func(o *live.Options) { m = newMeter(t, o) })
	live.MeasureAll(g)
	registered := m.families(t)

	docs := map[string][]string{}
	for _, row := range documented.FindAllStringSubmatch(read(t, "../docs/telemetry.md"), -1) {
		for _, l := range label.FindAllStringSubmatch(row[2], -1) {
			docs[row[1]] = append(docs[row[1]], l[1])
		}
		if docs[row[1]] == nil {
			docs[row[1]] = []string{}
		}
	}
	if got, want := slices.Sorted(maps.Keys(docs)), slices.Sorted(maps.Keys(registered)); !slices.Equal(got, want) {
		t.Errorf("documented:\n%v\nregistered:\n%v", got, want)
	}

	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../deploy/grafana/condense.json")), &board); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			names := word.FindAllString(labels.ReplaceAllString(q.Expr, ""), -1)
			if names == nil {
				t.Errorf("panel %s asks for no metric: %s", p.Title, q.Expr)
			}
			for _, name := range names {
				if registered[name] == nil {
					name = strings.TrimSuffix(name, "_bucket")
				}
				own := strings.HasPrefix(name, "condense_") || strings.HasPrefix(name, "gen_ai_")
				if shown[name] = true; own && registered[name] == nil {
					t.Errorf("panel %s asks for %s, which there is not", p.Title, name)
				}
				for _, l := range word.FindAllString(strings.Join(labels.FindAllString(q.Expr, -1), " "), -1) {
					if own && !slices.Contains(docs[name], l) {
						t.Errorf("panel %s asks for the label %s of %s, which it has not", p.Title, l, name)
					}
				}
			}
		}
	}
	for name := range registered {
		if !shown[name] {
			t.Errorf("the board does not show %s", name)
		}
	}

	// The labels, by what is measured.
	tokens := tokensFile(t, "acme")
	var used *meter
	p := newPlay(t, upstream.Options{}, claude("s1"), func(o *live.Options) {
		used = newMeter(t, o)
		o.Access.Tokens, o.Access.Limits = tokens.path, live.Limits{Concurrent: 2}
	})
	p.client.Header = http.Header{"X-Condense-Token": {tokens.of["acme"]}}
	p.begin(t)
	p.untilEpoch(t, 1)
	p.step(t)
	send(t, http.MethodGet, p.server.URL+"/v1/models", nil, nil)
	for name, f := range used.families(t) {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if !slices.Contains(docs[name], l.GetName()) {
					t.Errorf("%s has the label %s, which is not documented", name, l.GetName())
				}
			}
		}
	}
}

// The metrics say what the statistics say, and nothing that a client chose is in them or in a span.
func TestNumbersAgree(t *testing.T) {
	var m *meter
	p := newPlay(t, upstream.Options{}, claude("a-session-of-mine"), func(o *live.Options) { m = newMeter(t, o) })
	p.begin(t)
	p.untilEpoch(t, 2)
	p.step(t)
	http.DefaultClient.CloseIdleConnections()
	s, all := p.Stats(), m.families(t)
	for _, tt := range []struct {
		name, label, value string
		want               float64
	}{
		{"condense_requests_total", "", "", float64(s.Requests)},
		{"condense_requests_total", "condense_outcome", "passed", float64(s.Passed)},
		{"condense_requests_active", "", "", 0},
		{"condense_tokens_total", "condense_token_type", "received", float64(s.Tokens.Received)},
		{"condense_tokens_total", "condense_token_type", "sent", float64(s.Tokens.Sent)},
		{"condense_tokens_total", "condense_token_type", "saved", float64(s.Tokens.Saved)},
		{"condense_tokens_total", "condense_token_type", "cache_read", float64(s.Tokens.CacheRead)},
		{"gen_ai_client_token_usage", "gen_ai_token_type", "input", float64(s.Tokens.Sent)},
		{"gen_ai_client_token_usage", "gen_ai_token_type", "output", float64(s.Tokens.Output)},
		{"condense_cost_total", "gen_ai_request_model", "claude-opus-5-5", s.Cost},
		{"condense_cost_saved", "", "", s.Saved},
		{"condense_epochs_total", "", "", float64(s.EpochCount)},
		{"condense_faults_total", "", "", 0},
	} {
		if got := sum(all[tt.name], tt.label, tt.value); math.Abs(got-tt.want) > math.Abs(tt.want)/1e6 {
			t.Errorf("%s %s: %v, want %v", tt.name, tt.value, got, tt.want)
		}
	}
	names := map[string]int{}
	for _, span := range m.spans.GetSpans() {
		names[span.Name]++
		for _, a := range span.Attributes {
			if v := a.Value.String(); strings.Contains(v, "a-session-of-mine") || strings.Contains(v, "sk-") || len(v) > 64 {
				t.Errorf("span %s has %s=%s", span.Name, a.Key, v)
			}
		}
	}
	if names["POST messages"] != s.Requests || names["chat claude-opus-5-5"] != s.Requests || names["condense"] < 2 {
		t.Errorf("spans: %v for %d requests", names, s.Requests)
	}
	var text strings.Builder
	admin := httptest.NewServer(p.Admin())
	defer admin.Close()
	_, body := send(t, http.MethodGet, admin.URL+"/metrics", nil, nil)
	text.Write(body)
	if strings.Contains(text.String(), "a-session-of-mine") || !strings.Contains(text.String(), "condense_epochs_total") {
		t.Errorf("/metrics:\n%s", text.String())
	}
}

// A model that a client makes up, an invented method and a hostile path leave no series of their own.
func TestClientsMakeNoSeries(t *testing.T) {
	v := newVendor(t)
	var m *meter
	_, s := serve(t, v, func(o *live.Options) { m = newMeter(t, o) })
	for _, name := range []string{"my secret", "a", "b", "c", strings.Repeat("x", 500), "claude-\u202eopus", "evil/../model"} {
		body, err := json.Marshal(object{"model": name, "max_tokens": 10, "messages": []object{{"role": "user", "content": "hello"}}})
		if err != nil {
			t.Fatal(err)
		}
		send(t, http.MethodPost, s.URL+"/v1/messages", nil, body)
		send(t, "MINE", s.URL+"/v1/"+name[:1], nil, nil)
	}
	n := 0
	for _, f := range m.families(t) {
		n += len(f.GetMetric())
	}
	if n > 20 {
		t.Errorf("%d series: %v", n, m.families(t))
	}
}
