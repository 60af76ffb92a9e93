package caller_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/caller"
	pb "github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/registry"
)

// A tally counts how often it is asked.
type tally struct {
	coretest.Counter

	asked atomic.Int64
	slow  chan struct{} // if set, Count returns when it is closed
}

func (c *tally) Count(parts ...core.Part) int {
	c.asked.Add(1)
	if c.slow != nil {
		<-c.slow
	}
	return c.Counter.Count(parts...)
}

// eachCounter is what a plugin's counter can do beyond core.Counter.
type eachCounter interface {
	CountEach(contents ...[]core.Part) []int
}

func TestCount(t *testing.T) {
	counter := &tally{}
	c := serve(t, strategy(func(_ context.Context, req *core.Request, _ registry.Env) (*core.Result, error) {
		check := func(what string, got int, want ...core.Part) {
			if w := (coretest.Counter{}).Count(want...); got != w {
				t.Errorf("%s: counted %d; want %d", what, got, w)
			}
		}
		text := core.Text("some new text")
		check("text", req.Counter.Count(text), text)
		check("again", req.Counter.Count(text), text)
		check("nothing", req.Counter.Count())
		check("two", req.Counter.Count(text, core.Opaque{Kind: "k", JSON: "{}"}), text, core.Opaque{Kind: "k", JSON: "{}"})
		if n := counter.asked.Load(); n != 2 {
			t.Errorf("the host counted %d times; want 2", n)
		}
		for _, m := range req.Messages { // known already
			check("a message", req.Counter.Count(m.Parts...), m.Parts...)
		}
		if n := counter.asked.Load(); n != 2 {
			t.Errorf("the host counted %d times; want 2: it has sent how large its messages are", n)
		}
		m := req.Messages[0]
		check("part of a message", req.Counter.Count(m.Parts[0]), m.Parts[0])
		each := req.Counter.(eachCounter).CountEach([]core.Part{text}, m.Parts, nil, []core.Part{core.Text("a"), core.Text("bbbbb")})
		if want := []int{4, 16, 0, 3}; !slices.Equal(each, want) {
			t.Errorf("each: counted %v; want %v", each, want)
		}
		many := make([][]core.Part, 50_000) // more than one message of the protocol may have
		for i := range many {
			many[i] = []core.Part{core.Text(strings.Repeat("y", i%100))}
		}
		if n := req.Counter.(eachCounter).CountEach(many...); len(n) != len(many) || n[49_999] != 25 {
			t.Errorf("many: counted %d, the last %d", len(n), n[len(n)-1])
		}
		var all sync.WaitGroup
		for i := range 50 { // at the same time
			all.Go(func() {
				p := core.Text(strings.Repeat("x", i*8))
				check("parallel", req.Counter.Count(p), p)
			})
		}
		all.Wait()
		return &core.Result{Messages: req.Messages}, nil
	}), nil)
	req := coretest.HalfRequest(chat(3))
	req.Counter = counter
	if _, err := c.Condense(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

// TestCallbacks asks a host by hand, for what other languages may ask.
func TestCallbacks(t *testing.T) {
	items := func(items ...*pb.CountItem) *pb.Callback {
		return &pb.Callback{Call: &pb.Callback_CountTokens{CountTokens: &pb.CountTokens{Items: items}}}
	}
	span := func(first, last string) *pb.CountItem {
		return &pb.CountItem{Kind: &pb.CountItem_Messages{Messages: &pb.MessageRange{First: first, Last: last}}}
	}
	part := func(id string, i uint32) *pb.CountItem {
		return &pb.CountItem{Kind: &pb.CountItem_Part{Part: &pb.PartRef{Message: id, Part: i}}}
	}
	content := func(parts ...*pb.Part) *pb.CountItem {
		return &pb.CountItem{Kind: &pb.CountItem_Content{Content: &pb.Content{Parts: parts}}}
	}
	const unsupported, quota, invalid, failed = pb.CallbackError_CODE_UNSUPPORTED, pb.CallbackError_CODE_QUOTA, pb.CallbackError_CODE_INVALID, pb.CallbackError_CODE_FAILED
	for _, tt := range []struct {
		name    string
		ask     *pb.Callback
		counter core.Counter
		limits  caller.Limits
		want    []int64
		code    pb.CallbackError_Code
		text    string
	}{
		{name: "all", ask: items(span("m1", "m3"), span("m2", ""), part("m3", 1), content(text("12345"), text("1")), content()), want: []int64{60, 20, 13, 3, 0}},
		{name: "nothing", ask: items(), want: nil},
		{name: "unknown message", ask: items(span("m1", ""), span("m4", "")), code: invalid, text: `item 1: there is no message "m4"`},
		{name: "backwards", ask: items(span("m2", "m1")), code: invalid, text: `item 0: message "m1" is before "m2"`},
		{name: "unknown part", ask: items(part("m1", math.MaxUint32)), code: invalid, text: `message "m1" has no part 4294967295`},
		{name: "no item", ask: items(&pb.CountItem{}), code: invalid, text: "of a kind that this host does not know"},
		{name: "no part", ask: items(content(text(""), &pb.Part{})), code: invalid, text: "part 1 is of a kind that this host does not know"},
		{name: "counter panics", ask: items(content(text("x"))), counter: panicCounter{}, code: failed, text: "counting: no"},
		{name: "too much", ask: items(content(text(strings.Repeat("x", 1000)))), limits: caller.Limits{CountBytes: 1000}, code: quota, text: "more than 1000 bytes to count"},
		{name: "generate", ask: &pb.Callback{Call: &pb.Callback_Generate{Generate: &pb.Generate{System: []byte("Summarize.")}}}, code: unsupported, text: "this host has no language model"},
		{name: "unknown", ask: &pb.Callback{}, code: unsupported, text: "does not know the request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &peer{condense: func(s stream) error {
				for range 2 { // start and the only run of messages
					if _, err := s.Recv(); err != nil {
						return err
					}
				}
				tt.ask.Id = 77
				if err := s.Send(&pb.CondenseResponse{Kind: &pb.CondenseResponse_Callback{Callback: tt.ask}}); err != nil {
					return err
				}
				env, err := s.Recv()
				if err != nil {
					return err
				}
				r := env.GetReply()
				if r.GetId() != 77 {
					t.Errorf("the reply is to %d", r.GetId())
				}
				if tt.code != 0 {
					if e := r.GetError(); e.GetCode() != tt.code || !strings.Contains(e.GetMessage(), tt.text) {
						t.Errorf("got %v; want %s: %s", r, tt.code, tt.text)
					}
				} else if c := r.GetTokenCounts(); c == nil || !slices.Equal(c.GetTokens(), tt.want) || c.GetFramingTokens() != core.FramingTokens {
					t.Errorf("got %v; want %v", r, tt.want)
				}
				return s.Send(done(nil))
			}}
			req := coretest.HalfRequest(chat(3))
			if tt.counter != nil {
				req.Counter = tt.counter
			}
			if _, err := p.client(t, &caller.Options{Limits: tt.limits}).Condense(t.Context(), req); err != nil {
				t.Error(err)
			}
		})
	}
}

