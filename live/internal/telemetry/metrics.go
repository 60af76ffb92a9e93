// Package telemetry has the metrics and spans of the gateway.
package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// The metrics. Names that begin with gen_ai follow OpenTelemetry's conventions for generative AI. docs/telemetry.md
// describes each metric; a test compares the two.
type kindOfMetric int

const (
	counter kindOfMetric = iota
	upDown
	histogram
)

// Buckets of histograms.
var (
	clientSeconds = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640}
	ownSeconds    = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 300}
	tokenBuckets  = []float64{1, 64, 256, 1024, 4096, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 4194304}
)

// A Metric describes one metric.
type Metric struct {
	name, unit, doc string
	kind            kindOfMetric
	buckets         []float64
}

// The metrics of requests and of the gateway.
var (
	Operation     = Metric{"gen_ai.client.operation.duration", "s", "From sending a request to a vendor to the end of the answer.", histogram, clientSeconds}
	Usage         = Metric{"gen_ai.client.token.usage", "{token}", "Tokens of a request and its answer, as the vendor counts them.", histogram, tokenBuckets}
	Requests      = Metric{"condense.requests", "{request}", "Requests to the models' address.", counter, nil}
	Active        = Metric{"condense.requests.active", "{request}", "Requests whose answer has not ended.", upDown, nil}
	Processing    = Metric{"condense.processing.duration", "s", "What the gateway itself took before it sent a request on.", histogram, ownSeconds}
	Tokens        = Metric{"condense.tokens", "{token}", "Tokens received, sent, saved, read from and written to caches, answered, recalled.", counter, nil}
	Cost          = Metric{"condense.cost", "{USD}", "Cost of requests by the table of prices.", counter, nil}
	Saved         = Metric{"condense.cost.saved", "{USD}", "Cost of the clients' own histories, less what was paid.", upDown, nil}
	Unpriced      = Metric{"condense.requests.unpriced", "{request}", "Answers of models without a known price.", counter, nil}
	Estimated     = Metric{"condense.requests.estimated", "{request}", "Answers whose tokens and cost are estimated, because the vendor did not report them.", counter, nil}
	Truncated     = Metric{"condense.requests.truncated", "{request}", "Prompts that a server has cut: it counts far fewer tokens than were sent.", counter, nil}
	Observed      = Metric{"condense.epochs.observed", "{epoch}", "Condensations that would have been made, where the gateway only observes.", counter, nil}
	Epochs        = Metric{"condense.epochs", "{epoch}", "Condensations of a history.", counter, nil}
	Removed       = Metric{"condense.epoch.removed", "{token}", "Tokens that condensations removed from histories.", counter, nil}
	Attempts      = Metric{"condense.attempts", "{attempt}", "What providers did when it was their turn to condense.", counter, nil}
	EpochDuration = Metric{"condense.epoch.duration", "s", "What a condensation took while its request waited.", histogram, ownSeconds}
	Results       = Metric{"condense.results.shortened", "{result}", "Tool results that were shortened before they were first sent.", counter, nil}
	Recalls       = Metric{"condense.recalls", "{recall}", "How often an agent asked for what was condensed, and got it.", counter, nil}
	Compactions   = Metric{"condense.compactions", "{compaction}", "Compactions that the gateway answered in place of the vendor.", counter, nil}
	Accounts      = Metric{"condense.accounts", "{account}", "Accounts that clients' own models were asked for.", counter, nil}
	Faults        = Metric{"condense.faults", "{fault}", "Errors of the gateway, and of vendors, by kind.", counter, nil}
	Refusals      = Metric{"condense.refusals", "{request}", "Requests that the gateway refused, and limits that were reached.", counter, nil}
)

// The metrics of accounts by clients' own models.
var (
	AccountTokens = Metric{"condense.account.tokens", "{token}", "Tokens of the requests for these accounts, as the vendors count them.", counter, nil}
	AccountCost   = Metric{"condense.account.cost", "{USD}", "Cost of these requests by the table of prices.", counter, nil}
)

