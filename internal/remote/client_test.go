package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/modeltest"
	"github.com/condensehq/condense/model"
)

func TestGenerate(t *testing.T) {
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			s := modeltest.Serve(t, modeltest.Stream(v.says("A summary — with Ünïcode.")...))
			answer, e := ask(t.Context(), t, open(t, v, options(s.URL+"/v1/")))
			if e != nil {
				t.Fatal(e)
			}
			want := &model.Answer{
				Text:  "A summary — with Ünïcode.",
				Usage: core.Usage{Calls: 1, InputTokens: 420, OutputTokens: 50, CachedTokens: 300, USD: (120*1 + 300*0.1 + 50*5) / 1e6},
			}
			if v.name == "anthropic" {
				want.Usage.USD += 20 * 0.25 / 1e6 // written to the cache
			}
			if diff := cmp.Diff(want, answer, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// What is not known to cost nothing is not reported as if it did.
func TestUnpriced(t *testing.T) {
	for _, v := range vendors {
		for _, tt := range []struct {
			name   string
			change func(*remote.Options)
			says   []string
			want   int
		}{
			{"no price", func(o *remote.Options) {
				o.Price.Input, o.Price.Output, o.Price.CacheRead, o.Price.CacheWrite = 0, 0, 0, 0
			}, v.says("Said."), 1},
			{"free", func(o *remote.Options) { *o = remote.Options{ID: o.ID, BaseURL: o.BaseURL, Free: true} }, v.says("Said."), 0},
			{"no usage", func(*remote.Options) {}, withoutUsage(v.says("Said.")), 1},
		} {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				s := modeltest.Serve(t, modeltest.Stream(tt.says...))
				o := options(s.URL)
				tt.change(&o)
				answer, e := ask(t.Context(), t, open(t, v, o))
				if e != nil {
					t.Fatal(e)
				}
				if u := answer.Usage; u.Unpriced != tt.want || u.USD != 0 || u.Calls != 1 {
					t.Errorf("got %+v, want 1 call, %d unpriced, no dollars", u, tt.want)
				}
			})
		}
	}
}

func withoutUsage(data []string) []string {
	all := make([]string, len(data))
	for i, d := range data {
		all[i] = strings.ReplaceAll(strings.ReplaceAll(d, `"usage"`, `"other"`), `_tokens"`, `_others"`)
	}
	return all
}

