package caller_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/wire/caller"
	pb "github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// A scripted model answers with what a test says, and remembers what it was asked.
type scripted struct {
	answer func(ctx context.Context, p *model.Prompt) (*model.Answer, error)
	info   model.Info

	mu    sync.Mutex
	asked []*model.Prompt
}

func (m *scripted) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	m.mu.Lock()
	m.asked = append(m.asked, p)
	m.mu.Unlock()
	return m.answer(ctx, p)
}

func (m *scripted) Info() model.Info { return m.info }

// says returns a model that always says text, for a dollar.
func says(text string) *scripted {
	return &scripted{
		info: model.Info{Name: "scripted", Window: 1000, MaxOutput: 100, Images: true},
		answer: func(context.Context, *model.Prompt) (*model.Answer, error) {
			return &model.Answer{Text: text, Usage: core.Usage{Calls: 1, InputTokens: 50, OutputTokens: 10, CachedTokens: 5, USD: 1}}, nil
		},
	}
}

// withModel returns the options of a host with one model, called cheap.
func withModel(m model.Generator) *caller.Options {
	return &caller.Options{
		Model: func(_ *core.Request, name string) (model.Generator, error) {
			if name != "" && name != "cheap" {
				return nil, fmt.Errorf("there is no language model %q; there is cheap", name)
			}
			return m, nil
		},
		Models: func(*core.Request) iter.Seq2[string, model.Info] {
			return maps.All(map[string]model.Info{"cheap": m.Info()})
		},
	}
}

// asks is a strategy that asks the model of that name and puts its answer in the place of
// everything.
func asks(name string, prompt func(*core.Request) *model.Prompt) registry.Strategy {
	return strategy(func(ctx context.Context, req *core.Request, env registry.Env) (*core.Result, error) {
		m, err := env.Model(name)
		if err != nil {
			return nil, err
		}
		a, err := m.Generate(ctx, prompt(req))
		if err != nil {
			return nil, err
		}
		usage := a.Usage.Add(core.Usage{Calls: 2, InputTokens: 7, USD: 0.5}) // and what it spent itself
		return &core.Result{Messages: []core.Message{coretest.User(core.Text(a.Text))}, Usage: usage}, nil
	})
}

// TestGenerate: a model of the host is asked as one in the same process would be, and the
// host adds up what it cost.
func TestGenerate(t *testing.T) {
	said := says("in short")
	conversation := chat(6)
	extra := core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text("Summarize."), core.Image{MediaType: "image/png", Data: "aGk="}}}
	changed := conversation[4].Clone()
	changed.Parts = []core.Part{core.Text("changed")}
	c := serve(t, asks("cheap", func(req *core.Request) *model.Prompt {
		m := req.Messages
		return &model.Prompt{
			System: "Be brief.", Tools: `[{"name":"t"}]`, Cached: true, MaxOutput: 30,
			Messages: []core.Message{m[0], m[1], m[2], changed, m[5], m[3], extra},
		}
	}), withModel(said))
	res, err := c.Condense(t.Context(), coretest.HalfRequest(conversation))
	if err != nil {
		t.Fatal(err)
	}
	if want := (core.Usage{Calls: 3, InputTokens: 57, OutputTokens: 10, CachedTokens: 5, USD: 1.5}); res.Usage != want {
		t.Errorf("got usage %+v; want %+v: its own and that of the models, nothing twice", res.Usage, want)
	}
	if got := ids(res.Messages); !slices.Equal(got, []string{`["in short"]`}) {
		t.Errorf("got %q", got)
	}
	p := said.asked[0]
	want := []core.Message{conversation[0], conversation[1], conversation[2], changed, conversation[5], conversation[3], extra}
	if p.System != "Be brief." || p.Tools != `[{"name":"t"}]` || !p.Cached || p.MaxOutput != 30 || len(p.Messages) != len(want) {
		t.Fatalf("the model was asked %+v", p)
	}
	for i := range want {
		if p.Messages[i].Role != want[i].Role || !core.EqualParts(p.Messages[i].Parts, want[i].Parts) {
			t.Errorf("message %d: got %v; want %v", i, p.Messages[i], want[i])
		}
	}
}

