// Command gateway measures what a gateway adds to requests: `condense serve`, a bare
// httputil.ReverseProxy, and @portkey-ai/gateway, each in a process of its own before the
// same stub of a vendor, in one run. See docs/decisions/appendix-benchmarks.md.
package main

import (
	"bufio"
	"bytes"
	"cmp"
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

// send sends a request and returns the time to the first byte of the answer's body.
func (b *bench) send(t *target, session string, body []byte) (time.Duration, error) {
	start := time.Now()
	resp, err := b.post(t, session, body, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	var first [1]byte
	if _, err := io.ReadFull(resp.Body, first[:]); err != nil {
		return 0, err
	}
	took := time.Since(start)
	rest, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(rest, []byte("message_stop"))) {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, rest)
	}
	return took, err
}

// firstByte measures turns of a growing conversation that needs nothing.
func (b *bench) firstByte() error {
	fmt.Fprintf(b.out, "Time to first byte in ms, %d turns of a growing conversation that needs nothing:\n\n", b.turns)
	fmt.Fprintln(b.out, "| gateway | tokens | bytes | p50 | p99 | added p50 | added p99 |\n|---|---|---|---|---|---|---|")
	all := messages(12_000)
	for _, tokens := range []int{20_000, 200_000, 1_000_000} {
		n := tokens / tokensPerMessage / 4 * 4
		times := map[string][]time.Duration{}
		bytes := 0
		for turn := range b.turns {
			session := "first-byte-" + strconv.Itoa(tokens)
			body := request(all[:n+1+2*(turn%200)], session) // ends with a user's message or with results
			bytes = len(body)
			for _, t := range b.targets { // in turns, so that they share the noise of the machine
				if strings.Contains(t.name, smaller) {
					continue
				}
				took, err := b.send(t, session, body)
				if err != nil {
					return fmt.Errorf("%s at %d tokens: %w", t.name, tokens, err)
				}
				if turn > 0 { // the first request of a conversation is counted whole
					times[t.name] = append(times[t.name], took)
				}
			}
		}
		base50, base99 := percentile(times["none"], 50), percentile(times["none"], 99)
		for _, t := range b.targets {
			if p := times[t.name]; p != nil {
				p50, p99 := percentile(p, 50), percentile(p, 99)
				fmt.Fprintf(b.out, "| %s | %d | %d | %s | %s | %s | %s |\n", t.name, tokens, bytes, ms(p50), ms(p99), ms(p50-base50), ms(p99-base99))
			}
		}
	}
	return nil
}

// epochs measures the request in which a conversation of 400,000 tokens is condensed.
func (b *bench) epochs() error {
	all := messages(12_000)
	// The first request is far below the threshold, because its tokens are only estimated.
	before, after := 200_000/tokensPerMessage/4*4+1, 420_000/tokensPerMessage/4*4+1
	var times, base []time.Duration
	for i := range 10 {
		session := "epoch-" + strconv.Itoa(i)
		for _, t := range b.targets {
			if t.name != "condense"+smaller && t.name != "none" {
				continue
			}
			body := request(all[:before], session)
			if _, err := b.send(t, session, body); err != nil {
				return err
			}
			if b.stub.last() != len(body) {
				return fmt.Errorf("an epoch below the threshold: %d of %d bytes arrived", b.stub.last(), len(body))
			}
			took, err := b.send(t, session, request(all[:after], session))
			switch {
			case err != nil:
				return err
			case t.name == "none":
				base = append(base, took)
			case b.stub.last() > 200*after: // bytes: the original has about 600 a message
				return fmt.Errorf("no epoch: %d bytes arrived for %d messages", b.stub.last(), after)
			default:
				times = append(times, took)
			}
		}
	}
	fmt.Fprintf(b.out, "\nAn epoch at 420,000 tokens: added p50 %s ms, most %s ms\n", ms(percentile(times, 50)-percentile(base, 50)), ms(percentile(times, 100)-percentile(base, 50)))
	return nil
}

