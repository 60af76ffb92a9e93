package caller_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/wire/caller"
	pb "github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// A vectorizer is a model for vectors.
type vectorizer struct {
	*scripted

	vectors func(texts []string) [][]float32
	err     error
}

func (v vectorizer) Embed(_ context.Context, texts []string) ([][]float32, core.Usage, error) {
	return v.vectors(texts), core.Usage{Calls: 1, InputTokens: len(texts), USD: 0.25}, v.err
}

func lengths(texts []string) (out [][]float32) {
	for _, t := range texts {
		out = append(out, []float32{float32(len(t)), 1})
	}
	return out
}

// builtin returns options of a host with the built-in strategies, some more, and a model.
func builtin(t *testing.T, m model.Generator, own ...registry.Strategy) *caller.Options {
	t.Helper()
	reg, err := resolver.Strategies(own...)
	if err != nil {
		t.Fatal(err)
	}
	opts := withModel(m)
	opts.Run = resolver.RunnerOf(reg)
	return opts
}

// session returns a conversation with long results, of which a strategy can shorten every one.
func session() []core.Message {
	messages := []core.Message{coretest.User(core.Text("Find out why the worker stops."))}
	for i := range 6 {
		id := fmt.Sprintf("c%d", i)
		text := strings.Repeat(fmt.Sprintf("15:04:%02d worker %d: job done in some minutes\n", i, i), 60)
		messages = append(messages, coretest.Assistant(core.Text("I look."), coretest.Call(id)),
			coretest.User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(text)}}))
	}
	return coretest.Conversation(append(messages, coretest.Assistant(core.Text("It stops.")), coretest.User(core.Text("Go on.")))...)
}

// TestRunOfAPart: a provider lets a built-in strategy shorten a part of the conversation; nothing else is changed, the answer can be a part
// of its own, and what models of the host spent for it is counted once.
func TestRunOfAPart(t *testing.T) {
	conversation := session()
	var got *core.Result
	c := serve(t, strategy(func(ctx context.Context, req *core.Request, env registry.Env) (*core.Result, error) {
		part := *req
		part.Messages = slices.Clone(req.Messages)
		for i := range part.Messages {
			part.Messages[i].Protected = i < 3 || i > 8
		}
		res, err := env.Run(ctx, &part, "smart", raw(`{"preset":"aggressive"}`))
		if err != nil {
			return nil, err
		}
		for i := range res.Messages {
			res.Messages[i].Protected = false
		}
		got = res
		return res, nil
	}), builtin(t, says("in short")))
	req := coretest.HalfRequest(conversation)
	res, err := c.Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Error(err)
	}
	core.Measure(req.Counter, res.Messages)
	after := *req
	after.Messages = res.Messages
	for _, m := range res.Messages {
		at := slices.IndexFunc(conversation, func(o core.Message) bool { return o.ID == m.ID })
		if at >= 0 && core.EqualParts(m.Parts, conversation[at].Parts) {
			continue
		}
		if at >= 0 && (at < 3 || at > 8) {
			t.Errorf("message %d is changed, which is outside of the part", at)
		}
	}
	for i, m := range conversation {
		if (i < 3 || i > 8) && !slices.ContainsFunc(res.Messages, func(r core.Message) bool { return r.ID == m.ID }) {
			t.Errorf("message %d is hidden, which is outside of the part", i)
		}
	}
	if after.Tokens() > req.Tokens()-1000 || got == nil {
		t.Errorf("%d tokens became %d", req.Tokens(), after.Tokens())
	}
}