// TestGenerateErrors: the plugin receives the error of the host's model,
// as if the model were its own, and what it cost counts all the same.
func TestGenerateErrors(t *testing.T) {
	spent := core.Usage{Calls: 1, InputTokens: 9, Unpriced: 1}
	for _, tt := range []struct {
		name  string
		lend  *caller.Options
		ask   string
		err   error
		is    error
		usage core.Usage
		text  string
	}{
		{name: "too long", err: fmt.Errorf("cheap: %w", model.ErrTooLong), is: model.ErrTooLong, usage: spent, text: "longer than the model's window"},
		{name: "no text", err: model.ErrNoText, is: model.ErrNoText, usage: spent, text: "without text"},
		{name: "no key", err: fmt.Errorf("%w: KEY is not set", core.ErrUnavailable), is: core.ErrUnavailable, usage: spent, text: "KEY is not set"},
		{name: "fails", err: errors.New("HTTP 500"), usage: spent, text: "HTTP 500"},
		{name: "unknown", ask: "sheep", text: `there is no language model "sheep"`},
		{name: "no model", lend: &caller.Options{}, is: core.ErrUnavailable, text: "has no language model"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := says("")
			m.answer = func(context.Context, *model.Prompt) (*model.Answer, error) {
				return &model.Answer{Usage: spent}, tt.err
			}
			lend := tt.lend
			if lend == nil {
				lend = withModel(m)
			}
			var seen error
			c := serve(t, strategy(func(ctx context.Context, req *core.Request, env registry.Env) (*core.Result, error) {
				g, err := env.Model(tt.ask)
				if err != nil {
					return nil, err
				}
				_, seen = g.Generate(ctx, &model.Prompt{Messages: req.Messages})
				return nil, seen
			}), lend)
			res, err := c.Condense(t.Context(), coretest.HalfRequest(chat(3)))
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("the host got error %v; want %q", err, tt.text)
			}
			if tt.is != nil && !errors.Is(seen, tt.is) {
				t.Errorf("the plugin got error %v; want one that is %v", seen, tt.is)
			}
			var usage core.Usage
			if res != nil {
				usage = res.Usage
			}
			if usage != tt.usage {
				t.Errorf("got usage %+v; want %+v", usage, tt.usage)
			}
		})
	}
}

func TestGenerateOutsideOfACall(t *testing.T) {
	type none struct{}
	opened := make(chan model.Generator, 1)
	s := registry.Define("test", "A test.", func() none { return none{} },
		func(_ context.Context, _ none, env registry.Env) (core.CondensationProvider, error) {
			m, err := env.Model("cheap")
			opened <- m
			return coretest.Keeps(), err
		})
	c := serve(t, s, withModel(says("hello")))
	m := <-opened
	if _, err := m.Generate(t.Context(), &model.Prompt{}); err == nil || !strings.Contains(err.Error(), "during Condense only") {
		t.Errorf("got error %v", err)
	}
	if got := m.Info(); got.Window != 0 {
		t.Errorf("before any call the host has said %+v", got)
	}
	if _, err := c.Condense(t.Context(), coretest.HalfRequest(chat(3))); err != nil {
		t.Fatal(err)
	}
	want := model.Info{Name: "cheap", Window: 1000, MaxOutput: 100, Images: true}
	if d := cmp.Diff(want, m.Info()); d != "" {
		t.Errorf("what is known of the model: -want +got\n%s", d)
	}
}

