//go:build unix

// Command wires writes the two halves of bench/results/wires.md. -clients is the table of APIs and clients: each plays an
// agent's loop that is several times as long as its window, through condense serve, against a scripted vendor as strict as
// the real one. -times is the time that the gateway adds to a request, beside a bare reverse proxy in the same run.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

const turns = 15 // requests of which the fastest counts, because others also measure what else the machine does

// wires are the clients whose times are measured, by the name of their API.
var wires = []struct {
	name   string
	client upstream.Client
}{
	{anthropicMessages, upstream.Client{API: upstream.Messages, Model: opus, Thinking: "adaptive"}},
	{chatCompletions, upstream.Client{API: upstream.Chat, Model: "gpt-5.1"}},
	{responses, upstream.Client{API: upstream.Responses, Model: "gpt-5.6", Thinking: "medium"}},
	{vertexAnthropic, upstream.Client{API: upstream.Messages, Cloud: upstream.Vertex, Model: opus + "@1", Thinking: "adaptive"}},
	{foundry, upstream.Client{API: upstream.Messages, Cloud: upstream.Foundry, Model: opus, Thinking: "adaptive"}},
	{azure, upstream.Client{API: upstream.Chat, Cloud: upstream.Azure, Model: "gpt-5.1"}},
	{gemini, upstream.Client{API: upstream.Gemini, Model: "gemini-3-pro-preview"}},
	{vertexGemini, upstream.Client{API: upstream.Gemini, Cloud: upstream.Vertex, Model: "gemini-2.5-pro"}},
	{invokeModel, upstream.Client{API: upstream.Messages, Cloud: upstream.Bedrock, Model: profile, Thinking: "adaptive"}},
	{converse, upstream.Client{API: upstream.Converse, Cloud: upstream.Bedrock, Model: profile, Thinking: "adaptive"}},
}

// profile is a model's ID at Amazon.
const profile = "us.anthropic.claude-opus-5-5-v1:0"

func main() {
	times := flag.Bool("times", false, "measure the time that is added to a request, and no client")
	clients := flag.String("clients", "bin/clients", "the `folder` with the packages of bench/wires/clients")
	program := flag.String("condense", "bin/condense", "the `program`")
	only := flag.String("only", "", "only the rows whose title matches this `pattern`: API: client: N steps")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	rows, err := regexp.Compile(*only)
	switch {
	case err != nil:
	case *times:
		err = measure(ctx, os.Stdout)
	default:
		err = table(ctx, os.Stdout, &bench{clients: *clients, condense: *program, only: rows})
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "wires: %v\n", err)
		os.Exit(1) //nolint:forbidigo // it is main
	}
}

// measure writes the times.
func measure(ctx context.Context, out io.Writer) error {
	fmt.Fprint(out, "## Added time\n\nMilliseconds to the end of a request, fastest of ", turns, ": bare reverse proxy → condense,\n"+
		"without a condensation, by the size of the history. Each includes the vendor's and the client's own time.\n\n"+
		"| API | 20k tokens | 200k | 1M |\n|---|---|---|---|\n")
	for _, w := range wires {
		fmt.Fprintf(out, "| %s ", w.name)
		for _, tokens := range []int{20_000, 200_000, 1_000_000} {
			proxy, gateway, err := added(ctx, w.client, tokens)
			if err != nil {
				return fmt.Errorf("%s with %d tokens: %w", w.name, tokens, err)
			}
			fmt.Fprintf(out, "| %.1f → %.1f ", 1000*proxy.Seconds(), 1000*gateway.Seconds())
		}
		fmt.Fprintln(out, "|")
	}
	return nil
}

// gateway serves a gateway before a vendor.
func gateway(ctx context.Context, vendor string, window int) (*live.Gateway, *httptest.Server, error) {
	host, err := condense.Open(ctx, &condense.Options{Values: &config.Values{
		DefaultProfile: "small", Profiles: map[string]config.ProfileValues{"small": {Window: &window}},
	}})
	if err != nil {
		return nil, nil, err
	}
	urls := map[string]string{}
	for _, name := range []string{"anthropic", "openai", "gemini", "vertex", "azure", "bedrock"} {
		urls[name] = vendor
	}
	g, err := live.New(host, &live.Options{ //nolint:contextcheck // the gateway outlives the call
		Upstreams: live.Upstreams{URLs: urls}, Reports: live.Reports{Logger: slog.New(slog.DiscardHandler)}, Epoch: live.EpochOptions{Risk: 100},
	})
	if err != nil {
		return nil, nil, errors.Join(err, host.Close())
	}
	return g, httptest.NewServer(g), nil
}

// added measures requests with so many tokens through a bare reverse proxy and through the gateway, by turns.
func added(ctx context.Context, c upstream.Client, tokens int) (proxied, condensed time.Duration, err error) {
	const results = 40
	large := upstream.New(upstream.Options{Window: 1 << 30, Script: upstream.Loop(results, 4*tokens/results, nil)})
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/azure") // the name of an upstream
		large.ServeHTTP(w, r)
	}))
	defer vendor.Close()
	c.URL, c.Session = vendor.URL, "s"
	if _, err := c.Say(ctx, "Read all the files."); err != nil {
		return 0, 0, err
	}
	answer := slices.Clone(c.Answer)
	quick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // the same to everything, at once
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}))
	defer quick.Close()
	to, err := url.Parse(quick.URL)
	if err != nil {
		return 0, 0, err
	}
	transport := &http.Transport{DisableCompression: true}
	bare := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport})
	defer bare.Close()
	g, s, err := gateway(ctx, quick.URL, 1<<28)
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	var took [2][]time.Duration
	watch := &stopwatch{}
	c.HTTP = &http.Client{Transport: watch}
	for range turns + 2 { // the first two warm up
		for i, at := range []string{bare.URL, s.URL} {
			one := c
			one.URL, one.History = at, append(slices.Clone(c.History), c.History[0])
			if _, _, err := one.Step(ctx); err != nil {
				return 0, 0, err
			}
			took[i] = append(took[i], watch.took)
			if i == 1 {
				c.History = one.History
			}
		}
	}
	for i := range took {
		took[i] = took[i][2:]
	}
	return slices.Min(took[0]), slices.Min(took[1]), g.Close() //nolint:contextcheck // it ends after the call
}

// A stopwatch is a transport that measures the time until the answer has ended.
type stopwatch struct{ took time.Duration }

func (s *stopwatch) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	s.took = time.Since(began)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, err
}
