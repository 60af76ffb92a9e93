package supervise

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/wire"
)

func TestRestarts(t *testing.T) {
	rule := Restart{Min: time.Second, Max: 5 * time.Second, Crashes: 5, Window: time.Minute, Cooldown: 30 * time.Second}
	now := time.Unix(0, 0)
	r := restarts{rule: rule}
	fail := func(most time.Duration, broken bool) {
		t.Helper()
		r.failure(now, nil)
		if got := r.wait(now); got > most || got < most/2 || r.broken != broken {
			t.Errorf("after %d failures: wait %s, broken %v; want up to half less than %s, %v", len(r.failed), got, r.broken, most, broken)
		}
		now = now.Add(r.wait(now))
		if r.wait(now) != 0 {
			t.Error("the wait does not end")
		}
	}
	fail(1*time.Second, false)
	fail(2*time.Second, false)
	fail(4*time.Second, false)
	fail(5*time.Second, false) // not 8, because of the maximum
	r.failure(now, nil)
	if got := r.wait(now); got != rule.Cooldown || !r.broken {
		t.Errorf("after the fifth: wait %s, broken %v; want the cooldown", got, r.broken)
	}
	now = now.Add(rule.Cooldown)
	r.failure(now, nil) // the trial
	if got := r.wait(now); got != rule.Cooldown {
		t.Errorf("after the trial: wait %s; want another cooldown", got)
	}
	now = now.Add(rule.Window + time.Second)
	fail(1*time.Second, false) // earlier failures have expired
}

func TestRestartsOverflow(t *testing.T) {
	r := restarts{rule: Restart{Min: time.Second, Max: time.Minute, Crashes: 1000, Window: time.Hour, Cooldown: time.Hour}}
	now := time.Unix(0, 0)
	for range 100 {
		r.failure(now, nil)
		if w := r.wait(now); w <= 0 || w > time.Minute {
			t.Fatalf("after %d failures: wait %s", len(r.failed), w)
		}
	}
}

func TestBucket(t *testing.T) {
	now := time.Unix(0, 0)
	b := bucket{rate: 10, burst: 5, level: 5, at: now}
	for i := range 5 {
		if !b.has(now) {
			t.Errorf("no room for %d", i)
		}
	}
	if b.has(now) {
		t.Error("more than the burst")
	}
	if !b.has(now.Add(100 * time.Millisecond)) {
		t.Error("nothing comes back")
	}
	if got := b.take(now.Add(100*time.Millisecond), 20); got != 2*time.Second {
		t.Errorf("wait %s; want 2s", got)
	}
}

func TestHandshake(t *testing.T) {
	for line, want := range map[string]string{
		"1|1|unix|/s|grpc|":        "",
		"1|1|unix|/s|grpc|Y2VydA":  "",
		"1|1|unix|/s|grpc||false":  "",
		" 1|1|unix|/s|grpc|\r":     "",
		"":                         `it wrote "" to standard output before its handshake`,
		"|||||":                    `it wrote "|||||" to standard output`,
		"1|1|unix":                 `it wrote "1|1|unix" to standard output`,
		"\x1b[31mred":              `it wrote "\x1b[31mred" to standard output`,
		"3|1|unix|/s|grpc|":        `it uses version "3" of go-plugin's handshake`,
		"1|0|unix|/s|grpc|":        `it uses version "0" of the condense protocol, this host version 1; rebuild the plugin with a current SDK`,
		"1|2|unix|/s|grpc|":        `update the host`,
		"1|x|unix|/s|grpc|":        `it uses version "x" of the condense protocol`,
		"1|1|unix|/s":              `it does not offer gRPC`,
		"1|1|unix|/s|netrpc|":      `it does not offer gRPC`,
		strings.Repeat("y", 10000): `it wrote "yyy`,
	} {
		_, err := parseHandshake(line, false)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) || len(got) > 500 {
			t.Errorf("%q: got %q; want %q", line, got, want)
		}
	}
	if _, err := parseHandshake("1|1|unix|/s|grpc|", true); err == nil {
		t.Error("a plugin without a certificate is accepted")
	}
	if wire.ProtocolVersion != 1 {
		t.Error("the versions above are out of date")
	}
}