type panicCounter struct{}

func (panicCounter) Count(...core.Part) int { panic("no") }

// TestCallbackQuota: a plugin that asks too often gets an error, and is cut off if it continues.
func TestCallbackQuota(t *testing.T) {
	c := serve(t, strategy(func(_ context.Context, req *core.Request, _ registry.Env) (*core.Result, error) {
		for i := range 10 {
			req.Counter.Count(core.Text(fmt.Sprint("text ", i)))
		}
		return &core.Result{Messages: req.Messages}, nil
	}), &caller.Options{Limits: caller.Limits{Callbacks: 5}})
	_, err := c.Condense(t.Context(), coretest.HalfRequest(chat(3)))
	if err == nil || !strings.Contains(err.Error(), "count tokens: quota: host: more than 5 callbacks in a call") {
		t.Errorf("got error %v", err)
	}

	p := &peer{condense: func(s stream) error {
		go func() {
			for {
				if _, err := s.Recv(); err != nil {
					return
				}
			}
		}()
		for {
			if err := s.Send(&pb.CondenseResponse{Kind: &pb.CondenseResponse_Callback{Callback: &pb.Callback{}}}); err != nil {
				return err
			}
		}
	}}
	_, err = p.client(t, &caller.Options{Limits: caller.Limits{Callbacks: 5}}).Condense(t.Context(), coretest.HalfRequest(chat(3)))
	if !errors.Is(err, caller.ErrProtocol) || !strings.Contains(err.Error(), "it goes on calling back") {
		t.Errorf("got error %v", err)
	}
}