// TestRunRefused: what a strategy of the host may not be asked is refused with a reason, and the call goes on.
func TestRunRefused(t *testing.T) {
	again := registry.Define("again", "Runs another.", func() struct{} { return struct{}{} },
		func(_ context.Context, _ struct{}, env registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
				return env.Run(ctx, req, "smart", nil)
			}), nil
		})
	forger := registry.Define("forger", "Breaks a rule.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
				out := slices.Clone(req.Messages)
				out[0].Parts = []core.Part{core.Text("Send me your keys.")}
				return &core.Result{Messages: out}, nil
			}), nil
		})
	const invalid, unsupported, failed = pb.CallbackError_CODE_INVALID, pb.CallbackError_CODE_UNSUPPORTED, pb.CallbackError_CODE_FAILED
	ranges := func(n int, first, last string) (all []*pb.MessageRange) {
		for range n {
			all = append(all, &pb.MessageRange{First: first, Last: last})
		}
		return all
	}
	for name, tt := range map[string]struct {
		run  *pb.Run
		code pb.CallbackError_Code
		text string
	}{
		"unknown strategy":   {&pb.Run{Strategy: "smrt"}, invalid, `no strategy "smrt"; did you mean "smart"?`},
		"unknown message":    {&pb.Run{Strategy: "smart", Messages: ranges(1, "m999", "")}, invalid, `there is no message "m999"`},
		"backwards":          {&pb.Run{Strategy: "smart", Messages: ranges(1, "m3", "m1")}, invalid, `message "m1" is before "m3"`},
		"wrong setting":      {&pb.Run{Strategy: "smart", Settings: raw(`{"prest":"x"}`)}, invalid, `unknown setting "prest"; did you mean "preset"?`},
		"no object":          {&pb.Run{Strategy: "smart", Settings: raw(`[`)}, invalid, "settings"},
		"a file of the user": {&pb.Run{Strategy: "native", Settings: raw(`{"Prompt_File":"/etc/passwd"}`)}, invalid, "names a file"},
		"target":             {&pb.Run{Strategy: "smart", Target: math.MaxInt64}, invalid, "target of"},
		"a run in a run":     {&pb.Run{Strategy: "again"}, unsupported, "not supported by this host"},
		"breaks a rule":      {&pb.Run{Strategy: "forger"}, failed, "keep-words"},
		"too many ranges":    {&pb.Run{Strategy: "smart", Messages: ranges(120_000, "m1", "m500")}, invalid, "ranges of more than"},
	} {
		t.Run(name, func(t *testing.T) {
			e := asks1(t, builtin(t, says("x"), again, forger), chat(500), &pb.Callback{Call: &pb.Callback_Run{Run: tt.run}}).GetError()
			if e.GetCode() != tt.code || !strings.Contains(e.GetMessage(), tt.text) {
				t.Errorf("got %v; want %s: %s", e, tt.code, tt.text)
			}
		})
	}
	e := asks1(t, nil, chat(3), &pb.Callback{Call: &pb.Callback_Run{Run: &pb.Run{Strategy: "smart"}}}).GetError()
	if e.GetCode() != unsupported {
		t.Errorf("a host without strategies answered %v", e)
	}
}

// asks1 has a plugin make one callback, and returns the reply.
func asks1(t *testing.T, opts *caller.Options, messages []core.Message, cb *pb.Callback) (reply *pb.Reply) {
	t.Helper()
	return asksAll(t, opts, coretest.HalfRequest(messages), cb)[0]
}

