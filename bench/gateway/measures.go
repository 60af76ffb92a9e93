package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

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

func percentile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[(len(sorted)-1)*p/100]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000) }
