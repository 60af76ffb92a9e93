package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// herd measures conversations that arrive at once at a gateway which has seen none of them: 200 that are over the
// limit, 60 that are only over the threshold, for comparison the same in a window where nothing is due, and a
// bystander's turns during calls of /v1/compress that were abandoned. Each gateway is a fresh process.
func (b *bench) herd(program string) error {
	fmt.Fprintln(b.out, "Conversations of 200,000 tokens that arrive at once. Times in ms to the first byte:")
	fmt.Fprintln(b.out, "\n| | window | at once | p50 | p99 | in all, s | refused | sent shorter | MB at most | CPU, s |\n|---|---|---|---|---|---|---|---|---|---|")
	const never = "serve: {epoch: {payback: false, cold: false}}\n"
	for _, h := range []struct {
		name   string
		window int
		n      int
		more   string
	}{
		{"over the limit", 200_000, 200, ""},
		{"over the limit", 200_000, 20, ""},
		{"over the threshold", 300_000, 60, "threshold: 60\n" + never},
		{"nothing is due", 1_600_000, 60, never},
	} {
		p, err := b.alone(program, h.window, h.more)
		if err != nil {
			return err
		}
		times, most, err := b.arrive(p.target, h.n)
		time.Sleep(time.Second) //nolint:forbidigo // for the gateway's work besides the requests
		if err != nil {
			return err
		}
		fmt.Fprintf(b.out, "| %s | %d | %d | %s | %s | %.1f | %d | %d | %d | %.1f |\n", h.name, h.window, h.n,
			ms(percentile(times, 50)), ms(percentile(times, 99)), percentile(times, 100).Seconds(), p.refused, p.shorter, most/1024, processor(p.pid))
		p.stop()
	}
	return b.bystander(program)
}

const (
	herdTokens    = 200_000 // of a conversation
	warmUp        = 1_000   // more than the request has that waits for the gateway
	bytesPerToken = 4       // as the gateway counts until the vendor reports it
)

// A lone gateway has a vendor of its own, which refuses requests longer than its window. It only counts bytes: the
// scripted vendor, which checks every rule, takes more processor time for a request than the gateway.
type lone struct {
	*target
	mu               sync.Mutex
	window           int
	refused, shorter int
	stop             func()
}

// ServeHTTP counts a request and answers it.
func (p *lone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return
	}
	tokens := int(n) / bytesPerToken
	p.mu.Lock()
	if tokens > p.window {
		p.refused++
	} else if tokens > warmUp && tokens < herdTokens/2 {
		p.shorter++
	}
	p.mu.Unlock()
	if tokens > p.window {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: %d tokens > %d maximum"}}`, tokens, p.window)
		return
	}
	answer(w, r, tokens)
}

func (b *bench) alone(program string, window int, more string) (*lone, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lives as long as the measurement
	if err != nil {
		return nil, err
	}
	p := &lone{window: window}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	targets, kill := len(b.targets), len(b.kill)
	if err := b.condense(program, "http://"+l.Addr().String(), window, more); err != nil {
		return nil, err
	}
	p.target = b.targets[targets]
	p.stop = func() {
		for _, k := range slices.Backward(b.kill[kill:]) {
			k()
		}
		b.kill, b.targets = b.kill[:kill], b.targets[:targets]
		_ = server.Close()
	}
	return p, nil
}

// arrive sends the requests of n conversations at once, and returns the times to the first byte and the most memory
// that the gateway had.
func (b *bench) arrive(t *target, n int) (times []time.Duration, most int, err error) {
	const size = 500 // bytes of a message
	whole := request(messages(herdTokens*bytesPerToken/size/4*4+1), "herd")
	bodies := make([][]byte, n)
	for i := range bodies { // no two messages are the same
		bodies[i] = bytes.ReplaceAll(whole, []byte(`"text":"`), []byte(`"text":"Conversation `+strconv.Itoa(i)+`. `))
		bodies[i] = bytes.ReplaceAll(bodies[i], []byte(`"content":"`), []byte(`"content":"Conversation `+strconv.Itoa(i)+`. `))
	}
	times = make([]time.Duration, n)
	faults := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { times[i], faults[i] = b.send(t, "herd-"+strconv.Itoa(i), bodies[i]) })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(pace / 10):
		}
		most = max(most, memory(t.pid))
	}
	return times, most, cmp.Or(faults...)
}

// bystander measures the turns of a conversation before and after two callers of /v1/compress with many tiny messages
// have hung up.
func (b *bench) bystander(program string) error {
	const turns = 40
	p, err := b.alone(program, 300_000, "")
	if err != nil {
		return err
	}
	defer p.stop()
	fmt.Fprintf(b.out, "\nA bystander's %d turns, in ms:\n\n| | p50 | most | CPU of the gateway, s |\n|---|---|---|---|\n", turns)
	tiny := []byte(`{"model":"claude-opus-4-6","config":{"target_ratio":0.1},"messages":[{"role":"user","content":"a 17"}` +
		strings.Repeat(`,{"role":"assistant","content":"a 17"},{"role":"user","content":"a 17"}`, 24_900) + `]}`)
	for _, name := range []string{"alone", "after two calls of 49,801 messages were abandoned"} {
		began := processor(p.pid)
		if name != "alone" {
			for range 2 {
				ctx, hangUp := context.WithTimeout(context.Background(), 100*time.Millisecond)
				if req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/compress", bytes.NewReader(tiny)); err == nil {
					if res, err := b.client.Do(req); err == nil {
						_, _ = io.Copy(io.Discard, res.Body)
						_ = res.Body.Close()
					}
				}
				hangUp()
			}
		}
		var times []time.Duration
		for n := range turns {
			took, err := b.send(p.target, name, request(messages(20_000/tokensPerMessage/4*4+1+2*n), name))
			if err != nil {
				return err
			}
			times = append(times, took)
		}
		fmt.Fprintf(b.out, "| %s | %s | %s | %.2f |\n", name, ms(percentile(times, 50)), ms(percentile(times, 100)), processor(p.pid)-began)
	}
	return nil
}
