// Command wires writes the tables of docs/wires-measured.md: for each API, an agent's loop that is several times as long
// as the window, against a scripted vendor as strict as the real one; and the time that the gateway adds to a request,
// beside a bare reverse proxy in the same run. With -agents it adds the real clients' rows from the output of
// `make test-agents`.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

const (
	window = 60_000
	calls  = 45
	size   = 9000 // bytes of a result
	turns  = 15   // requests of which the fastest counts, because others also measure what else the machine does
)

// wires are the clients, by the name of their API.
var wires = []struct {
	name   string
	client upstream.Client
}{
	{"Anthropic Messages", upstream.Client{API: upstream.Messages, Model: "claude-opus-5-5", Thinking: "adaptive"}},
	{"OpenAI Chat Completions", upstream.Client{API: upstream.Chat, Model: "gpt-5.1"}},
	{"OpenAI Responses", upstream.Client{API: upstream.Responses, Model: "gpt-5.6", Thinking: "medium"}},
	{"Vertex AI: Anthropic", upstream.Client{API: upstream.Messages, Cloud: upstream.Vertex, Model: "claude-opus-5-5@1", Thinking: "adaptive"}},
	{"Foundry: Anthropic", upstream.Client{API: upstream.Messages, Cloud: upstream.Foundry, Model: "claude-opus-5-5", Thinking: "adaptive"}},
	{"Azure OpenAI", upstream.Client{API: upstream.Chat, Cloud: upstream.Azure, Model: "gpt-5.1"}},
	{"Gemini", upstream.Client{API: upstream.Gemini, Model: "gemini-3-pro-preview"}},
	{"Vertex AI: Gemini", upstream.Client{API: upstream.Gemini, Cloud: upstream.Vertex, Model: "gemini-2.5-pro"}},
	{"Ollama", upstream.Client{API: upstream.Ollama, Model: "qwen3:32b"}},
}

func main() {
	agents := flag.String("agents", "", "the `file` with the output of make test-agents")
	lock := flag.String("lock", "test/agents/package-lock.json", "the versions of its clients")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *agents, *lock); err != nil {
		fmt.Fprintf(os.Stderr, "wires: %v\n", err)
		os.Exit(1) //nolint:forbidigo // it is main
	}
}

func run(ctx context.Context, out io.Writer, agents, lock string) error {
	fmt.Fprintf(out, "# APIs, measured\n\nWritten by `make wires`. The vendor is scripted; %d tool calls, window of %d tokens.\n\n"+
		"| API | client | requests | condensed | broken prefixes | cache, of the ideal | refused |\n|---|---|---|---|---|---|---|\n",
		calls, window)
	for _, w := range wires {
		for _, stream := range []bool{false, true} {
			row, err := loop(ctx, w.client, stream)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			fmt.Fprintf(out, "| %s | Go, %s | %s |\n", w.name, map[bool]string{false: "whole answers", true: "streams"}[stream], row)
		}
	}
	if agents != "" {
		if err := clients(out, agents, lock); err != nil {
			return err
		}
	}
	fmt.Fprint(out, "\nMilliseconds to the end of a request, fastest of ", turns, ": bare reverse proxy → condense, without a\n"+
		"condensation, by the size of the history. Each includes the vendor's and the client's own time.\n\n| API | 20k tokens | 200k | 1M |\n|---|---|---|---|\n")
	for _, w := range wires {
		fmt.Fprintf(out, "| %s ", w.name)
		for _, tokens := range []int{20_000, 200_000, 1_000_000} {
			proxy, gateway, err := added(ctx, w.client, tokens)
			if err != nil {
				return fmt.Errorf("%s with %d tokens: %w", w.name, tokens, err)
			}
			fmt.Fprintf(out, "| %s → %s ", milliseconds(proxy), milliseconds(gateway))
		}
		fmt.Fprintln(out, "|")
	}
	return nil
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1000) }