// A fault of the server has the right kind, is repeated only where that may help, and
// costs what was reported.
func TestFaults(t *testing.T) {
	const busy = `{"error":{"type":"overloaded_error","message":"Overloaded"}}`
	for _, v := range vendors {
		good := modeltest.Stream(v.says("Said.")...)
		start := v.says("Said.")[:4]
		if v.name == "openai" {
			start = v.says("Said.")[:2]
		}
		for _, tt := range []struct {
			name     string
			script   []http.HandlerFunc
			want     remote.Kind // empty: it answers
			is       error
			requests int
			calls    int // that are reported as made
		}{
			{"429, then fine", []http.HandlerFunc{modeltest.Answer(429, busy), good}, "", nil, 2, 1},
			{"500 and 503, then fine", []http.HandlerFunc{modeltest.Answer(500, "oops"), modeltest.Answer(503, ""), good}, "", nil, 3, 1},
			{"529 for ever", []http.HandlerFunc{modeltest.Answer(529, busy)}, remote.KindBusy, nil, 3, 0},
			{"408 for ever", []http.HandlerFunc{modeltest.Answer(408, "{}")}, remote.KindBusy, nil, 3, 0},
			{"400", []http.HandlerFunc{modeltest.Answer(400, `{"error":{"type":"invalid_request_error","message":"messages: bad"}}`)}, remote.KindRefused, nil, 1, 0},
			{"422", []http.HandlerFunc{modeltest.Answer(422, `{"detail":[{"msg":"wrong"}]}`)}, remote.KindRefused, nil, 1, 0},
			{"401", []http.HandlerFunc{modeltest.Answer(401, `{"error":{"type":"authentication_error","message":"invalid x-api-key"}}`)}, remote.KindDenied, core.ErrUnavailable, 1, 0},
			{"402", []http.HandlerFunc{modeltest.Answer(402, `{"error":{"message":"Insufficient credits","code":402}}`)}, remote.KindDenied, core.ErrUnavailable, 1, 0},
			{"404", []http.HandlerFunc{modeltest.Answer(404, `{"error":{"type":"not_found_error","message":"model: model-1"}}`)}, remote.KindDenied, core.ErrUnavailable, 1, 0},
			{"quota", []http.HandlerFunc{modeltest.Answer(429, `{"error":{"code":"insufficient_quota","type":"insufficient_quota","message":"You exceeded your current quota"}}`)}, remote.KindDenied, core.ErrUnavailable, 1, 0},
			{"the vendor says not to repeat", []http.HandlerFunc{modeltest.Answer(500, busy, "x-should-retry", "false")}, remote.KindRefused, nil, 1, 0},
			{"too long", []http.HandlerFunc{modeltest.Answer(400, `{"error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`)}, remote.KindTooLong, model.ErrTooLong, 1, 0},
			{"too long for OpenAI", []http.HandlerFunc{modeltest.Answer(400, `{"error":{"code":"context_length_exceeded","message":"…"}}`)}, remote.KindTooLong, model.ErrTooLong, 1, 0},
			{"413", []http.HandlerFunc{modeltest.Answer(413, "<html>nginx</html>")}, remote.KindTooLong, model.ErrTooLong, 1, 0},
			{"closed at once, then fine", []http.HandlerFunc{modeltest.Cut(), good}, "", nil, 2, 1},
			{"cut in the middle, then fine", []http.HandlerFunc{modeltest.Cut(start...), good}, "", nil, 2, 2},
			{"cut in the middle for ever", []http.HandlerFunc{modeltest.Cut(start...)}, remote.KindCut, nil, 3, 3},
			{"ends in the middle", []http.HandlerFunc{modeltest.Stream(start...)}, remote.KindCut, io.ErrUnexpectedEOF, 3, 3},
			{"an empty stream", []http.HandlerFunc{modeltest.Stream()}, remote.KindCut, io.ErrUnexpectedEOF, 3, 3},
			{"an error within the stream, then fine", []http.HandlerFunc{modeltest.Stream(append(start[:1:1], inStream(v, busy))...), good}, "", nil, 2, 2},
			{"too long, within the stream", []http.HandlerFunc{modeltest.Stream(inStream(v, `{"error":{"type":"invalid_request_error","message":"prompt is too long"}}`))}, remote.KindTooLong, model.ErrTooLong, 1, 1},
			{"malformed", []http.HandlerFunc{modeltest.Stream(`{"type":"message_start"`)}, remote.KindMalformed, nil, 1, 1},
			{"malformed, in one piece", []http.HandlerFunc{modeltest.Answer(200, `{malformed json: <<<`)}, remote.KindMalformed, nil, 1, 1},
			{"a web page", []http.HandlerFunc{modeltest.Answer(200, `<html>Sign in</html>`, "Content-Type", "text/html")}, remote.KindMalformed, nil, 1, 1},
			{"nothing said", []http.HandlerFunc{modeltest.Stream(v.says("")...)}, remote.KindNoText, model.ErrNoText, 1, 1},
			{"blank", []http.HandlerFunc{modeltest.Stream(v.says(" \n\t ")...)}, remote.KindNoText, model.ErrNoText, 1, 1},
			{"a page of an event", []http.HandlerFunc{modeltest.Stream(strings.Repeat("x", 5<<20))}, remote.KindTooLarge, nil, 1, 1},
			{"no end", []http.HandlerFunc{modeltest.Hang(repeat(v.says(strings.Repeat("word ", 2000)), 8)[:11]...)}, remote.KindTooLarge, nil, 1, 1},
		} {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				s := modeltest.Serve(t, tt.script...)
				ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience(t))
				defer cancel()
				answer, e := ask(ctx, t, open(t, v, options(s.URL)))
				if kindOf(e) != tt.want {
					t.Fatalf("got kind %q (%v), want %q", kindOf(e), e, tt.want)
				}
				if n := len(s.Requests()); n != tt.requests {
					t.Errorf("got %d requests, want %d", n, tt.requests)
				}
				if answer.Usage.Calls != tt.calls {
					t.Errorf("got %d calls reported, want %d", answer.Usage.Calls, tt.calls)
				}
				if e == nil {
					if answer.Text != "Said." {
						t.Errorf("got %q, want the answer of the last attempt alone", answer.Text)
					}
					return
				}
				if e.Attempts != tt.requests {
					t.Errorf("got %d attempts in the error, want %d", e.Attempts, tt.requests)
				}
				for _, is := range []error{core.ErrUnavailable, model.ErrTooLong, model.ErrNoText} {
					if got := errors.Is(e, is); got != (is == tt.is) { //nolint:errorlint // which of them is expected
						t.Errorf("%v: got errors.Is(%v) = %v", e, is, got)
					}
				}
				if tt.is != nil && !errors.Is(e, tt.is) {
					t.Errorf("got %v, want one that wraps %v", e, tt.is)
				}
				if text := e.Error(); e.Model != "cheap" || strings.ContainsRune(text, '\n') || len(text) > 1000 {
					t.Errorf("got the text %q, want one line, and the name of the model", text)
				}
			})
		}
	}
}