func TestEnvironmentOf(t *testing.T) {
	host := []string{"PATH=/bin", "SECRET=1", "LC_ALL=C", "A=1", "AB=2", "=C:=C:\\", "X"}
	got := environment(host, []string{"A*", "SECRET=mine", "=x", "NONE"}, []string{"OWN=1"})
	want := []string{"PATH=/bin", "LC_ALL=C", "A=1", "AB=2", "SECRET=mine", "=x", "OWN=1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestHeadline(t *testing.T) {
	for text, want := range map[string]string{
		"panic: boom\ngoroutine 1 [running]:\nmain.f(0x1)\n\t/src/acme/f.go:12 +0x1d":                                                                                                                                                                      "panic: boom at f.go:12",
		"panic: boom [recovered, repanicked]\ngoroutine 1 [running]:\npanic({0x1, 0x2})\n\t/go/src/runtime/panic.go:783 +0x132\nmain.f()\n\t/src/f.go:3 +0x1":                                                                                              "panic: boom [recovered, repanicked] at f.go:3",
		"fatal error: all goroutines are asleep - deadlock!":                                                                                                                                                                                               "fatal error: all goroutines are asleep - deadlock!",
		"Traceback (most recent call last):\n  File \"/p/plugin.py\", line 3, in condense\n    raise ValueError(\"bad\")\nValueError: bad":                                                                                                                 "ValueError: bad at plugin.py:3",
		"node:internal/process/promises:394\n      triggerUncaughtException(err, true);\nTypeError: x is not a function\n    at f (/p/plugin.mjs:3:1)":                                                                                                     "TypeError: x is not a function at plugin.mjs:3",
		"file:///p/a.mjs:3\n  throw new Error(text)\n        ^\nTypeError: bad\n    at Timeout.f (file:///p/a.mjs:3:9)\n    at listOnTimeout (node:internal/timers:581:17)":                                                                                "TypeError: bad at a.mjs:3",
		"/p/a.js:3\n  throw 'Error'\n  ^\nword\n(Use `node --trace-uncaught ...` to show where the exception was thrown)":                                                                                                                                  "word at a.js:3",
		"node:internal/process/promises:389\n      new UnhandledPromiseRejection(reason);\n      ^\nUnhandledPromiseRejection: This error originated. The promise rejected with the reason \"word\".\n    at throw (node:internal/process/promises:389:7)": "a promise that nobody waits for was rejected: \"word\".",
		"file:///p/a.mjs:3": "file:///p/a.mjs:3 at a.mjs:3",
		"thread 'main' panicked at src/main.rs:2:5:\nboom": "thread 'main' panicked at src/main.rs:2:5:",
	} {
		lines := strings.Split(text, "\n")
		if !beginsCrash(lines[0]) {
			t.Errorf("%q is not seen to begin a crash", lines[0])
		}
		if got := headlineOf(lines); got != want {
			t.Errorf("%q: got %q; want %q", text, got, want)
		}
	}
}

// TestDebugLinesAreNoCrash: of a plugin that ended without a word, the report quotes nothing; what it did say,
// without JSON.
func TestDebugLinesAreNoCrash(t *testing.T) {
	o := newOutput(slog.New(slog.DiscardHandler))
	o.hurry()
	o.write([]byte(`{"@level":"debug","@message":"described","@timestamp":"now","host":"condense"}`+"\n"), "stderr")
	if _, text := o.crash(); text != "" {
		t.Errorf("quoted: %s", text)
	}
	o.write([]byte(`{"@level":"error","@message":"no space left","@timestamp":"now"}`+"\ngood bye\n"), "stderr")
	if _, text := o.crash(); text != "no space left\ngood bye" {
		t.Errorf("quoted: %s", text)
	}
}

// TestOutputKeeps: after the cause of a crash comes more output than the tail keeps.
func TestOutputKeeps(t *testing.T) {
	o := newOutput(slog.New(slog.DiscardHandler))
	o.hurry()
	w := o.writer("stderr")
	fmt.Fprintln(w, "all is well")
	fmt.Fprintln(w, "fatal error: out of memory")
	for i := range 10_000 {
		fmt.Fprintf(w, "goroutine %d [running]\n", i)
	}
	headline, text := o.crash()
	if headline != "fatal error: out of memory" || !strings.HasPrefix(text, headline+"\ngoroutine 0 ") || len(text) > maxHead {
		t.Errorf("got %q, and %d bytes", headline, len(text))
	}
	if o.tailLen > maxTail || len(o.lastLines(3)) == 0 {
		t.Errorf("%d bytes of the end are kept", o.tailLen)
	}
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("plain\n{\"@message\":123}\n{\"@level\":\"warn\",\"@message\":\"m\",\"k\":[1]}\n[ERROR] x\npanic: y\n\tz.go:1 +0x1\n"))
	f.Add([]byte("Traceback (most recent call last)\nnode:internal/\n\xff\x00\x1b[2J\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var log strings.Builder
		o := newOutput(slog.New(slog.NewTextHandler(&log, nil)))
		o.hurry()
		o.write(text, "stderr")
		headline, all := o.crash()
		for _, s := range []string{headline, all, o.lastLines(3), log.String()} {
			if strings.ContainsAny(s, "\x00\x07\x1b\r") {
				t.Errorf("control characters in %q", s)
			}
		}
	})
}

func FuzzHandshake(f *testing.F) {
	f.Add("1|1|unix|/s|grpc|cert")
	f.Fuzz(func(t *testing.T, line string) {
		h, err := parseHandshake(line, true)
		if err == nil && checkSocket(h.network, h.address, "/private") == nil {
			t.Errorf("%q: a socket that is not there is accepted", line)
		}
	})
}

// TestCrashReadsWell: the error says that a program exited with success in a call, or ran out
// of memory.
func TestCrashReadsWell(t *testing.T) {
	for headline, want := range map[string]string{
		"":                       "plugin p crashed (signal: aborted) after 1.5s and 0 calls",
		"<--- Last few GCs --->": "plugin p ran out of memory (signal: aborted) after 1.5s and 0 calls",
		"fatal error: runtime: cannot allocate memory": "plugin p ran out of memory (signal: aborted) after 1.5s and 0 calls: fatal error: runtime: cannot allocate memory",
		"MemoryError":  "plugin p ran out of memory (signal: aborted) after 1.5s and 0 calls: MemoryError",
		"panic: a bug": "plugin p crashed (signal: aborted) after 1.5s and 0 calls: panic: a bug",
	} {
		e := &CrashError{Plugin: "p", Status: "signal: aborted", Panic: headline, Uptime: 1500 * time.Millisecond}
		if got := e.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
