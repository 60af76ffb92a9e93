// Command gateway measures what a gateway adds to requests: `condense serve`, a bare
// httputil.ReverseProxy, and @portkey-ai/gateway, each in a process of its own before the
// same stub of a vendor, in one run. See bench/results/appendix-benchmarks.md.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/testkit/benchdata"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "gateway: %v\n", err)
		os.Exit(1) //nolint:forbidigo // it is main
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	condense := flags.String("condense", "bin/condense", "the `program`")
	peers := flags.String("peers", "bench/peers", "the `folder` with @portkey-ai/gateway in node_modules; empty leaves it out")
	turns := flags.Int("turns", 200, "requests for each gateway and size")
	only := flags.String("steps", "", "`names` of the measurements, with commas: streams, first-byte, epochs, rate, herd (default: all)")
	parallel := flags.Int("parallel", 500, "streams at a time")
	long := flags.Duration("for", time.Minute, "how long the streams are measured at each gateway")
	proxy := flags.String("reverse-proxy", "", "be a bare reverse proxy before `URL`, on the address in the first argument")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *proxy != "" {
		return reverseProxy(flags.Arg(0), *proxy)
	}
	b := &bench{out: out, turns: *turns, parallel: *parallel, long: *long}
	defer b.stop()
	if err := b.start(*condense, *peers); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		run  func() error
	}{{"streams", b.streams}, {"first-byte", b.firstByte}, {"epochs", b.epochs}, {"rate", b.rate}, {"herd", func() error { return b.herd(*condense) }}} { // first, to measure the memory of a fresh process
		if *only != "" && !slices.Contains(strings.Split(*only, ","), step.name) {
			continue
		}
		if err := step.run(); err != nil {
			return err
		}
	}
	return nil
}

func reverseProxy(addr, upstream string) error {
	u, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
	h := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }}
	duplex := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without it the server closes the request's body when the answer begins, which breaks some streams.
		_ = http.NewResponseController(w).EnableFullDuplex()
		h.ServeHTTP(w, r)
	})
	server := &http.Server{Addr: addr, Handler: duplex, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}

// A target is a way to the stub.
type target struct {
	name   string
	url    string
	header http.Header
	pid    int
}

type bench struct {
	out      io.Writer
	turns    int
	parallel int
	long     time.Duration
	dir      string
	stub     *stub
	targets  []*target
	client   *http.Client
	kill     []func()
}

func (b *bench) stop() {
	for _, k := range slices.Backward(b.kill) {
		k()
	}
}

// start starts the stub and the gateways.
func (b *bench) start(condense, peers string) error {
	dir, err := os.MkdirTemp("", "gateway")
	if err != nil {
		return err
	}
	b.dir = dir
	b.kill = append(b.kill, func() { _ = os.RemoveAll(dir) })
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}}
	b.stub = &stub{}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lives as long as the process
	if err != nil {
		return err
	}
	go func() { _ = (&http.Server{Handler: b.stub, ReadHeaderTimeout: time.Minute}).Serve(l) }()
	upstream := "http://" + l.Addr().String()
	b.targets = []*target{{name: "none", url: upstream}}

	self, err := os.Executable()
	if err != nil {
		return err
	}
	addr := free()
	if err := b.process("ReverseProxy", "http://"+addr, nil, self, "-reverse-proxy", upstream, addr); err != nil {
		return err
	}
	for _, w := range []int{1_600_000, 500_000} { // only the epochs reach their window
		if err := b.condense(condense, upstream, w, "threshold: 80\nserve: {epoch: {payback: false}}\n"); err != nil {
			return err
		}
	}
	if peers == "" {
		return nil
	}
	addr = free()
	_, port, _ := net.SplitHostPort(addr)
	return b.process("portkey", "http://"+addr, http.Header{
		"X-Portkey-Provider": {"anthropic"}, "X-Portkey-Custom-Host": {upstream + "/v1"},
	}, "node", "--import", "./"+filepath.ToSlash(filepath.Join(peers, "portkey.mjs")),
		filepath.Join(peers, "node_modules/@portkey-ai/gateway/build/start-server.js"), "--port="+port, "--headless")
}