// TestGenerateQuota: what one call may have models do is limited, and what it asks for by
// hand is checked.
func TestGenerateQuota(t *testing.T) {
	text := func(role string, words int) *pb.GenerateInput {
		part := &pb.Part{Kind: &pb.Part_Text{Text: []byte(strings.Repeat("word ", words))}}
		return &pb.GenerateInput{Kind: &pb.GenerateInput_Message{Message: &pb.NewMessage{Role: role, Parts: []*pb.Part{part}}}}
	}
	span := func(first, last string) *pb.GenerateInput {
		return &pb.GenerateInput{Kind: &pb.GenerateInput_Messages{Messages: &pb.MessageRange{First: first, Last: last}}}
	}
	const quota, invalid = pb.CallbackError_CODE_QUOTA, pb.CallbackError_CODE_INVALID
	for _, tt := range []struct {
		name   string
		limits caller.Limits
		ask    []*pb.Generate
		code   pb.CallbackError_Code // of the last
		text   string
		wrote  int // most that the last was allowed to write
	}{
		{name: "range", ask: []*pb.Generate{{Input: []*pb.GenerateInput{span("m1", "m3"), text("user", 1)}}}, wrote: 100},
		{name: "less than the model can", ask: []*pb.Generate{{Input: []*pb.GenerateInput{text("user", 1)}, MaxOutputTokens: 20}}, wrote: 20},
		{name: "calls", limits: caller.Limits{ModelCalls: 1}, ask: []*pb.Generate{{Input: []*pb.GenerateInput{text("user", 1)}}, {Input: []*pb.GenerateInput{text("user", 1)}}}, code: quota, text: "more than 1 requests to language models in one call: limits.model_calls of the provider"},
		{name: "input", limits: caller.Limits{ModelInput: 50}, ask: []*pb.Generate{{Input: []*pb.GenerateInput{text("user", 100)}}}, code: quota, text: "more than 50 tokens for models to read"},
		{name: "the conversation many times", limits: caller.Limits{ModelInput: 100}, ask: []*pb.Generate{{Input: slices.Repeat([]*pb.GenerateInput{span("m1", "m3")}, 10_000)}}, code: quota, text: "more than 100 tokens"},
		{name: "output is what is left", limits: caller.Limits{ModelOutput: 15}, ask: []*pb.Generate{{Input: []*pb.GenerateInput{text("user", 1)}}, {Input: []*pb.GenerateInput{text("user", 1)}}}, wrote: 5},
		{name: "output", limits: caller.Limits{ModelOutput: 10}, ask: []*pb.Generate{{Input: []*pb.GenerateInput{text("user", 1)}}, {Input: []*pb.GenerateInput{text("user", 1)}}}, code: quota, text: "more than 10 tokens for models to write"},
		{name: "no input", ask: []*pb.Generate{{}}, code: invalid, text: "no input"},
		{name: "role", ask: []*pb.Generate{{Input: []*pb.GenerateInput{text("system", 1)}}}, code: invalid, text: `role "system"`},
		{name: "unknown message", ask: []*pb.Generate{{Input: []*pb.GenerateInput{span("m9", "")}}}, code: invalid, text: `there is no message "m9"`},
		{name: "unknown kind", ask: []*pb.Generate{{Input: []*pb.GenerateInput{{}}}}, code: invalid, text: "of a kind that this host does not know"},
		{name: "negative", ask: []*pb.Generate{{MaxOutputTokens: -1}}, code: invalid, text: "max_output_tokens: -1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := says("short")
			var last *pb.Reply
			p := &peer{condense: func(s stream) error {
				for range 2 {
					if _, err := s.Recv(); err != nil {
						return err
					}
				}
				for i, g := range tt.ask {
					cb := &pb.Callback{Id: uint64(i), Call: &pb.Callback_Generate{Generate: g}}
					if err := s.Send(&pb.CondenseResponse{Kind: &pb.CondenseResponse_Callback{Callback: cb}}); err != nil {
						return err
					}
					env, err := s.Recv()
					if err != nil {
						return err
					}
					last = env.GetReply()
				}
				return s.Send(done(nil))
			}}
			opts := withModel(m)
			opts.Limits = tt.limits
			if _, err := p.client(t, opts).Condense(t.Context(), coretest.HalfRequest(chat(3))); err != nil {
				t.Fatal(err)
			}
			if e := last.GetError(); e.GetCode() != tt.code || !strings.Contains(e.GetMessage(), tt.text) {
				t.Errorf("got %v; want %s: %s", last, tt.code, tt.text)
			}
			if tt.wrote > 0 && m.asked[len(m.asked)-1].MaxOutput != tt.wrote {
				t.Errorf("it may write %d tokens; want %d", m.asked[len(m.asked)-1].MaxOutput, tt.wrote)
			}
		})
	}
}

// TestGenerateEndsWithTheCall: a model that is being asked stops when the call does, and
// the host is not held up.
func TestGenerateEndsWithTheCall(t *testing.T) {
	call, cancel := context.WithCancel(t.Context())
	m := says("")
	m.answer = func(ctx context.Context, _ *model.Prompt) (*model.Answer, error) {
		cancel() // now that it is being asked
		<-ctx.Done()
		return &model.Answer{Usage: core.Usage{Calls: 1, InputTokens: 3}}, ctx.Err()
	}
	c := serve(t, asks("", func(req *core.Request) *model.Prompt { return &model.Prompt{Messages: req.Messages} }), withModel(m))
	res, err := c.Condense(call, coretest.HalfRequest(chat(3)))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	if res == nil || res.Usage.Calls != 1 {
		t.Errorf("got %+v; want what the model took", res)
	}
}