// TestDoesNotListen: a plugin that asks without end and reads no answer blocks, and
// costs the host nothing.
func TestDoesNotListen(t *testing.T) {
	p := &peer{condense: func(s stream) error {
		big := make([]*pb.CountItem, 10_000)
		for i := range big {
			big[i] = &pb.CountItem{Kind: &pb.CountItem_Messages{Messages: &pb.MessageRange{First: "m1"}}}
		}
		for {
			cb := &pb.Callback{Call: &pb.Callback_CountTokens{CountTokens: &pb.CountTokens{Items: big}}}
			if err := s.Send(&pb.CondenseResponse{Kind: &pb.CondenseResponse_Callback{Callback: cb}}); err != nil {
				return err
			}
		}
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := p.client(t, nil).Condense(ctx, coretest.HalfRequest(chat(3)))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v", err)
	}
}

// TestSlowCounter: the end of a call is noticed while the host counts for it.
func TestSlowCounter(t *testing.T) {
	counter := &tally{slow: make(chan struct{})}
	c := serve(t, strategy(func(_ context.Context, req *core.Request, _ registry.Env) (*core.Result, error) {
		req.Counter.Count(core.Text("x"))
		return nil, errors.New("counted")
	}), nil)
	req := coretest.HalfRequest(chat(3))
	req.Counter = counter
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := c.Condense(ctx, req)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v", err)
	}
	close(counter.slow)
}

func TestLogAndProgress(t *testing.T) {
	var out bytes.Buffer
	var mu sync.Mutex
	var progress []caller.Progress
	opts := &caller.Options{
		Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})),
		Progress: func(_ context.Context, p caller.Progress) {
			mu.Lock()
			defer mu.Unlock()
			progress = append(progress, p)
		},
	}
	c := serve(t, strategy(func(ctx context.Context, req *core.Request, env registry.Env) (*core.Result, error) {
		if env.Logger.Enabled(ctx, slog.LevelDebug) {
			t.Error("debug lines are sent to a host that does not want them")
		}
		env.Logger.DebugContext(ctx, "not sent")
		log := env.Logger.With("step", 1).WithGroup("g").With("a", true)
		log.InfoContext(ctx, "hello\nworld", "b", []int{1, 2}, slog.Group("h", "c", 0.5))
		env.Logger.ErrorContext(ctx, "bad \xff\x1b[31m bytes", "k\x00", "v\u202e")
		core.Progress(ctx, 0.5, "half\nway")
		core.Progress(ctx, -1, "")
		core.Progress(ctx, 7, strings.Repeat("é", 500))
		core.Progress(t.Context(), 1, "to nobody") //nolint:contextcheck // another one is the point
		return &core.Result{Messages: req.Messages}, nil
	}), opts)
	if _, err := c.Condense(t.Context(), coretest.HalfRequest(chat(3))); err != nil {
		t.Fatal(err)
	}
	want := `level=INFO msg="hello world" step=1 g.a=true g.b="[1 2]" g.h.c=0.5
level=ERROR msg="bad �[31m bytes" k=v
`
	if got := out.String(); got != want {
		t.Errorf("got log\n%swant\n%s", got, want)
	}
	if len(progress) != 3 || progress[0] != (caller.Progress{Fraction: 0.5, Text: "half way"}) || progress[1].Fraction != -1 ||
		progress[2].Fraction != 1 || len(progress[2].Text) > 200 {
		t.Errorf("got progress %+v", progress)
	}
}

