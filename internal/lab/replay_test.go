package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/testkit"
)

// A said is a message of a session in the form of Claude Code.
type said struct {
	after time.Duration // the message before
	role  string
	text  string
	usage string // of an answer, without braces
}

func recording(name string, all ...said) lab.Item {
	var b strings.Builder
	at, parent := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), "null"
	for i, m := range all {
		at = at.Add(m.after)
		message := map[string]any{"role": m.role, "content": []any{map[string]any{"type": "text", "text": m.text}}}
		if m.role == "assistant" {
			message["id"], message["model"] = fmt.Sprintf("msg_%d", i), "claude-opus-4-6"
			if m.usage != "" {
				message["usage"] = json.RawMessage("{" + m.usage + "}")
			}
		}
		text, err := json.Marshal(message)
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(&b, `{"type":%q,"uuid":"u%d","parentUuid":%s,"sessionId":"s","timestamp":%q,"message":%s}`+"\n", m.role, i, parent, at.Format(time.RFC3339), text)
		parent = fmt.Sprintf("%q", fmt.Sprintf("u%d", i))
	}
	return lab.Item{Name: name + "/s.jsonl", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(b.String())), nil }}
}

func tariff(t *testing.T, name string) lab.Tariff {
	t.Helper()
	out, err := lab.ParseTariff(name)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func replay(t *testing.T, items []lab.Item, tariffs []lab.Tariff, policies ...lab.Policy) *lab.ReplayReport {
	t.Helper()
	r, err := lab.Replay(t.Context(), items, policies, &lab.ReplayOptions{Options: lab.Options{Now: still}, Window: 200_000, Tariffs: tariffs, Fixed: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func played(t *testing.T, r *lab.ReplayReport, policy, tariff string) *lab.Played {
	t.Helper()
	for i := range r.Plays {
		if p := &r.Plays[i]; p.Policy == policy && p.Tariff == tariff {
			return p
		}
	}
	t.Fatalf("%s under %s was not played", policy, tariff)
	return nil
}

// words is a text of about n tokens that nothing else has.
func words(seed, n int) string {
	var b strings.Builder
	for i := range n / 4 {
		_, _ = fmt.Fprintf(&b, "w%d_%d ", seed, i)
	}
	return b.String()
}

// pausing is a session of three requests: the second after a minute, the third after ten.
func pausing() lab.Item {
	return recording("pausing",
		said{0, "user", words(1, 4000), ""}, said{5 * time.Second, "assistant", "One.", `"input_tokens":3,"cache_creation_input_tokens":14000,"cache_read_input_tokens":0`},
		said{time.Minute, "user", words(2, 4000), ""}, said{5 * time.Second, "assistant", "Two.", `"input_tokens":3,"cache_creation_input_tokens":4000,"cache_read_input_tokens":14000`},
		said{10 * time.Minute, "user", "And?", ""}, said{5 * time.Second, "assistant", "Three.", `"input_tokens":3,"cache_creation_input_tokens":18000,"cache_read_input_tokens":0`},
	)
}

// TestReplayUntouched computes the bill of three requests by hand, for each kind of cache.
func TestReplayUntouched(t *testing.T) {
	t.Parallel()
	r := replay(t, []lab.Item{pausing()}, []lab.Tariff{tariff(t, "claude-opus-4-6"), tariff(t, "claude-opus-4-6/1h"), tariff(t, "gpt-5.6-sol"), tariff(t, "gemini-3.1-pro-preview")})
	p := played(t, r, "untouched", "claude-opus-4-6")
	if len(p.Size) != 3 || p.Size[0] < 13_000 || p.Size[2] > 25_000 {
		t.Fatalf("sizes: %v", p.Size)
	}
	a, b, c := float64(p.Size[0]), float64(p.Size[1]), float64(p.Size[2])
	others := played(t, r, "untouched", "gpt-5.6-sol") // whose tokens are larger
	oa, ob, oc := float64(others.Size[0]), float64(others.Size[1]), float64(others.Size[2])
	if ratio := a / oa; ratio < 1.24 || ratio > 1.26 {
		t.Errorf("the same prompt has %v times as many tokens with Claude as with GPT", ratio)
	}
	steps := func(n float64) float64 { return math.Floor(n/128) * 128 }
	const answers = 3 * 10 // tokens at most
	for _, tt := range []struct {
		tariff        string
		cached        []float64
		input, output float64 // dollars per million tokens
		prompts       float64 // in tokens of input
	}{
		{"claude-opus-4-6", []float64{0, a, 0}, 5, 25, 1.25*a + .1*a + 1.25*(b-a) + 1.25*c},
		{"claude-opus-4-6/1h", []float64{0, a, b}, 5, 25, 2*a + .1*a + 2*(b-a) + .1*b + 2*(c-b)},
		{"gpt-5.6-sol", []float64{0, steps(oa), steps(ob)}, 4, 20, 1.25*oa + .1*steps(oa) + 1.25*(ob-steps(oa)) + .1*steps(ob) + 1.25*(oc-steps(ob))},
		{"gemini-3.1-pro-preview", []float64{0, steps(oa), steps(ob)}, 2, 12, oa + .1*steps(oa) + ob - steps(oa) + .1*steps(ob) + oc - steps(ob)},
	} {
		p := played(t, r, "untouched", tt.tariff)
		for i, want := range tt.cached {
			if float64(p.Cached[i]) != want {
				t.Errorf("%s: request %d: %d tokens read, want %v", tt.tariff, i+1, p.Cached[i], want)
			}
		}
		least := tt.prompts * tt.input / 1e6
		if p.USD < least || p.USD > least+answers*tt.output/1e6 {
			t.Errorf("%s: %v dollars, want %v and little more for the answers", tt.tariff, p.USD, least)
		}
	}
	if c := r.Check; c == nil || c.Requests != 2 || c.Within != 2 || c.Agree != 2 || c.Cold != 1 || c.Foretold != 1 {
		t.Errorf("against the recorded numbers: %+v", c)
	}
}

// emptied is a strategy that leaves the last message and one line.
func emptied(_ context.Context, req *core.Request) (*core.Result, error) {
	last := req.Messages[len(req.Messages)-1]
	return &core.Result{Messages: []core.Message{{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("It was said.")}}, last}}, nil
}

// at is a policy that condenses once the prompt has that many tokens.
func at(tokens int, name string, s core.CondensationProvider) lab.Policy {
	return lab.Policy{Name: name, Strategy: &lab.Strategy{Name: name, Provider: s}, Rule: func(int) policy.Rule {
		return policy.Rule{Window: 200_000, Auto: true, Threshold: 100, MaxContextTokens: tokens, MinGain: 1}
	}}
}

// TestReplayEpoch follows one condensation: when it happens, what is paid for it, what is lost, and when it has paid
// for itself.
func TestReplayEpoch(t *testing.T) {
	t.Parallel()
	secret := "The port of the server is 48213 and its name is quiet-harbour."
	all := []said{{0, "user", words(1, 20_000) + "\n" + secret, ""}}
	for i := range 30 {
		text := fmt.Sprintf("Step %d.", i)
		if i == 20 {
			text = "I connect to quiet-harbour on 48213."
		}
		all = append(all, said{5 * time.Second, "assistant", text, ""}, said{5 * time.Second, "user", "Go on.", ""})
	}
	all = append(all, said{5 * time.Second, "assistant", "Done.", ""})
	tariffs := []lab.Tariff{tariff(t, "claude-opus-4-6")}
	r := replay(t, []lab.Item{recording("long", all...)}, tariffs, at(20_000, "all", core.ProviderFunc(emptied)))
	plain, p := played(t, r, "untouched", tariffs[0].Name), played(t, r, "all", tariffs[0].Name)
	if len(p.Epochs) != 1 || p.Epochs[0].Request != 1 || p.Epochs[0].Before != plain.Size[1] || p.Epochs[0].After != p.Size[1] {
		t.Fatalf("epochs %+v of sizes %v", p.Epochs, p.Size)
	}
	if p.Had == nil || *p.Had >= 1 || *plain.Had != 1 {
		t.Errorf("had %v of what was used; untouched %v", p.Had, plain.Had)
	}
	// What is written is the new view; the fixed part is read from the first request on.
	if p.Cached[1] != 10_000 || p.Cached[2] != p.Size[1] {
		t.Errorf("read %v of %v", p.Cached[:3], p.Size[:3])
	}
	// By hand: without it, request 2 reads the old prompt but for its new messages; each later one reads as much more
	// as was removed.
	e := p.Epochs[0]
	before, after := float64(e.Before), float64(e.After)
	extra := .1*10_000 + 1.25*(after-10_000) - .1*before
	want := 0
	for extra > 0 {
		extra -= .1 * (before - after)
		want++
	}
	if e.Paid == nil || *e.Paid != want {
		t.Errorf("paid for itself after %v turns, want %d", e.Paid, want)
	}
	if e.Predicted == nil || math.Ceil(*e.Predicted) != float64(want) {
		t.Errorf("predicted after %v turns, want %d", e.Predicted, want)
	}
	if p.USD >= plain.USD || p.Untouched != plain.USD {
		t.Errorf("%v dollars, untouched %v", p.USD, plain.USD)
	}
}

// TestReplayUnchecked: a program that nothing checks condenses although it returns messages without identifiers and drops what no
// other provider may, and is not asked at every request if it leaves too much.
func TestReplayUnchecked(t *testing.T) {
	t.Parallel()
	all := []said{{0, "user", "Begin.", ""}}
	for i := range 30 {
		all = append(all, said{5 * time.Second, "assistant", words(i, 500), ""}, said{5 * time.Second, "user", fmt.Sprintf("Go on %d.", i), ""})
	}
	all = append(all, said{5 * time.Second, "assistant", "Done.", ""})
	asked := map[string]int{}
	program := func(name string, keep int) lab.Policy {
		p := at(20_000, name, core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
			asked[name]++
			out := &core.Result{}
			for _, m := range req.Messages[max(0, len(req.Messages)-keep):] {
				out.Messages = append(out.Messages, core.Message{Role: m.Role, Parts: m.Parts})
			}
			return out, nil
		}))
		p.Strategy.Unchecked = true
		return p
	}
	tariffs := []lab.Tariff{tariff(t, "claude-opus-4-6")}
	r := replay(t, []lab.Item{recording("long", all...)}, tariffs, program("newest", 2), program("nothing", 1000))
	if p := played(t, r, "newest", tariffs[0].Name); len(p.Epochs) == 0 || p.USD >= p.Untouched || p.Error != "" {
		t.Errorf("epochs %+v, %v of %v dollars, error %q", p.Epochs, p.USD, p.Untouched, p.Error)
	}
	if p := played(t, r, "nothing", tariffs[0].Name); len(p.Epochs) != 0 || asked["nothing"] > 3 {
		t.Errorf("it leaves everything: %d epochs, asked %d times in %d requests", len(p.Epochs), asked["nothing"], p.Requests)
	}
}

// TestReplayFixed: what is lost does not depend on how large the system prompt is that a session does not record, and
// none is none.
func TestReplayFixed(t *testing.T) {
	t.Parallel()
	all := []said{{0, "user", "The port of the server is 48213 and its name is quiet-harbour.", ""}}
	for i := range 30 {
		pause := 5 * time.Second
		if i >= 25 {
			pause = time.Hour // the cache is cold
		}
		all = append(all, said{5 * time.Second, "assistant", fmt.Sprintf("Step %d on quiet-harbour.", i), ""}, said{pause, "user", words(i, 4_000), ""})
	}
	all = append(all, said{5 * time.Second, "assistant", "Done on 48213.", ""})
	items := []lab.Item{recording("fixed", all...)}
	money := lab.Policy{Name: "money", Strategy: &lab.Strategy{Name: "money", Provider: core.ProviderFunc(emptied)}, Money: true, Cold: true, Payback: true}
	names := []string{"claude-opus-4-6", "gpt-5.6-sol"}
	first := map[string]*lab.Played{}
	for _, fixed := range []int{0, 50_000} {
		o := &lab.ReplayOptions{Options: lab.Options{Now: still}, Window: 1_000_000, Tariffs: []lab.Tariff{tariff(t, names[0]), tariff(t, names[1])}, Fixed: fixed}
		r, err := lab.Replay(t.Context(), items, []lab.Policy{money}, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			got, want := played(t, r, "money", name), first[name]
			if want == nil {
				if first[name] = got; len(got.Epochs) == 0 || *got.Had == 1 || got.Size[0] > 100 {
					t.Fatalf("%s: a first request of %d tokens, %d epochs, had %v", name, got.Size[0], len(got.Epochs), *got.Had)
				}
				continue
			}
			if *got.Had != *want.Had || len(got.Epochs) != len(want.Epochs) {
				t.Errorf("%s, %d tokens fixed: had %v in %d epochs; without them %v in %d", name, fixed, *got.Had, len(got.Epochs), *want.Had, len(want.Epochs))
				continue
			}
			for i, e := range got.Epochs {
				if w := want.Epochs[i]; e.Request != w.Request || e.Reason != w.Reason || e.After-fixed != w.After {
					t.Errorf("%s, %d tokens fixed: epoch %+v; without them %+v", name, fixed, e, w)
				}
			}
		}
	}
}

// TestReplayForetells: an agent that asks for an hour at times, and then for five minutes, with another model, is
// foretold request by request.
func TestReplayForetells(t *testing.T) {
	t.Parallel()
	const hour, minutes = `"input_tokens":3,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation":{"ephemeral_1h_input_tokens":%d}`, `"input_tokens":3,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d`
	r := replay(t, []lab.Item{recording("lives",
		said{0, "user", words(1, 4000), ""}, said{5 * time.Second, "assistant", "One.", fmt.Sprintf(hour, 14_000, 0, 14_000)},
		said{20 * time.Minute, "user", "Still there?", ""}, said{5 * time.Second, "assistant", "Two.", fmt.Sprintf(hour, 10, 14_000, 10)},
		said{2 * time.Hour, "user", "And now?", ""}, said{5 * time.Second, "assistant", "Three.", fmt.Sprintf(minutes, 14_020, 0)},
		said{20 * time.Minute, "user", "And now?", ""}, said{5 * time.Second, "assistant", "Four.", fmt.Sprintf(minutes, 14_030, 0)},
		said{time.Minute, "user", "And now?", ""}, said{5 * time.Second, "assistant", "Five.", fmt.Sprintf(minutes, 10, 14_030)},
	)}, []lab.Tariff{tariff(t, "claude-opus-4-6")})
	if c := r.Check; c == nil || c.Requests != 4 || c.Within != 4 || c.Cold != 2 || c.Foretold != 2 {
		t.Errorf("against the recorded numbers: %+v", c)
	}
}

// TestReplayRecorded: a recorded compaction is replayed with its summary, which is paid for.
func TestReplayRecorded(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	tariffs := []lab.Tariff{tariff(t, "claude-opus-4-6")}
	items, err := lab.Find("demo:context") // the only one that has one
	if err != nil {
		t.Fatal(err)
	}
	r := replay(t, items, tariffs, lab.Policy{Name: "recorded", Recorded: true})
	epochs := 0
	for i := range r.Plays {
		p := &r.Plays[i]
		if p.Policy != "recorded" {
			continue
		}
		epochs += len(p.Epochs)
		for _, e := range p.Epochs {
			if e.Reason != "recorded" || e.After >= e.Before || p.Size[e.Request] != e.After || e.Panel == nil || *e.Panel >= 1 || e.Truth == nil || e.Truth.Sentences == 0 {
				t.Errorf("%s: %+v", p.Session, e)
			}
		}
	}
	if epochs == 0 {
		t.Error("no compaction is recorded in the sessions that come with the program")
	}
}

// TestReplaySame: the number of jobs changes nothing.
func TestReplaySame(t *testing.T) {
	t.Parallel()
	items := append(small()[:4], pausing())
	var texts []string
	for _, jobs := range []int{1, 3} {
		r, err := lab.Replay(t.Context(), items, []lab.Policy{at(15_000, "all", core.ProviderFunc(emptied))}, &lab.ReplayOptions{
			Options: lab.Options{Now: still, Jobs: jobs}, Window: 200_000, Tariffs: []lab.Tariff{tariff(t, "gpt-5.6-sol")},
		})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, b.String())
	}
	if texts[0] != texts[1] {
		t.Error("reports of one and of three jobs differ")
	}
}