// inStream returns an error as the vendor reports one within a stream.
func inStream(v vendor, e string) string {
	if v.name == "anthropic" {
		return `{"type":"error",` + e[1:]
	}
	return e
}

// repeat returns data with its event of text n times.
func repeat(data []string, n int) []string {
	longest := 0
	for i := range data {
		if len(data[i]) > len(data[longest]) {
			longest = i
		}
	}
	var all []string
	for i, d := range data {
		all = append(all, d)
		for range n - 1 {
			if i == longest {
				all = append(all, d)
			}
		}
	}
	return all
}

func TestRetryAfter(t *testing.T) {
	const busy = `{"error":{"type":"rate_limit_error","message":"slow down"}}`
	v := vendors[0]
	good := modeltest.Stream(v.says("Said.")...)

	t.Run("is waited for", func(t *testing.T) {
		testkit.Slow(t)
		s := modeltest.Serve(t, modeltest.Answer(429, busy, "Retry-After", "1"), good)
		if _, e := ask(t.Context(), t, open(t, v, options(s.URL))); e != nil {
			t.Fatal(e)
		}
		all := s.Requests()
		if waited := all[1].Time.Sub(all[0].Time); waited < time.Second {
			t.Errorf("got a second request after %v, want one after a second", waited)
		}
	})
	for _, tt := range []struct {
		name, value string
		deadline    time.Duration
	}{
		{"longer than the deadline", "3600", 30 * time.Minute},
		{"longer than our patience", "3600", time.Hour * 24},
		{"as a date", time.Now().Add(3 * time.Hour).UTC().Format(http.TimeFormat), 30 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := modeltest.Serve(t, modeltest.Answer(429, busy, "Retry-After", tt.value))
			ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
			defer cancel()
			_, e := ask(ctx, t, open(t, v, options(s.URL)))
			if kindOf(e) != remote.KindBusy || e.Wait < 3590*time.Second || len(s.Requests()) != 1 {
				t.Fatalf("got %v after %d requests, want the refusal with its wait after one", e, len(s.Requests()))
			}
		})
	}
}

func TestSilence(t *testing.T) {
	for _, v := range vendors {
		for name, script := range map[string]http.HandlerFunc{
			"before the answer": modeltest.Hang(),
			"within the answer": modeltest.Hang(v.says("Said.")[:2]...),
		} {
			t.Run(v.name+"/"+name, func(t *testing.T) {
				s := modeltest.Serve(t, script)
				o := options(s.URL)
				o.Silence, o.Retry.Attempts = 60*time.Millisecond, 2
				_, e := ask(t.Context(), t, open(t, v, o))
				if kindOf(e) != remote.KindSilent || e.Attempts != 2 {
					t.Fatalf("got %v, want silence, twice", e)
				}
			})
		}
	}
}

// As long as something comes, an answer may take longer than the silence allowed.
func TestSlowAnswer(t *testing.T) {
	testkit.Slow(t)
	v := vendors[1]
	s := modeltest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		for range 12 {
			time.Sleep(100 * time.Millisecond)
			fmt.Fprint(w, ": still here\n\n")
			_ = rc.Flush()
		}
		fmt.Fprintf(w, "data: %s\n\n", strings.Join(v.says("Said."), "\n\ndata: "))
	})
	o := options(s.URL)
	o.Silence, o.Retry.Attempts = time.Second, 1
	testkit.Eventually(t, "it is answered, unless the machine stands still for a second", func() bool {
		_, e := ask(t.Context(), t, open(t, v, o))
		if e != nil && kindOf(e) != remote.KindSilent {
			t.Fatal(e)
		}
		return e == nil
	})
}

func TestCancel(t *testing.T) {
	for _, v := range vendors {
		for name, script := range map[string]http.HandlerFunc{
			"before the answer": modeltest.Hang(),
			"within the answer": modeltest.Hang(v.says("Said.")[:2]...),
			"between attempts":  modeltest.Answer(429, "{}", "Retry-After", "30"),
		} {
			t.Run(v.name+"/"+name, func(t *testing.T) {
				s := modeltest.Serve(t, script)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					for ctx.Err() == nil && len(s.Requests()) == 0 {
						time.Sleep(time.Millisecond)
					}
					time.Sleep(50 * time.Millisecond)
					cancel()
				}()
				_, e := ask(ctx, t, open(t, v, options(s.URL)))
				cancel()
				if kindOf(e) != remote.KindStopped || !errors.Is(e, context.Canceled) || len(s.Requests()) != 1 {
					t.Errorf("got %v, want one that wraps %v", e, context.Canceled)
				}
			})
		}
	}
}

