package servecmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/condensehq/condense/live"
)

// maxSeries is the most combinations of attributes of a metric. Tenants, models and modes are few; more would be a
// mistake.
const maxSeries = 2000

// telemetry exports a gateway's metrics and traces.
type telemetry struct {
	metrics  *sdkmetric.MeterProvider
	traces   *sdktrace.TracerProvider
	registry *prometheus.Registry
}

// openTelemetry prepares /metrics, and sends metrics and traces to a collector if the variables of OpenTelemetry name
// one.
func openTelemetry(ctx context.Context, version string, log *slog.Logger) (*telemetry, error) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.WarnContext(ctx, "telemetry", "err", err) }))
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "condense"), attribute.String("service.version", version)), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	t := &telemetry{registry: prometheus.NewRegistry()}
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	pull, err := otelprometheus.New(otelprometheus.WithRegisterer(t.registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	metrics := []sdkmetric.Option{sdkmetric.WithResource(about), sdkmetric.WithReader(pull), sdkmetric.WithCardinalityLimit(maxSeries)}
	traces := []sdktrace.TracerProviderOption{sdktrace.WithResource(about)}
	if collects("METRICS") {
		push, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
		metrics = append(metrics, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(push)))
	}
	if collects("TRACES") {
		push, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
		traces = append(traces, sdktrace.WithBatcher(push))
	} else {
		traces = append(traces, sdktrace.WithSampler(sdktrace.NeverSample()))
	}
	t.metrics, t.traces = sdkmetric.NewMeterProvider(metrics...), sdktrace.NewTracerProvider(traces...)
	return t, nil
}

// collects reports whether the standard variables name a collector for a signal, METRICS or TRACES.
func collects(signal string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_"+signal+"_EXPORTER") == "none" {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

// fill fills in the options of a gateway.
func (t *telemetry) fill(o *live.Options) {
	o.Reports.Meter, o.Reports.Tracer = t.metrics, t.traces
	o.Reports.Metrics = promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// close sends pending data, within the time of ctx.
func (t *telemetry) close(ctx context.Context) error {
	return errors.Join(t.metrics.Shutdown(ctx), t.traces.Shutdown(ctx))
}
