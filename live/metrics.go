package live

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

// A measure describes one metric.
type measure struct {
	name, unit, doc string
	kind            kindOfMetric
	buckets         []float64
}

var (
	mOperation  = measure{"gen_ai.client.operation.duration", "s", "From sending a request to a vendor to the end of the answer.", histogram, clientSeconds}
	mUsage      = measure{"gen_ai.client.token.usage", "{token}", "Tokens of a request and its answer, as the vendor counts them.", histogram, tokenBuckets}
	mRequests   = measure{"condense.requests", "{request}", "Requests to the models' address.", counter, nil}
	mActive     = measure{"condense.requests.active", "{request}", "Requests whose answer has not ended.", upDown, nil}
	mProcessing = measure{"condense.processing.duration", "s", "What the gateway itself took before it sent a request on.", histogram, ownSeconds}
	mTokens     = measure{"condense.tokens", "{token}", "Tokens received, sent, saved, read from and written to caches, answered, recalled.", counter, nil}
	mCost       = measure{"condense.cost", "{USD}", "Cost of requests by the table of prices.", counter, nil}
	mSaved      = measure{"condense.cost.saved", "{USD}", "Cost of the clients' own histories, less what was paid.", upDown, nil}
	mUnpriced   = measure{"condense.requests.unpriced", "{request}", "Answers of models without a known price.", counter, nil}
	mEstimated  = measure{"condense.requests.estimated", "{request}", "Answers whose tokens and cost are estimated, because the vendor did not report them.", counter, nil}
	mTruncated  = measure{"condense.requests.truncated", "{request}", "Prompts that a server has cut: it counts far fewer tokens than were sent.", counter, nil}
	mObserved   = measure{"condense.epochs.observed", "{epoch}", "Condensations that would have been made, where the gateway only observes.", counter, nil}
	mEpochs     = measure{"condense.epochs", "{epoch}", "Condensations of a history.", counter, nil}
	mRemoved    = measure{"condense.epoch.removed", "{token}", "Tokens that condensations removed from histories.", counter, nil}
	mAttempts   = measure{"condense.attempts", "{attempt}", "What providers did when it was their turn to condense.", counter, nil}
	mEpoch      = measure{"condense.epoch.duration", "s", "What a condensation took while its request waited.", histogram, ownSeconds}
	mResults    = measure{"condense.results.shortened", "{result}", "Tool results that were shortened before they were first sent.", counter, nil}
	mRecalls    = measure{"condense.recalls", "{recall}", "How often an agent asked for what was condensed, and got it.", counter, nil}
	mCompaction = measure{"condense.compactions", "{compaction}", "Compactions that the gateway answered in place of the vendor.", counter, nil}
	mAccounts   = measure{"condense.accounts", "{account}", "Accounts that clients' own models were asked for.", counter, nil}
	mFaults     = measure{"condense.faults", "{fault}", "Errors of the gateway, and of vendors, by kind.", counter, nil}
	mRefusals   = measure{"condense.refusals", "{request}", "Requests that the gateway refused, and limits that were reached.", counter, nil}
)

var (
	mAccountTokens = measure{"condense.account.tokens", "{token}", "Tokens of the requests for these accounts, as the vendors count them.", counter, nil}
	mAccountCost   = measure{"condense.account.cost", "{USD}", "Cost of these requests by the table of prices.", counter, nil}
)

var measures = []*measure{
	&mOperation, &mUsage, &mRequests, &mActive, &mProcessing, &mTokens, &mCost, &mSaved, &mUnpriced, &mEstimated, &mTruncated,
	&mEpochs, &mObserved, &mAttempts, &mRemoved, &mEpoch, &mResults, &mRecalls, &mCompaction,
	&mAccounts, &mAccountTokens, &mAccountCost, &mFaults, &mRefusals,
}

// scope is the name of the instrumentation.
const scope = "github.com/condensehq/condense/live"

// A telemetry sends numbers and spans to OpenTelemetry.
type telemetry struct {
	tracer trace.Tracer
	adds   map[*measure]func(context.Context, float64, attribute.Set)
}

func newTelemetry(meters metric.MeterProvider, tracers trace.TracerProvider) (*telemetry, error) {
	t := &telemetry{tracer: tracers.Tracer(scope), adds: map[*measure]func(context.Context, float64, attribute.Set){}}
	meter := meters.Meter(scope)
	var errs []error
	for _, m := range measures {
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
	aTenant    = attribute.Key("condense.tenant")
	aAPI       = attribute.Key("condense.api")
	aOutcome   = attribute.Key("condense.outcome")
	aReason    = attribute.Key("condense.reason")
	aMode      = attribute.Key("condense.mode")
	aCondenser = attribute.Key("condense.provider")
	aKind      = attribute.Key("condense.kind")
	aLimit     = attribute.Key("condense.limit")
	aType      = attribute.Key("condense.token.type")
	aTokenType = attribute.Key("gen_ai.token.type")
	aOperation = attribute.Key("gen_ai.operation.name")
	aProvider  = attribute.Key("gen_ai.provider.name")
	aModel     = attribute.Key("gen_ai.request.model")
	aInput     = attribute.Key("gen_ai.usage.input_tokens")
	aOutput    = attribute.Key("gen_ai.usage.output_tokens")
	aRead      = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	aWrite     = attribute.Key("gen_ai.usage.cache_creation.input_tokens")
	aSession   = attribute.Key("gen_ai.conversation.id")
	aError     = attribute.Key("error.type")
	aStatus    = attribute.Key("http.response.status_code")
)

// add adds v to a metric. Attribute values must never come from a request, except model names from the table or the
// configuration.
func (t *telemetry) add(ctx context.Context, m *measure, v float64, of ...attribute.KeyValue) {
	t.adds[m](ctx, v, attribute.NewSet(of...))
}
