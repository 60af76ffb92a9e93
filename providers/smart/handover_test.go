package smart_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
)

// A clerk is a model that writes accounts.
type clerk struct {
	answer func(ctx context.Context, p *model.Prompt) (*model.Answer, error)
	info   model.Info
	asks   []*model.Prompt
}

func (c *clerk) Info() model.Info { return c.info }

func (c *clerk) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	c.asks = append(c.asks, p)
	return c.answer(ctx, p)
}

func writes(text string) func(context.Context, *model.Prompt) (*model.Answer, error) {
	return func(context.Context, *model.Prompt) (*model.Answer, error) {
		return &model.Answer{Text: text, Usage: core.Usage{Calls: 1, InputTokens: 100, OutputTokens: 10}}, nil
	}
}

func openHandover(tb testing.TB, settings string, gen model.Generator) core.CondensationProvider {
	tb.Helper()
	env := registry.Env{}
	if gen != nil {
		env.Model = func(string) (model.Generator, error) { return gen, nil }
	}
	p, err := smart.Handover().Open(tb.Context(), json.RawMessage(settings), env)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// turns are n turns of a user, each with a call whose result is long.
func turns(n int) []core.Message {
	var m []core.Message
	for i := range n {
		m = append(m, coretest.User(core.Text(fmt.Sprintf("Question %d.", i))))
		m = append(m, tool(strconv.Itoa(i), "bash", fmt.Sprintf(`{"command":"run %d"}`, i), code(i, 1500))...)
		m = append(m, coretest.Assistant(core.Text(fmt.Sprintf("Answer %d.", i))))
	}
	return coretest.Conversation(m...)
}

// TestHandoverConforms: whatever the conversation, the result of the strategy breaks no rule.
func TestHandoverConforms(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	coretest.Run(t, func(t *testing.T) core.CondensationProvider {
		t.Helper()
		return openHandover(t, `{"unknown": 1}`, &clerkAlways{"## Done\n- the work is done\n## Open\n- more of it"})
	})
}

// A clerkAlways is safe for concurrent use.
type clerkAlways struct{ text string }

func (c *clerkAlways) Info() model.Info { return model.Info{Name: "clerk", Window: 1 << 20} }

func (c *clerkAlways) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return writes(c.text)(ctx, p)
}

// TestHandoverHasBoth: the result is on target and begins with the account; verbatim parts follow.
func TestHandoverHasBoth(t *testing.T) {
	t.Parallel()
	gen := &clerk{info: model.Info{Name: "clerk", Window: 1 << 20}, answer: writes("## Request\n- Question 3.\n## Done\n- run 4 is done, run 99 and lib/nowhere.go too\n")}
	req := coretest.HalfRequest(turns(8))
	res := condense(t, openHandover(t, `{}`, gen), req)
	text := textOf(res.Messages[0])
	if res.Messages[0].Kind != core.KindSummary || res.Messages[0].Role != core.RoleUser || !strings.Contains(text, "## Request\n1. Question 3.") {
		t.Errorf("the first message is %s", text)
	}
	if !strings.Contains(text, "99 [not in the history] and lib/nowhere.go [not in the history]") {
		t.Errorf("what was invented is not marked in %s", text)
	}
	if n := sum(res.Messages); n > req.Budget.Room() {
		t.Errorf("%d tokens are left, and %d are allowed", n, req.Budget.Room())
	}
	if rest := textOf(res.Messages[1:]...); !strings.Contains(rest, "Question 0.") || !strings.Contains(rest, "Answer 7.") {
		t.Error("no verbatim parts follow")
	}
	if res.Usage.Calls != 1 || len(res.Steps) == 0 || !strings.Contains(res.Steps[0].Note, "2 of ") || strings.Contains(res.Steps[0].Note, "nowhere") {
		t.Errorf("the report says %+v", res.Steps[0])
	}
	if p := gen.asks[0]; len(p.Messages) != 2 || !strings.Contains(textOf(p.Messages[0]), "Question 0.") || p.MaxOutput <= 0 {
		t.Errorf("the request has %d messages", len(p.Messages))
	}
}