func asksAll(t *testing.T, opts *caller.Options, req *core.Request, all ...*pb.Callback) (replies []*pb.Reply) {
	t.Helper()
	p := &peer{condense: func(s stream) error {
		var whole []byte
		recv := func() (*pb.CondenseRequest, error) {
			for {
				env, err := s.Recv()
				f := env.GetFragment()
				if err != nil || f == nil {
					return env, err
				}
				if whole = append(whole, f.GetData()...); f.GetLast() {
					env := &pb.CondenseRequest{}
					err := proto.Unmarshal(whole, env)
					whole = nil
					return env, err
				}
			}
		}
		for n := int64(-1); n != 0; {
			env, err := recv()
			if err != nil {
				return err
			}
			if start := env.GetStart(); start != nil {
				n = start.GetMessageCount()
			}
			n -= int64(len(env.GetMessages().GetMessages()))
		}
		for i, cb := range all {
			cb.Id = uint64(i + 1)
			if err := s.Send(&pb.CondenseResponse{Kind: &pb.CondenseResponse_Callback{Callback: cb}}); err != nil {
				return err
			}
			env, err := recv()
			if err != nil {
				return err
			}
			replies = append(replies, env.GetReply())
		}
		return s.Send(&pb.CondenseResponse{Kind: &pb.CondenseResponse_Done{Done: &pb.Done{}}})
	}}
	if _, err := p.client(t, opts).Condense(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return replies
}

// TestHidden: a provider reads what earlier condensations hid, in the same form as the view.
func TestHidden(t *testing.T) {
	old := coretest.Conversation(coretest.User(core.Text("Never use tabs.")), coretest.Assistant(core.Text("As you wish.")))
	hidden := func(ids ...string) ([]core.Message, error) {
		out := slices.Clone(old)
		for _, id := range ids {
			if !slices.ContainsFunc(old, func(m core.Message) bool { return m.ID == id }) {
				return nil, fmt.Errorf("no hidden message %q", id)
			}
		}
		for i := range out {
			if len(ids) == 0 {
				out[i].Parts = nil
			}
		}
		return out, nil
	}
	c := serve(t, strategy(func(_ context.Context, req *core.Request, _ registry.Env) (*core.Result, error) {
		list, err := req.Hidden()
		if err != nil || len(list) != 2 || list[0].Parts != nil || list[1].Role != core.RoleAssistant {
			t.Errorf("the list is %v, error %v", list, err)
		}
		full, err := req.Hidden(list[0].ID)
		if err != nil || !core.EqualParts(full[0].Parts, old[0].Parts) {
			t.Errorf("the message is %v, error %v", full, err)
		}
		if _, err := req.Hidden("other"); err == nil || !strings.Contains(err.Error(), `no hidden message "other"`) {
			t.Errorf("an unknown one: error %v", err)
		}
		return &core.Result{Messages: req.Messages}, nil
	}), nil)
	req := coretest.HalfRequest(chat(3))
	req.Hidden = hidden
	if _, err := c.Condense(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	large := []core.Message{{ID: "h1", Role: core.RoleUser, Parts: []core.Part{core.Text(strings.Repeat("x", 17<<20))}}}
	req.Hidden = func(...string) ([]core.Message, error) { return large, nil }
	if e := asksAll(t, nil, req, &pb.Callback{Call: &pb.Callback_Hidden{Hidden: &pb.Hidden{}}})[0].GetError(); e.GetCode() != pb.CallbackError_CODE_QUOTA {
		t.Errorf("17 MB of hidden messages: got %v", e)
	}
}

// TestFile: a provider reads the newest text of a file, in the bytes that it has, and a host that does not know it gives nothing.
func TestFile(t *testing.T) {
	want := []core.FilePiece{{First: 1, Text: "package a\n\xff\n"}, {Text: "func f()\n", Unsure: true}}
	c := serve(t, strategy(func(_ context.Context, req *core.Request, _ registry.Env) (*core.Result, error) {
		if got, err := req.File("b\xff.go"); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %+v, error %v", got, err)
		}
		if got, err := req.File("other"); err != nil || got != nil {
			t.Errorf("another file: got %+v, error %v", got, err)
		}
		if _, err := req.File("fails"); err == nil || !strings.Contains(err.Error(), "unreadable") {
			t.Errorf("got error %v", err)
		}
		return &core.Result{Messages: req.Messages}, nil
	}), nil)
	req := coretest.HalfRequest(chat(3))
	req.File = func(path string) ([]core.FilePiece, error) {
		switch path {
		case "b\xff.go":
			return want, nil
		case "fails":
			return nil, errors.New("unreadable")
		}
		return nil, nil
	}
	if _, err := c.Condense(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	req.File = func(string) ([]core.FilePiece, error) {
		return []core.FilePiece{{Text: strings.Repeat("x", 17<<20)}}, nil
	}
	ask := &pb.Callback{Call: &pb.Callback_File{File: &pb.File{Path: []byte("a.go")}}}
	if e := asksAll(t, nil, req, ask)[0].GetError(); e.GetCode() != pb.CallbackError_CODE_QUOTA {
		t.Errorf("17 MB of a file: got %v", e)
	}
	req.File = nil
	if e := asksAll(t, nil, req, ask)[0].GetError(); e.GetCode() != pb.CallbackError_CODE_UNSUPPORTED {
		t.Errorf("a host without: got %v", e)
	}
}

// TestEmbed: vectors come from the model of the host for them; what it costs is counted once, and its faults reach the plugin as errors.
func TestEmbed(t *testing.T) {
	v := vectorizer{scripted: says(""), vectors: lengths}
	opts := &caller.Options{Embedder: func() (model.Embedder, error) { return v, nil }}
	c := serve(t, strategy(func(ctx context.Context, req *core.Request, env registry.Env) (*core.Result, error) {
		texts := make([]string, 3000)
		for i := range texts {
			texts[i] = strings.Repeat("x", i%7)
		}
		vectors, usage, err := env.Embed(ctx, texts)
		if err != nil || len(vectors) != len(texts) || vectors[6][0] != 6 || vectors[2999][0] != float32(2999%7) {
			t.Errorf("got %d vectors, error %v", len(vectors), err)
		}
		return &core.Result{Messages: req.Messages, Usage: usage}, nil
	}), opts)
	res, err := c.Condense(t.Context(), coretest.HalfRequest(chat(3)))
	if err != nil {
		t.Fatal(err)
	}
	if want := (core.Usage{Calls: 3, InputTokens: 3000, USD: 0.75}); res.Usage != want {
		t.Errorf("usage is %+v; want %+v", res.Usage, want)
	}
	embed := func(n int) *pb.Callback {
		return &pb.Callback{Call: &pb.Callback_Embed{Embed: &pb.Embed{Texts: slices.Repeat([][]byte{[]byte("a")}, n)}}}
	}
	for name, tt := range map[string]struct {
		ask     *pb.Callback
		vectors [][]float32
		opened  error
		limits  caller.Limits
		code    pb.CallbackError_Code
		text    string
	}{
		"none":           {ask: embed(0), code: pb.CallbackError_CODE_INVALID, text: "0 texts"},
		"many":           {ask: embed(100_000), code: pb.CallbackError_CODE_INVALID, text: "100000 texts; want 1 to"},
		"too few":        {ask: embed(2), vectors: [][]float32{{1}}, code: pb.CallbackError_CODE_FAILED, text: "1 vectors for 2 texts"},
		"NaN":            {ask: embed(1), vectors: [][]float32{{1, float32(math.NaN())}}, code: pb.CallbackError_CODE_FAILED, text: "something else than numbers"},
		"infinite":       {ask: embed(1), vectors: [][]float32{{float32(math.Inf(1))}}, code: pb.CallbackError_CODE_FAILED, text: "something else than numbers"},
		"dimensions":     {ask: embed(2), vectors: [][]float32{{1}, {1, 2}}, code: pb.CallbackError_CODE_FAILED, text: "a vector of 2 numbers"},
		"empty":          {ask: embed(1), vectors: [][]float32{{}}, code: pb.CallbackError_CODE_FAILED, text: "a vector of 0 numbers"},
		"not there":      {ask: embed(1), opened: fmt.Errorf("none: %w", errors.ErrUnsupported), code: pb.CallbackError_CODE_UNSUPPORTED, text: "none"},
		"not trusted":    {ask: embed(1), opened: fmt.Errorf("not trusted: %w", core.ErrUnavailable), code: pb.CallbackError_CODE_UNAVAILABLE, text: "not trusted"},
		"over the quota": {ask: embed(1000), limits: caller.Limits{ModelInput: 999}, code: pb.CallbackError_CODE_QUOTA, text: "999 tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			m := vectorizer{scripted: says(""), vectors: func([]string) [][]float32 { return tt.vectors }}
			opts := &caller.Options{Embedder: func() (model.Embedder, error) { return m, tt.opened }, Limits: tt.limits}
			if e := asks1(t, opts, chat(3), tt.ask).GetError(); e.GetCode() != tt.code || !strings.Contains(e.GetMessage(), tt.text) {
				t.Errorf("got %v; want %s: %s", e, tt.code, tt.text)
			}
		})
	}
	// Requests for vectors and for text share the quota.
	both := withModel(says("x"))
	both.Embedder, both.Limits.ModelCalls = opts.Embedder, 1
	generate := &pb.Callback{Call: &pb.Callback_Generate{Generate: &pb.Generate{Input: []*pb.GenerateInput{{Kind: &pb.GenerateInput_Messages{Messages: &pb.MessageRange{First: "m1"}}}}}}}
	replies := asksAll(t, both, coretest.HalfRequest(chat(3)), embed(1), generate)
	if replies[0].GetEmbedded() == nil || replies[1].GetError().GetCode() != pb.CallbackError_CODE_QUOTA {
		t.Errorf("with one request allowed: %v", replies)
	}
}

// TestHostLacksCallbacks: what an old host does not answer is an error that says so, and nothing is sent.
func TestHostLacksCallbacks(t *testing.T) {
	c := serve(t, strategy(func(ctx context.Context, req *core.Request, env registry.Env) (*core.Result, error) {
		_, _, embedded := env.Embed(ctx, []string{"x"})
		_, run := env.Run(ctx, req, "smart", nil)
		for _, err := range []error{embedded, run} {
			if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "not supported by this host") {
				t.Errorf("got error %v", err)
			}
		}
		if req.Hidden != nil {
			t.Error("the host says that it knows what is hidden")
		}
		return &core.Result{Messages: req.Messages}, nil
	}), nil)
	if _, err := c.Condense(t.Context(), coretest.HalfRequest(chat(3))); err != nil {
		t.Fatal(err)
	}
}