// All are the metrics.
var All = []*Metric{
	&Operation, &Usage, &Requests, &Active, &Processing, &Tokens, &Cost, &Saved, &Unpriced, &Estimated, &Truncated,
	&Epochs, &Observed, &Attempts, &Removed, &EpochDuration, &Results, &Recalls, &Compactions,
	&Accounts, &AccountTokens, &AccountCost, &Faults, &Refusals,
}

// scope is the name of the instrumentation.
const scope = "github.com/condensehq/condense/live"

// A Recorder sends numbers and spans to OpenTelemetry.
type Recorder struct {
	Tracer trace.Tracer
	adds   map[*Metric]func(context.Context, float64, attribute.Set)
}

// New returns a recorder for two providers of OpenTelemetry.
func New(meters metric.MeterProvider, tracers trace.TracerProvider) (*Recorder, error) {
	t := &Recorder{Tracer: tracers.Tracer(scope), adds: map[*Metric]func(context.Context, float64, attribute.Set){}}
	meter := meters.Meter(scope)
	var errs []error
	for _, m := range All {
		var err error
		switch m.kind {
		case histogram:
			var h metric.Float64Histogram
			h, err = meter.Float64Histogram(m.name, metric.WithUnit(m.unit), metric.WithDescription(m.doc), metric.WithExplicitBucketBoundaries(m.buckets...))
			t.adds[m] = func(ctx context.Context, v float64, of attribute.Set) { h.Record(ctx, v, metric.WithAttributeSet(of)) }
		case upDown:
			var c metric.Float64UpDownCounter
			c, err = meter.Float64UpDownCounter(m.name, metric.WithUnit(m.unit), metric.WithDescription(m.doc))
			t.adds[m] = func(ctx context.Context, v float64, of attribute.Set) { c.Add(ctx, v, metric.WithAttributeSet(of)) }
		case counter:
			var c metric.Float64Counter
			c, err = meter.Float64Counter(m.name, metric.WithUnit(m.unit), metric.WithDescription(m.doc))
			t.adds[m] = func(ctx context.Context, v float64, of attribute.Set) {
				if v >= 0 {
					c.Add(ctx, v, metric.WithAttributeSet(of))
				}
			}
		}
		errs = append(errs, err)
	}
	return t, errors.Join(errs...)
}

// Keys of attributes.
const (
	TenantKey    = attribute.Key("condense.tenant")
	APIKey       = attribute.Key("condense.api")
	OutcomeKey   = attribute.Key("condense.outcome")
	ReasonKey    = attribute.Key("condense.reason")
	ModeKey      = attribute.Key("condense.mode")
	CondenserKey = attribute.Key("condense.provider")
	KindKey      = attribute.Key("condense.kind")
	LimitKey     = attribute.Key("condense.limit")
	TypeKey      = attribute.Key("condense.token.type")
	TokenTypeKey = attribute.Key("gen_ai.token.type")
	OperationKey = attribute.Key("gen_ai.operation.name")
	ProviderKey  = attribute.Key("gen_ai.provider.name")
	ModelKey     = attribute.Key("gen_ai.request.model")
	InputKey     = attribute.Key("gen_ai.usage.input_tokens")
	OutputKey    = attribute.Key("gen_ai.usage.output_tokens")
	ReadKey      = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	WriteKey     = attribute.Key("gen_ai.usage.cache_creation.input_tokens")
	SessionKey   = attribute.Key("gen_ai.conversation.id")
	ErrorKey     = attribute.Key("error.type")
	StatusKey    = attribute.Key("http.response.status_code")
)

// Add adds v to a metric. Attribute values must never come from a request, except model names from the table or the
// configuration.
func (t *Recorder) Add(ctx context.Context, m *Metric, v float64, of ...attribute.KeyValue) {
	t.adds[m](ctx, v, attribute.NewSet(of...))
}