// TestHandoverCitesWhatCanBeRecalled: an account has handles, unless the agent cannot recall by them.
func TestHandoverCitesWhatCanBeRecalled(t *testing.T) {
	t.Parallel()
	gen := &clerk{info: model.Info{Window: 1 << 20}, answer: writes("## Done\n- \"This is not a quote of three words\" and `run 3`\n")}
	req := coretest.HalfRequest(turns(8))
	first := condense(t, openHandover(t, `{"unknown": 1}`, gen), req)
	if !strings.Contains(textOf(first.Messages[0]), "` h:") {
		t.Errorf("no handle in %s", textOf(first.Messages[0]))
	}
	for i := range first.Messages {
		if first.Messages[i].ID == "" {
			first.Messages[i].ID = fmt.Sprintf("new%d", i)
		}
	}
	for _, messages := range [][]core.Message{req.Messages, first.Messages} {
		next := coretest.HalfRequest(messages)
		next.NoRecall = true
		if text := textOf(condense(t, openHandover(t, `{"unknown": 1}`, gen), next).Messages[0]); strings.Contains(text, " h:") || !strings.Contains(text, "run 3") {
			t.Errorf("handles that lead nowhere in %s", text)
		}
	}
}

// TestHandoverKeepsTheUsersWords: what the user said stands whole and in order beside an account that repeats every word of it.
func TestHandoverKeepsTheUsersWords(t *testing.T) {
	t.Parallel()
	said := func(i int) string {
		return fmt.Sprintf("Move service%c to port %d, and never touch config%c.toml.", 'A'+i, 7000+i, 'A'+i)
	}
	var m []core.Message
	account := "## Request\n"
	for i := range 20 {
		m = append(m, coretest.User(core.Text(said(i))))
		m = append(m, tool(strconv.Itoa(i), "bash", fmt.Sprintf(`{"command":"run %d"}`, i), code(i, 900))...)
		m = append(m, coretest.Assistant(core.Text(fmt.Sprintf("Answer %d.", i))))
		account += "- " + said(i) + "\n## Done\n- service" + string(rune('A'+i)) + " was moved, as was asked for; not checked\n## Request\n"
	}
	req := coretest.Request(coretest.Conversation(m...), 2500)
	res := condense(t, openHandover(t, `{"unknown": 1}`, &clerk{info: model.Info{Window: 1 << 20}, answer: writes(account)}), req)
	if !strings.Contains(textOf(res.Messages[0]), "# Account of the work so far") {
		t.Fatal("there is no account")
	}
	rest := textOf(res.Messages[1:]...)
	for i := range 20 {
		_, after, found := strings.Cut(rest, said(i))
		if rest = after; !found {
			t.Fatalf("%q is missing or out of order", said(i))
		}
	}
}

// TestHandoverBesideManyWords: where an account does not fit beside what the user said, a third of the room is left to it.
func TestHandoverBesideManyWords(t *testing.T) {
	t.Parallel()
	var m []core.Message
	account := "## Done\n"
	for i := range 40 {
		m = append(m, coretest.User(core.Text(fmt.Sprintf("Move service%c to port %d, and never touch config%c.toml.", 'A'+i, 7000+i, 'A'+i))))
		m = append(m, tool(strconv.Itoa(i), "bash", fmt.Sprintf(`{"command":"run %d"}`, i), code(i, 300))...)
		account += fmt.Sprintf("- run %d was made and its result is what had to be expected; not checked\n", i)
	}
	req := coretest.Request(coretest.Conversation(append(m, coretest.Assistant(core.Text("Done.")))...), 1400)
	res := condense(t, openHandover(t, `{"unknown": 1, "share": 0.7}`, &clerk{info: model.Info{Window: 1 << 20}, answer: writes(account)}), req)
	text := textOf(res.Messages...)
	if n, said := strings.Count(text, "was made and"), strings.Count(text, "Move service"); n < 10 || n > 30 || said != 40 {
		t.Errorf("%d of 40 items of the account and %d of 40 messages of the user stay", n, said)
	}
}