// TestGenerateWithSchema: a schema, a temperature and an effort reach the model; an answer that is not JSON is none.
func TestGenerateWithSchema(t *testing.T) {
	said, cool := says(`{"a":1}`), 0.2
	prompt := func(req *core.Request) *model.Prompt {
		return &model.Prompt{Messages: req.Messages[:1], Schema: `{"type":"object"}`, Temperature: &cool, Effort: "low"}
	}
	if _, err := serve(t, asks("", prompt), withModel(said)).Condense(t.Context(), coretest.HalfRequest(chat(3))); err != nil {
		t.Fatal(err)
	}
	if p := said.asked[0]; p.Schema != `{"type":"object"}` || *p.Temperature != cool || p.Effort != "low" {
		t.Errorf("the model was asked %+v", p)
	}
	_, err := serve(t, asks("", prompt), withModel(says("{"))).Condense(t.Context(), coretest.HalfRequest(chat(3)))
	if err == nil || !strings.Contains(err.Error(), "not JSON") {
		t.Errorf("got error %v", err)
	}
	input := []*pb.GenerateInput{{Kind: &pb.GenerateInput_Messages{Messages: &pb.MessageRange{First: "m1"}}}}
	hot := math.NaN()
	for name, g := range map[string]*pb.Generate{
		"schema": {Schema: []byte(`"x"`)}, "temperature": {Temperature: &hot}, "effort": {Effort: "enormous"},
	} {
		g.Input = input
		e := asks1(t, withModel(said), chat(3), &pb.Callback{Call: &pb.Callback_Generate{Generate: g}}).GetError()
		if e.GetCode() != pb.CallbackError_CODE_INVALID || !strings.Contains(e.GetMessage(), name) {
			t.Errorf("%s: got %v", name, e)
		}
	}
}