// rate measures requests of 2,000 tokens per second, 16 at a time.
func (b *bench) rate() error {
	fmt.Fprintln(b.out, "\n| gateway | requests per second, 2,000 tokens, 16 at a time |\n|---|---|")
	for _, t := range b.targets {
		if strings.Contains(t.name, smaller) {
			continue
		}
		end := time.Now().Add(5 * time.Second)
		var mu sync.Mutex
		var done int
		var fault error
		var wait sync.WaitGroup
		for i := range 16 {
			session := "rate-" + strconv.Itoa(i)
			body := request(messages(17), session)
			wait.Go(func() {
				for time.Now().Before(end) {
					_, err := b.send(t, session, body)
					mu.Lock()
					done++
					fault = cmp.Or(fault, err) // one of many that are alike
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		wait.Wait()
		if fault != nil {
			return fmt.Errorf("%s: %w", t.name, fault)
		}
		fmt.Fprintf(b.out, "| %s | %d |\n", t.name, done/5)
	}
	return nil
}

// pacedBy is the header with the number of events of an answer that comes as a model writes: one every [pace], with
// the time when it was sent.
const (
	pacedBy = "X-Bench-Events"
	pace    = 100 * time.Millisecond
)

// streams measures parallel answers of ten seconds to requests of 20,000 tokens: how much later each event arrives,
// and memory.
func (b *bench) streams() error {
	const events = 100
	fmt.Fprintf(b.out, "%d streams at a time for %v, each an answer of %d events, one every %v, to a request of 20,000 tokens. Times in ms:\n\n", b.parallel, b.long, events, pace)
	fmt.Fprintln(b.out, "| gateway | answers | first byte p50 | p99 | added p99 | an event p50 | p99 | added p99 | MB at most | MB more than idle, each | CPU, s |\n|---|---|---|---|---|---|---|---|---|---|---|")
	var base99 [2]time.Duration
	for _, t := range b.targets {
		if strings.Contains(t.name, smaller) {
			continue
		}
		idle, worked := memory(t.pid), processor(t.pid)
		var mu sync.Mutex
		var first, late []time.Duration
		var fault error
		end, most := time.Now().Add(b.long), idle
		var all sync.WaitGroup
		for i := range b.parallel {
			all.Go(func() {
				time.Sleep(events * pace * time.Duration(i) / time.Duration(b.parallel)) //nolint:forbidigo // they begin one after the other
				for n := 0; time.Now().Before(end); n++ {
					body := request(messages(20_000/tokensPerMessage/4*4+1+2*n), "stream-"+strconv.Itoa(i))
					took, each, err := b.follow(t, "stream-"+strconv.Itoa(i), body, events)
					mu.Lock()
					if n > 0 { // the first request of a conversation is counted whole, and opens connections
						first, late = append(first, took), append(late, each...)
					}
					fault = cmp.Or(fault, err) // one of many that are alike
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		for over := false; !over; {
			select {
			case <-done:
				over = true
			case <-time.After(pace):
			}
			most = max(most, memory(t.pid))
		}
		if fault != nil {
			return fmt.Errorf("%s: %w", t.name, fault)
		}
		if t.name == "none" {
			base99 = [2]time.Duration{percentile(first, 99), percentile(late, 99)}
		}
		fmt.Fprintf(b.out, "| %s | %d | %s | %s | %s | %s | %s | %s | %d | %.2f | %.1f |\n", t.name, len(first),
			ms(percentile(first, 50)), ms(percentile(first, 99)), ms(percentile(first, 99)-base99[0]),
			ms(percentile(late, 50)), ms(percentile(late, 99)), ms(percentile(late, 99)-base99[1]),
			most/1024, float64(most-idle)/1024/float64(b.parallel), processor(t.pid)-worked)
	}
	fmt.Fprintln(b.out)
	return nil
}

// follow reads a paced answer and returns the time to its first byte, and how late each event was.
func (b *bench) follow(t *target, session string, body []byte, events int) (first time.Duration, late []time.Duration, err error) {
	start := time.Now()
	resp, err := b.post(t, session, body, events)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadSlice('\n')
		if first == 0 {
			first = time.Since(start)
		}
		if err != nil {
			if errors.Is(err, io.EOF) && len(late) == events {
				return first, late, nil
			}
			return 0, nil, fmt.Errorf("status %d, %d of %d events: %w", resp.StatusCode, len(late), events, err)
		}
		if _, text, ok := bytes.Cut(line, []byte(`"sent `)); ok {
			text, _, _ = bytes.Cut(text, []byte(`"`))
			at, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil {
				return 0, nil, err
			}
			late = append(late, time.Since(time.Unix(0, at)))
		}
	}
}

// processor returns the processor time of a process in seconds, in Linux's units of a hundredth.
func processor(pid int) float64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	const user, system, unit = 11, 12, 100
	f := strings.Fields(rest)
	if len(f) <= system {
		return 0
	}
	u, _ := strconv.Atoi(f[user])
	k, _ := strconv.Atoi(f[system])
	return float64(u+k) / unit
}

// memory returns the resident memory of a process in kB.
func memory(pid int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	n, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kb, _ := strconv.Atoi(n)
	return kb
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

func percentile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[(len(sorted)-1)*p/100]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000) }

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