// TestLogFlood: the excess is dropped and reported.
func TestLogFlood(t *testing.T) {
	var out bytes.Buffer
	opts := &caller.Options{Logger: slog.New(slog.NewTextHandler(&out, nil)), Limits: caller.Limits{LogLines: 10}}
	c := serve(t, strategy(func(ctx context.Context, req *core.Request, env registry.Env) (*core.Result, error) {
		for i := range 100 {
			env.Logger.WarnContext(ctx, "long", "i", i, "x", strings.Repeat("x", 20_000))
		}
		return &core.Result{Messages: req.Messages}, nil
	}), opts)
	if _, err := c.Condense(t.Context(), coretest.HalfRequest(chat(3))); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 11 || !strings.Contains(out.String(), "the rest of this call is dropped") || out.Len() > 10*9<<10 {
		t.Errorf("%d lines of %d bytes", n, out.Len())
	}
}

// TestConfigure: new settings hold from the next call on; the former provider is closed
// when its last call has ended.
func TestConfigure(t *testing.T) {
	type config struct {
		Name string `json:"name"`
	}
	var mu sync.Mutex
	var events []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, s)
	}
	begun, goOn := make(chan struct{}), make(chan struct{})
	s := registry.Define("named", "A test.", func() config { return config{Name: "default"} },
		func(ctx context.Context, c config, _ registry.Env) (core.CondensationProvider, error) {
			switch c.Name {
			case "refused":
				return nil, errors.New("no such name")
			case "away":
				return nil, fmt.Errorf("the database: %w", core.ErrUnavailable)
			case "panics":
				panic("boom")
			case "nil":
				return nil, nil //nolint:nilnil // an author's mistake
			}
			return &named{name: c.Name, life: ctx, note: note, begun: begun, goOn: goOn}, nil
		})
	srv := wire.NewServer(s, nil)
	c := caller.NewClient(connect(t, srv.Register), nil)
	ctx := t.Context()
	req := coretest.HalfRequest(chat(2))
	if err := c.Configure(ctx, raw(`{"name": "slow"}`)); err != nil {
		t.Fatal(err)
	}
	slow := make(chan error)
	go func() {
		_, err := c.Condense(ctx, req)
		slow <- err
	}()
	<-begun
	for settings, want := range map[string]string{
		`{"name": "refused"}`: "no such name",
		`{"name": "away"}`:    "the database: unavailable",
		`{"name": "panics"}`:  "panic: boom at callback_test.go",
		`{"name": "nil"}`:     "opened no provider",
		`{"name": 3}`:         "name: got a JSON number; want string",
		`{`:                   "unexpected EOF",
	} {
		if err := c.Configure(ctx, raw(settings)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v; want %q", settings, err, want)
		}
	}
	if err := c.Configure(ctx, raw(`{"name": "quick"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Condense(ctx, req); err != nil {
		t.Error(err)
	}
	note("go on")
	close(goOn)
	if err := <-slow; err != nil {
		t.Error(err)
	}
	if err := srv.Close(ctx); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{"quick called", "go on", "slow called", "quick closed", "slow closed"}
	if slices.Sort(events[3:]); !slices.Equal(events, want) {
		t.Errorf("got %q; want %q", events, want)
	}
}

type named struct {
	name        string
	life        context.Context //nolint:containedctx // that it lives on is what is tested
	note        func(string)
	begun, goOn chan struct{}
}

func (p *named) Condense(_ context.Context, req *core.Request) (*core.Result, error) {
	if p.name == "slow" {
		close(p.begun)
		<-p.goOn
	}
	if err := p.life.Err(); err != nil {
		return nil, fmt.Errorf("its context has ended: %w", err)
	}
	p.note(p.name + " called")
	return &core.Result{Messages: req.Messages}, nil
}

func (p *named) Close() error {
	p.note(p.name + " closed")
	return nil
}