// TestReplayLinear: a request costs what is new in it, not what came before it.
func TestReplayLinear(t *testing.T) {
	tariffs := []lab.Tariff{tariff(t, "claude-opus-4-6"), tariff(t, "gpt-5.6-sol")}
	testkit.Linear(t, 500, func(n int) func() {
		var all []said
		for i := range n {
			all = append(all, said{time.Second, "user", words(i, 40), ""}, said{time.Second, "assistant", words(-i, 20), ""})
		}
		items := []lab.Item{recording("linear", all...)}
		return func() { replay(t, items, tariffs) }
	})
}

func TestTariffErrors(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"gpt-99":         `model "gpt-99" is not in the table`,
		"gpt-5.6-sol/1h": "no markers that could ask for an hour",
	} {
		if _, err := lab.ParseTariff(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

// TestReplayCache plays again what it has not played before, and nothing else, with the same result.
func TestReplayCache(t *testing.T) {
	t.Parallel()
	played := 0
	counting := lab.Strategy{Name: "counting", Chain: []core.NamedProvider{{Name: "p", Provider: core.ProviderFunc(func(_ context.Context, r *core.Request) (*core.Result, error) {
		played++
		return &core.Result{Messages: r.Messages[max(0, len(r.Messages)-4):]}, nil
	})}}}
	plain := lab.Untouched()
	plain.Key = "program 1"
	ours := lab.Policy{Name: "ours", Key: "program 1 counting", Strategy: &counting, Rule: func(window int) policy.Rule {
		r := policy.Default(window)
		r.MaxContextTokens, r.MinNewTokens = 16_000, 0
		return r
	}}
	opts := lab.ReplayOptions{Options: lab.Options{Now: still, Cache: t.TempDir()}, Window: 200_000, Fixed: 10_000, Tariffs: []lab.Tariff{tariff(t, "claude-opus-4-6")}}
	text := func() string {
		t.Helper()
		r, err := lab.Replay(t.Context(), []lab.Item{pausing()}, []lab.Policy{plain, ours}, &opts)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first, calls := text(), played
	if calls == 0 {
		t.Fatal("nothing was condensed")
	}
	if again := text(); again != first || played != calls {
		t.Errorf("the second replay condensed %d times; the same result: %v", played-calls, again == first)
	}
	ours.Name = "renamed"
	if text(); played != calls {
		t.Error("another name was played again")
	}
	for what, change := range map[string]func(){
		"prices":        func() { opts.Tariffs[0] = tariff(t, "claude-opus-4-6/1h") },
		"window":        func() { opts.Window = 150_000 },
		"system prompt": func() { opts.Fixed = 11_000 },
		"seed":          func() { opts.Seed = 7 },
		"program":       func() { ours.Key = "program 2 counting" },
	} {
		calls = played
		if change(); len(text()) == 0 || played == calls {
			t.Errorf("with other %s nothing was played", what)
		}
	}
}

// A condensation pays for itself by the prices of the model that answers.
func TestPaybackIsOfTheModel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]float64{"claude-sonnet-4-5": 3.125, "claude-opus-5-5": 6.25, "never-heard-of": 3.125} {
		if got := lab.Payback(name); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v turns, want %v", name, got, want)
		}
	}
}