// TestGenerateInParallel: a provider may ask many models at once; they are limited, and
// none is forgotten.
func TestGenerateInParallel(t *testing.T) {
	m := says("ok")
	running, most := 0, 0
	var mu sync.Mutex
	answer := m.answer
	m.answer = func(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		running--
		mu.Unlock()
		return answer(ctx, p)
	}
	c := serve(t, strategy(func(ctx context.Context, req *core.Request, env registry.Env) (*core.Result, error) {
		g, err := env.Model("")
		if err != nil {
			return nil, err
		}
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				if _, err := g.Generate(ctx, &model.Prompt{Messages: req.Messages}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return &core.Result{Messages: req.Messages}, nil // it does not say what it spent
	}), withModel(m))
	res, err := c.Condense(t.Context(), coretest.HalfRequest(chat(3)))
	if err != nil {
		t.Fatal(err)
	}
	if res.Usage.Calls != 30 || most > 8 {
		t.Errorf("got %d calls, up to %d at once; want 30, at most 8 at once", res.Usage.Calls, most)
	}
}

// estimating is a provider that says what a call would cost.
type estimating struct{ core.ProviderFunc }

func (estimating) EstimateCost(_ context.Context, req *core.Request) (core.Usage, error) {
	if req.Instructions == "fail" {
		return core.Usage{}, fmt.Errorf("no key: %w", core.ErrUnavailable)
	}
	return core.Usage{Calls: 2, InputTokens: len(req.Messages), USD: req.Price.Input}, nil
}

// An estimate of a plugin is what its provider estimates, and the provider does no work for it.
func TestEstimate(t *testing.T) {
	works := core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) {
		return nil, errors.New("it was asked to condense")
	})
	open := func(p core.CondensationProvider) *caller.Client {
		type none struct{}
		return serve(t, registry.Define("test", "A test.", func() none { return none{} },
			func(context.Context, none, registry.Env) (core.CondensationProvider, error) { return p, nil }), nil)
	}
	req := coretest.HalfRequest(chat(6))
	req.Price.Input = 0.5
	if got, err := open(estimating{works}).EstimateCost(t.Context(), req); err != nil || got != (core.Usage{Calls: 2, InputTokens: 6, USD: 0.5}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := open(works).EstimateCost(t.Context(), req); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("one that does not estimate: %v", err)
	}
	req.Instructions = "fail"
	if _, err := open(estimating{works}).EstimateCost(t.Context(), req); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("one that cannot: %v", err)
	}
}

// askingEstimate is a provider whose estimate asks a language model.
type askingEstimate struct {
	core.ProviderFunc
	env registry.Env
}

func (a askingEstimate) EstimateCost(ctx context.Context, _ *core.Request) (core.Usage, error) {
	m, err := a.env.Model("")
	if err == nil {
		_, err = m.Generate(ctx, &model.Prompt{Messages: []core.Message{coretest.User(core.Text("How much?"))}})
	}
	return core.Usage{}, err
}

// An estimate asks no language model: its requests would count against no limit.
func TestEstimateAsksNoModel(t *testing.T) {
	type none struct{}
	c := serve(t, registry.Define("test", "A test.", func() none { return none{} },
		func(_ context.Context, _ none, env registry.Env) (core.CondensationProvider, error) {
			return askingEstimate{nil, env}, nil
		}), &caller.Options{Model: func(*core.Request, string) (model.Generator, error) { return asked{t}, nil }})
	if _, err := c.EstimateCost(t.Context(), coretest.HalfRequest(chat(6))); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("got error %v", err)
	}
}

// asked is a model that must not be asked.
type asked struct{ t *testing.T }

func (asked) Info() model.Info { return model.Info{Name: "asked", Window: 100_000} }

func (a asked) Generate(context.Context, *model.Prompt) (*model.Answer, error) {
	a.t.Error("the model was asked")
	return &model.Answer{Text: "a"}, nil
}