// TestHandoverSmartKnowsTheAccount: what the account repeats is not kept a second time, and what it names without quoting it comes first.
func TestHandoverSmartKnowsTheAccount(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	named := func(i int) string { return fmt.Sprintf("serviceUnit%c%c", 'A'+i/10, 'A'+i%10) }
	said := func(i int) string {
		return fmt.Sprintf("the unit of zeb%c%c was slow because of its retries", 'a'+i/10, 'a'+i%10)
	}
	var m []core.Message
	m = append(m, coretest.User(core.Text("Find out what the services do.")))
	for i := range 80 {
		m = append(m, tool(strconv.Itoa(i), "bash", fmt.Sprintf(`{"command":"describe %d"}`, i),
			text(i, 400)+fmt.Sprintf("\n%s rotates ledgers every %d minutes for accounting\n", named(i), 100+i)+text(i+100, 400))...)
		m = append(m, coretest.Assistant(core.Text("So "+said(i)+".")))
	}
	m = append(m, coretest.Assistant(core.Text("All services are described.")))
	req := coretest.Request(coretest.Conversation(m...), 4000)
	shown := func(i int) string { return fmt.Sprintf("%s rotates ledgers every %d minutes", named(i), 100+i) }
	after := func(p core.CondensationProvider) string { return textOf(condense(t, p, req).Messages...) }
	without := after(open(t, `{}`))
	told, about := 0, 0 // what smart keeps by itself, and what it does not
	for !strings.Contains(without, said(told)) {
		told++
	}
	for strings.Contains(without, shown(about)) {
		about++
	}
	repeats, wanted := said(told), shown(about)
	gen := &clerk{info: model.Info{Name: "clerk", Window: 1 << 20}, answer: writes("## Failures\n- " + repeats + "\n## Open\n- " + named(about) + " is broken\n")}
	with := after(openHandover(t, `{}`, gen))
	if n := strings.Count(with, repeats); n != 1 {
		t.Errorf("what the account says is there %d times", n)
	}
	if !strings.Contains(with, wanted) {
		t.Errorf("%q is missing: the account names it without saying it", wanted)
	}
}