// gateway serves a gateway before a vendor.
func gateway(ctx context.Context, vendor string, window int) (*live.Gateway, *httptest.Server, error) {
	host, err := condense.Open(ctx, &condense.Options{Values: &config.Values{
		DefaultProfile: "small", Profiles: map[string]config.ProfileValues{"small": {Window: &window}},
	}})
	if err != nil {
		return nil, nil, err
	}
	urls := map[string]string{}
	for _, name := range []string{"anthropic", "openai", "gemini", "vertex", "azure", "ollama"} {
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

// loop plays an agent's loop, and returns the cells of its row.
func loop(ctx context.Context, c upstream.Client, stream bool) (string, error) {
	v := upstream.New(upstream.Options{Window: window, Script: upstream.Loop(calls, size, nil)})
	vendor := httptest.NewServer(v)
	defer vendor.Close()
	g, s, err := gateway(ctx, vendor.URL, window)
	if err != nil {
		return "", err
	}
	defer s.Close()
	c.URL, c.Stream, c.Session = s.URL, stream, "s"
	if c.API == upstream.Ollama {
		c.Window = window
	}
	if _, err := c.Say(ctx, "Read all the files."); err != nil {
		return "", err
	}
	read, ideal := v.Cached()
	stats := g.Stats()
	share := 100 * float64(read) / float64(max(1, ideal))
	return fmt.Sprintf("%d | %d × | %d | %.1f %% | %d", len(v.Records()), stats.EpochCount, len(v.Breaks()), share, len(v.Refusals())), g.Close()
}

// A still is a vendor that gives the same answer to everything, at once.
type still struct {
	kind string
	body []byte
}

func (s *still) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", s.kind)
	_, _ = w.Write(s.body)
}

// added measures requests with so many tokens through a bare reverse proxy and through the gateway, by turns.
func added(ctx context.Context, c upstream.Client, tokens int) (proxied, condensed time.Duration, err error) {
	const results = 40
	large := upstream.New(upstream.Options{Window: 1 << 30, Context: 1 << 30, Script: upstream.Loop(results, 4*tokens/results, nil)})
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/azure") // the name of an upstream
		large.ServeHTTP(w, r)
	}))
	defer vendor.Close()
	c.URL, c.Session, c.Window = vendor.URL, "s", 0
	if c.API == upstream.Ollama {
		c.Window = 1 << 30
	}
	if _, err := c.Say(ctx, "Read all the files."); err != nil {
		return 0, 0, err
	}
	kind := "application/json"
	if c.API == upstream.Ollama {
		kind = "application/x-ndjson"
	}
	quick := httptest.NewServer(&still{kind, slices.Clone(c.Answer)})
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
	return slices.Min(took[0]), slices.Min(took[1]), g.Close()
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

// packages are the clients of tests of test/agents: their API and their package at npm.
var packages = map[string]struct{ api, client, name string }{
	"TestWrap/claude":          {"Anthropic Messages", "Claude Code", "@anthropic-ai/claude-code"},
	"TestWrap/codex":           {"OpenAI Responses", "Codex", "@openai/codex"},
	"TestWrap/opencode":        {"Anthropic Messages", "OpenCode", "opencode-ai"},
	"TestWrap/pi":              {"Anthropic Messages", "pi", "@earendil-works/pi-coding-agent"},
	"TestWrapFoundry":          {"Foundry: Anthropic", "Claude Code", "@anthropic-ai/claude-code"},
	"TestPortkey/anthropic":    {"Anthropic Messages, asked by Portkey", "Claude Code", "@anthropic-ai/claude-code"},
	"TestPortkey/openai":       {"OpenAI Chat Completions, asked by Portkey", "OpenAI's SDK", "openai"},
	"TestSDKThroughGateway/ai": {"OpenAI Chat Completions", "OpenAI's SDK", "openai"},
}

var (
	testOf = regexp.MustCompile(`^\s*(?:=== (?:RUN|CONT|NAME)|--- PASS:)\s+(\S+)`)
	billOf = regexp.MustCompile(`(\d+) epochs, (\d+) requests, \d+ turns, (\d+) breaks, .*\((\d+\.\d) %\)`)
)

// clients writes the rows of real clients. The tests of all of them have passed: no request of theirs was refused.
func clients(out io.Writer, agents, lock string) error {
	text, err := os.ReadFile(lock)
	if err != nil {
		return err
	}
	var locked struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal(text, &locked); err != nil {
		return err
	}
	file, err := os.Open(agents)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it is only read
	test := ""
	in := bufio.NewScanner(file)
	for in.Scan() {
		if m := testOf.FindStringSubmatch(in.Text()); m != nil {
			test = m[1]
		}
		m := billOf.FindStringSubmatch(in.Text())
		p, known := packages[test]
		if m == nil || !known {
			continue
		}
		version := locked.Packages["node_modules/"+p.name].Version
		fmt.Fprintf(out, "| %s | %s %s | %s | %s × | %s | %s %% | 0 |\n", p.api, p.client, strings.TrimSpace(version), m[2], m[1], m[3], m[4])
	}
	return in.Err()
}