func TestDeadline(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Hang())
	// A busy machine may need more than the first deadline to make the request.
	for left := 100 * time.Millisecond; len(s.Requests()) == 0; left *= 2 {
		_, e := askWithin(t, left, s.URL)
		if kindOf(e) != remote.KindStopped || !errors.Is(e, context.DeadlineExceeded) {
			t.Fatalf("got %v, want one that wraps %v", e, context.DeadlineExceeded)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, e := ask(ctx, t, open(t, vendors[0], options(s.URL))); kindOf(e) != remote.KindStopped || len(s.Requests()) != 1 {
		t.Errorf("got %v and %d requests, want nobody asked once the time is up", e, len(s.Requests()))
	}
}

func askWithin(t *testing.T, left time.Duration, base string) (*model.Answer, *remote.Error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), left)
	defer cancel()
	return ask(ctx, t, open(t, vendors[0], options(base)))
}

func TestConcurrent(t *testing.T) {
	const n = 20
	v := vendors[1]
	s := modeltest.Serve(t, modeltest.Answer(400, `{"error":{"message":"Unknown parameter: 'stream_options'","param":"stream_options"}}`), modeltest.Stream(v.says("Said.")...))
	c := open(t, v, options(s.URL))
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if answer, err := c.Generate(t.Context(), prompt); err != nil || answer.Text != "Said." {
				t.Errorf("got %v, %v", answer, err)
			}
		})
	}
	wg.Wait()
}

// A server that cuts a prompt without a word is noticed by its count.
func TestDoubt(t *testing.T) {
	long := *prompt
	long.Messages = []core.Message{{Role: core.RoleUser, Parts: []core.Part{core.Text(strings.Repeat("Some words. ", 4000))}}}
	for _, v := range vendors {
		for name, p := range map[string]*model.Prompt{"cut": &long, "": prompt} {
			var log bytes.Buffer
			s := modeltest.Serve(t, modeltest.Stream(v.says("Said.")...)) // 420 tokens read, it says
			o := options(s.URL)
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			if _, err := open(t, v, o).Generate(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(log.String(), "may have cut it"); got != (name == "cut") {
				t.Errorf("%s: got the log %q", v.name, log.String())
			}
		}
	}
}

// TestAbsurdUsageIsNotBelieved: a vendor that reports more tokens than a request can have taken
// makes the price unknown, not two million dollars.
func TestAbsurdUsageIsNotBelieved(t *testing.T) {
	const huge = "1000000000000"
	for _, tt := range []struct {
		vendor int
		usage  string
	}{
		{0, `{"input_tokens":` + huge + `,"output_tokens":5}`},
		{0, `{"input_tokens":10,"output_tokens":` + huge + `}`},
		{0, `{"input_tokens":10,"cache_read_input_tokens":` + huge + `,"output_tokens":5}`},
		{1, `{"prompt_tokens":` + huge + `,"completion_tokens":5}`},
		{1, `{"prompt_tokens":10,"completion_tokens":` + huge + `}`},
	} {
		v := vendors[tt.vendor]
		body := `{"content":[{"type":"text","text":"Said."}],"stop_reason":"end_turn","usage":` + tt.usage + `}`
		if tt.vendor == 1 {
			body = `{"choices":[{"message":{"content":"Said."},"finish_reason":"stop"}],"usage":` + tt.usage + `}`
		}
		s := modeltest.Serve(t, modeltest.Answer(200, body, "Content-Type", "application/json"))
		var log bytes.Buffer
		o := options(s.URL)
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		answer, e := ask(t.Context(), t, open(t, v, o))
		if e != nil || answer.Text != "Said." {
			t.Fatalf("%s %s: %v %v", v.name, tt.usage, answer, e)
		}
		if want := (core.Usage{Calls: 1, Unpriced: 1}); answer.Usage != want {
			t.Errorf("%s %s: got %+v, want %+v", v.name, tt.usage, answer.Usage, want)
		}
		if !strings.Contains(log.String(), "impossible for this request; it is ignored") {
			t.Errorf("%s %s: the log does not say so: %s", v.name, tt.usage, log.String())
		}
	}
}