// TestHandoverGoesOnToSmart: without a model, and with one that fails in whatever way, the chain goes on to smart and says why.
func TestHandoverGoesOnToSmart(t *testing.T) {
	t.Parallel()
	whole := model.Info{Window: 1 << 20} // the conversation fits into one call
	fails := func(err error) model.Generator {
		return &clerk{info: whole, answer: func(context.Context, *model.Prompt) (*model.Answer, error) {
			return &model.Answer{Usage: core.Usage{Calls: 1}}, err
		}}
	}
	lies := "## Files\n"
	for i := range 20 {
		lies += fmt.Sprintf("- pkg/invented%d/file%d.go\n", i, i)
	}
	for _, tt := range []struct {
		name  string
		gen   model.Generator
		want  string // the reason
		out   core.Outcome
		spent int
	}{
		{"no model", nil, "no model to write an account", core.OutcomeSkipped, 0},
		{"no key", fails(fmt.Errorf("no key: %w", core.ErrUnavailable)), "no key", core.OutcomeSkipped, 1},
		{"error", fails(errors.New("500 oh no")), "500 oh no", core.OutcomeFailed, 1},
		{"says nothing", &clerk{info: whole, answer: writes(" \n")}, "without text", core.OutcomeFailed, 1},
		{"only thinks", &clerk{info: whole, answer: writes("<think>hm</think>")}, "without text", core.OutcomeFailed, 1},
		{"only headings", &clerk{info: whole, answer: writes("## Done\n## Open\n")}, "wrote no account", core.OutcomeFailed, 1},
		{"invents", &clerk{info: whole, answer: writes(lies)}, "the account is refused: 20 of 20", core.OutcomeFailed, 1},
		{"nothing at all", &clerk{info: whole, answer: func(context.Context, *model.Prompt) (*model.Answer, error) { return nil, nil }}, "neither an answer", core.OutcomeFailed, 0},
		{"panics", &clerk{info: whole, answer: func(context.Context, *model.Prompt) (*model.Answer, error) { panic("oh") }}, "oh", core.OutcomeFailed, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			chain, err := core.NewChain([]core.NamedProvider{{Name: "handover", Provider: openHandover(t, `{}`, tt.gen)}, {Name: "smart", Provider: open(t, `{}`)}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := chain.Run(t.Context(), coretest.HalfRequest(turns(8)))
			if err != nil {
				t.Fatal(err)
			}
			first, last := res.Attempts[0], res.Attempts[len(res.Attempts)-1]
			if first.Outcome != tt.out || !strings.Contains(first.Reason, tt.want) || first.Usage.Calls != tt.spent {
				t.Errorf("handover: %s, %q, %d calls", first.Outcome, first.Reason, first.Usage.Calls)
			}
			if last.Provider != "smart" || last.Outcome != core.OutcomeApplied {
				t.Errorf("smart: %s, %s", last.Outcome, last.Reason)
			}
			if strings.Contains(first.Reason, "invented1") {
				t.Error("the reason repeats what the model wrote")
			}
		})
	}
}

// TestHandoverWithAFlood: an answer that is far too long takes no more than its share.
func TestHandoverWithAFlood(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	gen := &clerk{answer: writes("## Done\n" + strings.Repeat("- it works and it was checked in every way that there is\n- another\n", 30_000))}
	req := coretest.HalfRequest(turns(8))
	res := condense(t, openHandover(t, `{}`, gen), req)
	if n, most := res.Messages[0].Tokens, req.Budget.Room()/4+20; n > most {
		t.Errorf("the account has %d tokens, and %d are allowed", n, most)
	}
}

// TestHandoverWithAModelThatHangs: the end of a context ends the work.
func TestHandoverWithAModelThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gen := &clerk{answer: func(ctx context.Context, _ *model.Prompt) (*model.Answer, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := openHandover(t, `{}`, gen).Condense(ctx, coretest.HalfRequest(turns(8))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// TestHandoverByPrefix: with request prefix the request is the agent's own with one message more, and nothing else, so that it is read from
// the cache; the estimate counts it once.
func TestHandoverByPrefix(t *testing.T) {
	t.Parallel()
	gen := &clerk{info: model.Info{Name: "clerk", Window: 1 << 20, Price: model.Price{Input: 1, Output: 5, CacheRead: 0.1}}, answer: writes("## Done\n- run 1\n")}
	req := coretest.HalfRequest(turns(8))
	req.System, req.Tools = "You are an agent.", `[{"name":"bash"}]`
	p := openHandover(t, `{"request": "prefix"}`, gen)
	u, err := core.EstimateCost(t.Context(), p, req)
	if err != nil || u.Calls != 1 || u.USD <= 0 || len(gen.asks) != 0 {
		t.Errorf("estimate: %+v, %v, asked %d times", u, err, len(gen.asks))
	}
	condense(t, p, req)
	got := gen.asks[0]
	if got.System != req.System || got.Tools != req.Tools || !got.Cached || len(got.Messages) != len(req.Messages)+1 {
		t.Fatalf("the request has %d messages, want %d", len(got.Messages), len(req.Messages)+1)
	}
	for i := range req.Messages {
		if m := (core.Message{Role: req.Messages[i].Role, Parts: req.Messages[i].Parts}); !m.Equal(got.Messages[i]) {
			t.Fatalf("message %d of the request is not the agent's", i)
		}
	}
}

// TestHandoverInParts: what is longer than the window of a small model is read in parts, each bringing the account up to date.
func TestHandoverInParts(t *testing.T) {
	t.Parallel()
	gen := &clerk{info: model.Info{Name: "small", Window: 4000}}
	gen.answer = func(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
		return writes(fmt.Sprintf("## Done\n- Question %d.\n", len(gen.asks)))(ctx, p)
	}
	req := coretest.Request(turns(40), 6000)
	res := condense(t, openHandover(t, `{"tokens": 400}`, gen), req)
	if len(gen.asks) < 2 {
		t.Fatalf("the model was asked %d times", len(gen.asks))
	}
	for k := range gen.asks {
		if !strings.Contains(textOf(res.Messages[0]), fmt.Sprintf("Question %d.", k+1)) {
			t.Errorf("what part %d says is gone", k+1)
		}
		n := 0
		for _, m := range gen.asks[k].Messages {
			n += core.MessageTokens(req.Counter, m)
		}
		if n > 4000 {
			t.Errorf("request %d has %d tokens", k+1, n)
		}
	}
}

// TestHandoverReadsTwiceRatherThanLess: what just does not fit into the window of the model is read in two calls, whole.
func TestHandoverReadsTwiceRatherThanLess(t *testing.T) {
	t.Parallel()
	req := coretest.HalfRequest(turns(8))
	gen := &clerk{info: model.Info{Name: "small", Window: sum(req.Messages) * 4 / 5}, answer: writes("## Done\n- Question 3.\n")}
	condense(t, openHandover(t, `{"tokens": 400}`, gen), req)
	read := ""
	for _, p := range gen.asks {
		read += textOf(p.Messages[0])
	}
	if n := strings.Count(read, "left out here"); n > 0 {
		t.Errorf("%d results were cut", n)
	}
	if len(gen.asks) != 2 {
		t.Errorf("%d calls, want 2", len(gen.asks))
	}
}

// TestHandoverAsksForWhatFits: the next account is asked for what fits beside the one before, so that its items need not go.
func TestHandoverAsksForWhatFits(t *testing.T) {
	t.Parallel()
	step := func(i int) string {
		return fmt.Sprintf("step %c%c was made and its result is what had to be expected", 'a'+i/20, 'a'+i%20)
	}
	full := "## Files\n"
	for i := range 70 {
		full += "- " + step(i) + "\n"
	}
	gen := &clerk{info: model.Info{Window: 1 << 20}, answer: writes(full)}
	p := openHandover(t, `{"unknown": 1}`, gen)
	req := coretest.Request(turns(8), 3000)
	first := condense(t, p, req)
	for i := range first.Messages {
		first.Messages[i].ID = fmt.Sprintf("new%d", i)
	}
	before := first.Messages[0].Tokens
	gen.answer = writes("## Files\n- run 6 is to be made again\n")
	next := coretest.Conversation(tool("next", "bash", `{"command":"run 70"}`, code(70, 3000))...)
	for i := range next {
		next[i].ID = fmt.Sprintf("next%d", i)
	}
	second := condense(t, p, coretest.Request(append(first.Messages, next...), 3000))
	largest := 3000 * 6 / 10
	if asked := gen.asks[1].MaxOutput; before < largest/2 || asked > largest-before+20 || asked < largest/4 {
		t.Errorf("an account of %d of %d tokens stands, and %d more are asked for", before, largest, asked)
	}
	text := textOf(second.Messages[0])
	for i := range 70 {
		if !strings.Contains(text, step(i)) {
			t.Errorf("%q is gone", step(i))
		}
	}
}

// TestHandoverOverFiveRounds: facts that stay true stay, whether the model follows its instructions, writes everything again and
// forgets a third,
// or withdraws all it can; what it invents is marked in every round, and what changed is named.
func TestHandoverOverFiveRounds(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const rounds, each = 5, 8
	fact := func(n int) string {
		return fmt.Sprintf("service s%d listens on port %d and is configured in conf/s%d.yaml", n, 7000+n, n)
	}
	shown := regexp.MustCompile(`service s(\d+) listens on port \d+ and is configured in conf/s\d+\.yaml`)
	for name, answer := range map[string]func(round int, p *model.Prompt) string{
		"follows": func(_ int, p *model.Prompt) string {
			return "## Files\n- " + strings.Join(shown.FindAllString(textOf(p.Messages[0]), -1), "\n- ")
		},
		"forgets": func(round int, p *model.Prompt) string {
			out := "## Files\n"
			for i, f := range shown.FindAllString(textOf(p.Messages...), -1) {
				if i >= each || round == 0 || i%3 != 0 {
					out += "- " + f + "\n"
				}
			}
			for _, f := range shown.FindAllString(textOf(p.Messages[0]), -1) {
				out += "- " + f + "\n"
			}
			return out
		},
		"withdraws": func(round int, p *model.Prompt) string {
			out := "## Files\n- " + strings.Join(shown.FindAllString(textOf(p.Messages[0]), -1), "\n- ") + "\n"
			if round == rounds-1 {
				for n := range 60 {
					out += fmt.Sprintf("CHANGED %d: nothing of this matters\n", n+1)
				}
			}
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gen := &clerk{info: model.Info{Name: "clerk", Window: 1 << 20}}
			round := 0
			gen.answer = func(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
				text := answer(round, p)
				text += fmt.Sprintf("\n## Done\n- invented/path%d.go was written in %d ms\n- The user said \"I love the number %d dearly\"\n", round, 990_000+round, round)
				return writes(text)(ctx, p)
			}
			p := openHandover(t, `{"tokens": 4000, "share": 0.8}`, gen)
			m := coretest.Conversation(coretest.User(core.Text("Describe all services. Never restart one.")))
			n := 0
			for ; round < rounds; round++ {
				for range each {
					id := fmt.Sprintf("r%d", n)
					for _, x := range coretest.Conversation(join(tool(id, "bash", fmt.Sprintf(`{"command":"describe s%d"}`, n), fact(n)+"\n"+text(n, 2500)))...) {
						x.ID = fmt.Sprintf("%s-%s", id, x.ID)
						m = append(m, x)
					}
					n++
				}
				m = append(m, core.Message{ID: fmt.Sprintf("said%d", round), Role: core.RoleAssistant, Parts: []core.Part{core.Text("Go on.")}})
				req := coretest.Request(m, 5500)
				core.Measure(req.Counter, req.Messages)
				res := condense(t, p, req)
				m = res.Messages
				for i := range m { // a host gives new messages IDs
					if m[i].ID == "" {
						m[i].ID = fmt.Sprintf("new%d-%d", round, i)
					}
				}
				if sent := textOf(gen.asks[round].Messages[0]); round > 0 && strings.Contains(sent, "describe s0") {
					t.Errorf("round %d: the model is shown again what the account covers", round)
				}
			}
			accounts := 0
			said := ""
			for i := range m {
				if text := textOf(m[i]); strings.Contains(text, "# Account of the work so far") {
					accounts++
					said = text
				}
			}
			if accounts != 1 {
				t.Fatalf("there are %d accounts", accounts)
			}
			kept := 0
			for k := range n {
				if strings.Contains(said, fact(k)) {
					kept++
				}
			}
			want := 0.98
			if name == "withdraws" { // a third, and each is named
				want = 0.6
				if c := strings.Count(said, " — now item "); c == 0 || c > n/3+2 {
					t.Errorf("%d changed items are named in %s", c, said)
				}
			}
			if share := float64(kept) / float64(n); share < want {
				t.Errorf("%.2f of %d facts are kept", share, n)
			}
			for k := range rounds {
				for _, invented := range []string{fmt.Sprintf("invented/path%d.go", k), strconv.Itoa(990_000 + k), fmt.Sprintf("I love the number %d dearly", k)} {
					if i := strings.Index(said, invented); i >= 0 && !strings.HasPrefix(said[i+len(invented):], " [not in the history]") {
						t.Errorf("%q is not marked", invented)
					}
				}
			}
			if strings.Contains(said, `"I love`) {
				t.Error("an invented quote is a quote")
			}
			if all := textOf(m...); !strings.Contains(all, "Never restart one.") {
				t.Error("the user's rule is gone")
			}
		})
	}
}

// TestSmartKeepsAnAccount: where no model can be asked any more, smart keeps the account that is there.
func TestSmartKeepsAnAccount(t *testing.T) {
	t.Parallel()
	gen := &clerk{answer: writes("## Constraints\n- Question 3.\n")}
	res := condense(t, openHandover(t, `{}`, gen), coretest.HalfRequest(turns(8)))
	for i := range res.Messages {
		if res.Messages[i].ID == "" {
			res.Messages[i].ID = fmt.Sprintf("new%d", i)
		}
	}
	next := condense(t, open(t, `{}`), coretest.HalfRequest(res.Messages))
	if !res.Messages[0].Equal(next.Messages[0]) {
		t.Errorf("the account became %s", textOf(next.Messages[0]))
	}
}