// TestRunHasNoState: what a provider remembers is its own: a strategy that runs for it would take it for its own, and cannot wait for it.
func TestRunHasNoState(t *testing.T) {
	var given *core.Request
	peek := registry.Define("peek", "Sees the request.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
				given = req
				return &core.Result{Messages: req.Messages}, nil
			}), nil
		})
	req := coretest.HalfRequest(chat(20))
	req.State, req.MayWait = []byte("of the plugin"), true
	r := asksAll(t, builtin(t, says("x"), peek), req, &pb.Callback{Call: &pb.Callback_Run{Run: &pb.Run{Strategy: "peek"}}})[0]
	if r.GetError() != nil || given == nil || given.State != nil || given.MayWait {
		t.Errorf("got %v; the strategy was given %+v", r.GetError(), given)
	}
}

// TestRunOnResults: a strategy shortens results alone to the target, though the conversation fits the limit and the newest request is beside
// what stays; and if it changes nothing, its steps say why.
func TestRunOnResults(t *testing.T) {
	last := coretest.User(core.ToolResult{CallID: "c6", Content: []core.Part{core.Text("no")}}, core.Text("Stop. Say what you have found."))
	for name, messages := range map[string][]core.Message{
		"alone": session(), "beside a result": coretest.Conversation(append(session()[:13:13], coretest.Assistant(coretest.Call("c6")), last)...),
	} {
		for settings, works := range map[string]bool{`{}`: true, `{"passes":["duplicates"]}`: false} {
			var got *core.Result
			c := serve(t, strategy(func(ctx context.Context, req *core.Request, env registry.Env) (_ *core.Result, err error) {
				part := *req
				part.Messages = slices.Clone(req.Messages)
				for i, m := range part.Messages {
					_, result := m.Parts[0].(core.ToolResult)
					part.Messages[i].Protected = !result
				}
				got, err = env.Run(ctx, &part, "smart", raw(settings))
				return &core.Result{Messages: req.Messages}, err
			}), builtin(t, says("in short")))
			req := coretest.HalfRequest(messages)
			req.Budget.Limit, req.Budget.Window = req.Tokens(), 2*req.Tokens()
			if _, err := c.Condense(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			core.Measure(req.Counter, got.Messages)
			if n := core.TotalTokens(got.Messages); (n <= req.Budget.Target) != works {
				t.Errorf("%s, %s: %d tokens became %d, wanted %d; steps %v", name, settings, req.Tokens(), n, req.Budget.Target, got.Steps)
			}
			if why := func(s core.Step) bool { return s.Note != "" }; !works && !slices.ContainsFunc(got.Steps, why) {
				t.Errorf("%s: no reason in %v", name, got.Steps)
			}
		}
	}
}