// condense starts the program for models with a window of that many tokens, with more lines of the configuration.
func (b *bench) condense(program, upstream string, window int, more string) error {
	if program == "" {
		return nil
	}
	name, addr := "condense", free()
	if window < 1_000_000 {
		name += smaller
	}
	file := filepath.Join(b.dir, strings.ReplaceAll(addr, ":", "-"))
	config := file + ".yaml"
	if err := os.WriteFile(config, fmt.Appendf(nil, "profiles:\n  default:\n    window: %d\n%s", window, more), 0o600); err != nil {
		return err
	}
	return b.process(name, "http://"+addr, nil, program, "serve", "--listen", addr, "--config", config,
		"--upstream", "anthropic="+upstream, "--store", file+".db")
}

// smaller marks the name of a gateway that only the epochs use.
const smaller = ", window 500k"

// free returns an address on the loopback that is not in use.
func free() string {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	if err != nil {
		return "127.0.0.1:0"
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// process starts a gateway and waits until it answers.
func (b *bench) process(name, url string, header http.Header, program string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), program, args...) //nolint:gosec // the programs that are measured
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "TERM=dumb", "NODE_ENV=production", "ALLOW_LOCAL=1", "TRUSTED_CUSTOM_HOSTS=127.0.0.1,localhost"}
	log, err := os.Create(filepath.Join(b.dir, strings.ReplaceAll(name, " ", "-")+".log"))
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.kill = append(b.kill, func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = log.Close() })
	t := &target{name, url, header, cmd.Process.Pid}
	body := request(messages(1), "warm-up")
	for range 200 {
		if _, err = b.send(t, "warm-up", body); err == nil {
			b.targets = append(b.targets, t)
			return nil
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // it waits for a process
	}
	text, _ := os.ReadFile(log.Name())
	text = text[:min(len(text), 2000)]
	return fmt.Errorf("%s does not answer: %w\n%s", name, err, text)
}

// post sends a request.
func (b *bench) post(t *target, session string, body []byte, paced int) (*http.Response, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, t.url+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "X-Api-Key": {"dummy"}, "Anthropic-Version": {"2023-06-01"},
		"X-Claude-Code-Session-Id": {session},
	}
	if paced > 0 {
		req.Header.Set(pacedBy, strconv.Itoa(paced))
	}
	maps.Copy(req.Header, t.header)
	return b.client.Do(req)
}

// tokensPerMessage is the mean size of messages of benchdata, by o200k_base.
const tokensPerMessage = 117

// conversation is the longest one; every request has a beginning of it.
var conversation = sync.OnceValue(func() []json.RawMessage {
	var b bytes.Buffer
	var all []json.RawMessage
	if err := errors.Join(benchdata.WriteAnthropic(&b, 12_000), json.Unmarshal(b.Bytes(), &all)); err != nil {
		panic(err) // a fault of benchdata
	}
	return all
})

func messages(n int) []json.RawMessage { return conversation()[:n] }

func request(list []json.RawMessage, session string) []byte {
	body, err := json.Marshal(map[string]any{
		"model": "claude-opus-4-6", "max_tokens": 4096, "stream": true, "system": "Answer briefly.", "messages": list,
		"metadata": map[string]string{"user_id": session},
	})
	if err != nil {
		panic(err) // raw messages are valid JSON
	}
	return body
}

// A stub answers every request with a short stream, or a paced one.
type stub struct {
	mu   sync.Mutex
	size int
}

func (s *stub) last() int { s.mu.Lock(); defer s.mu.Unlock(); return s.size }

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.size = int(n)
	s.mu.Unlock()
	answer(w, r, int(n)/5)
}

// answer streams an answer to a prompt of so many tokens.
func answer(w http.ResponseWriter, r *http.Request, tokens int) {
	w.Header().Set("Content-Type", "text/event-stream")
	usage := fmt.Sprintf(`{"input_tokens":%d,"output_tokens":1}`, tokens)
	send := func(name, data string) {
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
		_ = http.NewResponseController(w).Flush()
	}
	send("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[],"usage":`+usage+`}}`)
	send("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	if paced, _ := strconv.Atoi(r.Header.Get(pacedBy)); paced > 0 {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for range paced {
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
			send("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"sent %d"}}`, time.Now().UnixNano()))
		}
	} else {
		send("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Yes."}}`)
	}
	send("content_block_stop", `{"type":"content_block_stop","index":0}`)
	send("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`)
	send("message_stop", `{"type":"message_stop"}`)
}
