package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/testkit/misbehaving"
	"github.com/condensehq/condense/registry"
)

// TestSoakHistories plays random histories turn by turn through Manage, with truncation,
// smart, providers that break rules and providers that change messages at random, and undoes
// everything at the end. The result of each turn is checked by code
// that shares no code with the rules of package core. There are 2,000 histories (-short: 100); with
// CONDENSE_SOAK_HISTORIES that many, from CONDENSE_SOAK_FIRST on. A history depends on its
// number alone.
func TestSoakHistories(t *testing.T) {
	usual := uint64(2000)
	if testing.Short() {
		usual = 100
	}
	count, first := soakNumber(t, "CONDENSE_SOAK_HISTORIES", usual), soakNumber(t, "CONDENSE_SOAK_FIRST", 0)
	release := make(chan struct{})
	defer close(release)
	h, profiles := soakHost(t, release)
	var (
		next   atomic.Uint64
		sums   soakSums
		failed atomic.Bool
		wg     sync.WaitGroup
		begun  = time.Now()
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := next.Add(1) - 1; n < count && !failed.Load(); n = next.Add(1) - 1 {
				p := &soakPlay{Rand: rand.New(rand.NewPCG(first+n, 1)), host: h, sums: &sums}
				if err := p.play(t.Context(), profiles); err != nil {
					failed.Store(true)
					t.Errorf("history %d: %v\nagain: CONDENSE_SOAK_HISTORIES=1 CONDENSE_SOAK_FIRST=%d go test ./test/runtime -run '^TestSoakHistories$'", first+n, err, first+n)
				}
				if n%1_000_000 == 999_999 {
					t.Logf("%d histories in %v", n+1, time.Since(begun).Round(time.Second))
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d histories in %v on %d processors: %d turns, %d condensed, %d above every limit, %d undone",
		count, time.Since(begun).Round(time.Millisecond), runtime.GOMAXPROCS(0), sums.turns.Load(), sums.acted.Load(), sums.floors.Load(), sums.undone.Load())
	if count >= 2000 && (sums.acted.Load() == 0 || sums.undone.Load() == 0 || sums.floors.Load() == 0) {
		t.Error("something of what is checked never happened")
	}
}

type soakSums struct{ turns, acted, floors, undone atomic.Int64 }

func soakNumber(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// A soakProfile is a profile, and whether its chain names truncation as the last provider.
type soakProfile struct {
	name      string
	truncates bool
}

// soakHost opens a host with a profile for every chain, window and rule.
func soakHost(t *testing.T, release <-chan struct{}) (*condense.Host, []soakProfile) {
	t.Helper()
	v := config.Values{Tuning: config.Tuning{Tokenizer: new("chars4")}, Profiles: map[string]config.ProfileValues{}, Providers: map[string]config.ProviderValues{
		"half":     {Strategy: "slidingwindow", Settings: []byte(`{"mode":"half"}`)},
		"recent":   {Strategy: "slidingwindow", Settings: []byte(`{"mode":"recent"}`)},
		"middle":   {Strategy: "slidingwindow", Settings: []byte(`{"mode":"middle_out"}`)},
		"lossless": {Strategy: "smart", Settings: []byte(`{"preset":"lossless"}`)},
		"meddler":  {Strategy: "meddler"},
	}}
	chains := [][]string{
		{},
		{"half"},
		{"recent"},
		{"middle"},
		{"meddler"},
		{"meddler", "half"},
		{"half", "truncation"},
		{"meddler", "meddling", "middle"},
		{"lossless"},
		{"smart"},
		{"meddler", "smart"},
	}
	v.Providers["meddling"] = config.ProviderValues{Strategy: "meddler"}
	for _, fault := range quickFaults(release) {
		if misbehaving.All(release)[fault].Name == "KeepsRequest" {
			continue // which depends on other histories; the tests of the chain have it
		}
		name := fmt.Sprint("fault", fault)
		v.Providers[name] = config.ProviderValues{Strategy: "misbehaver", Settings: fmt.Appendf(nil, `{"fault":%d}`, fault)}
		chains = append(chains, [][]string{{name}, {name, "half"}, {"meddler", name}}[fault%3])
	}
	var profiles []soakProfile
	for i, chain := range chains {
		for _, window := range []int{300, 700, 1500, 4000, 12000} {
			for kind, change := range map[string]func(*config.ProfileValues){
				"":      func(*config.ProfileValues) {},
				"off":   func(p *config.ProfileValues) { p.Auto = new(false) },
				"early": func(p *config.ProfileValues) { p.Threshold, p.MinNewTokens = new(20.0), new(config.Amount{}) },
				"roo":   func(p *config.ProfileValues) { p.Preset, p.MaxOutput = "roo", new(window/10) },
			} {
				p := config.ProfileValues{Window: new(window), Tuning: config.Tuning{Chain: chain}}
				change(&p)
				name := fmt.Sprint(i, "-", window, kind)
				v.Profiles[name] = p
				profiles = append(profiles, soakProfile{name, len(chain) == 0 || chain[len(chain)-1] == condense.Truncation})
			}
		}
	}
	slices.SortFunc(profiles, func(a, b soakProfile) int { return strings.Compare(a.name, b.name) })
	v.DefaultProfile = profiles[0].name
	own := []registry.Strategy{misbehaver(release), meddler()}
	c, err := config.New(v, config.Options{Builtin: []string{"smart"}})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, &condense.Options{Config: c, Strategies: own}), profiles
}

// meddler is a strategy that hides, shortens, omits, adds, swaps and repeats messages,
// in about half of its answers so that no rule is broken. The same request gets the same
// answer.
func meddler() registry.Strategy {
	return registry.Define("meddler", "Meddles.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
				r := rand.New(rand.NewPCG(uint64(len(req.Messages)), uint64(req.Tokens())))
				return &core.Result{Messages: meddle(r, req.Messages)}, nil
			}), nil
		})
}

func meddle(r *rand.Rand, in []core.Message) []core.Message {
	var out []core.Message
	careful, rate := r.IntN(2) == 0, 1+r.IntN(6)
	for _, g := range core.Groups(in) {
		group := in[g.Start:g.End]
		stays := careful && (g.End == len(in) || slices.ContainsFunc(group, func(m core.Message) bool { return m.Protected || m.Role == core.RoleSystem }))
		if careful && !stays && r.IntN(rate) == 0 {
			continue
		}
		for _, m := range group {
			what := 0
			if !stays {
				what = r.IntN(4 * rate)
			}
			switch {
			case what == 1:
				for i, p := range m.Parts {
					if t, ok := p.(core.Text); ok && len(t) > 40 {
						m.Parts[i] = t[:20] + "…"
					}
				}
			case what == 2 && !careful && len(m.Parts) > 0:
				m.Parts = m.Parts[1:]
			case what == 3 && !careful:
				continue
			case what == 4 && !careful:
				out = append(out, m)
			case what == 5 && !careful && len(out) > 0:
				out[len(out)-1], m = m, out[len(out)-1]
			case what == 6:
				out = append(out, core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("In short.")}})
			}
			out = append(out, m)
		}
	}
	return out
}

// A soakPlay is one history being played.
type soakPlay struct {
	*rand.Rand

	host *condense.Host
	sums *soakSums
}

func (p *soakPlay) play(ctx context.Context, profiles []soakProfile) error {
	profile := profiles[p.IntN(len(profiles))]
	messages := coretest.Random(p.Rand, &coretest.RandomOptions{Max: 1 + p.IntN(40), Tidy: p.IntN(3) == 0})
	for i := range messages {
		messages[i].Tokens = 0 // measured by another counter
	}
	c := condense.NewConversation()
	turn := condense.Turn{Profile: profile.name, System: strings.Repeat("rule ", p.IntN(40))}
	for len(messages) > 0 {
		n := min(len(messages), 1+p.IntN(12))
		if err := c.Append(messages[:n]...); err != nil {
			return err
		}
		messages = messages[n:]
		turn.Trigger = []core.Trigger{"", "", "", core.TriggerManual, core.TriggerOverflow}[p.IntN(5)]
		before := c.View()
		r, err := p.host.Manage(ctx, c, turn)
		p.sums.turns.Add(1)
		if err := p.judge(profile, before, c.View(), r, err); err != nil {
			return fmt.Errorf("profile %s, %d messages, trigger %q, %v: %w\nbefore:\n%safter:\n%s", profile.name, len(before), turn.Trigger, outcomes(r), err, shapeOf(before), shapeOf(c.View()))
		}
	}
	return p.undo(c)
}

// undo reverts all condensations, in any order, and compares the conversation with the original.
func (p *soakPlay) undo(c *condense.Conversation) error {
	want := c.Journal().Messages()
	for all := c.Journal().Condensations(); len(all) > 0; all = c.Journal().Condensations() {
		if err := c.Undo(all[p.IntN(len(all))].ID); err != nil {
			return err
		}
		p.sums.undone.Add(1)
	}
	got := c.View()
	if len(got) != len(want) {
		return fmt.Errorf("undo: %d messages are back, want %d", len(got), len(want))
	}
	for i := range got {
		if !got[i].Equal(want[i]) {
			return fmt.Errorf("undo: message %s came back changed", got[i].ID)
		}
	}
	return nil
}

// judge checks one turn.
func (p *soakPlay) judge(profile soakProfile, before, after []core.Message, r *condense.Report, err error) error {
	limit := r.Budget.Limit
	switch {
	case errors.Is(err, policy.ErrFloorExceedsWindow):
		p.sums.floors.Add(1)
		if len(r.Attempts) > 0 && !strings.HasSuffix(profile.name, "roo") {
			return errors.New("a provider was asked although nothing could help")
		}
	case err != nil && r.Trigger == core.TriggerManual && r.Tokens.Before <= limit:
	case err != nil:
		if r.Tokens.Before > limit && r.Budget.Floor <= limit && r.Decision != policy.ReasonStuck {
			return fmt.Errorf("no way below the limit of %d (floor %d): %w", limit, r.Budget.Floor, err)
		}
	case r.Tokens.After > limit:
		return fmt.Errorf("%d tokens are above the limit of %d: %s", r.Tokens.After, limit, r.Reason)
	}
	for _, a := range r.Attempts {
		if a.Provider == condense.Truncation && a.Outcome != core.OutcomeSkipped && !profile.truncates && a.TokensBefore <= limit {
			return fmt.Errorf("%d tokens were truncated below the limit of %d", a.TokensBefore, limit)
		}
	}
	switch {
	case !r.Acted || err != nil:
		if !slices.EqualFunc(before, after, core.Message.Equal) {
			return errors.New("the view changed although nothing was done")
		}
		return nil
	case r.Tokens.After >= r.Tokens.Before:
		return fmt.Errorf("%d tokens became %d", r.Tokens.Before, r.Tokens.After)
	}
	p.sums.acted.Add(1)
	return audit(before, after)
}

// audit checks a view by the definitions of docs/rules.md, without regard to speed.
func audit(before, after []core.Message) error {
	was := map[string]int{}
	for i, m := range before {
		was[m.ID] = i
	}
	last, fresh := -1, make([]bool, len(after))
	stays := map[string]core.Message{}
	for k, m := range after {
		i, known := was[m.ID]
		fresh[k] = !known
		switch {
		case !known && (m.Kind == core.KindOriginal || m.Blank() || m.Role != core.RoleUser && m.Role != core.RoleAssistant):
			return fmt.Errorf("message %s is new: %s %s %v", m.ID, m.Role, m.Kind, m.Parts)
		case !known:
			continue
		case i <= last:
			return fmt.Errorf("message %s is out of order or repeated", m.ID)
		case m.Role != before[i].Role || m.Kind != before[i].Kind:
			return fmt.Errorf("message %s changed its role", m.ID)
		case m.Blank() && !before[i].Blank():
			return fmt.Errorf("message %s was emptied", m.ID)
		}
		last = i
		stays[m.ID] = m
		for _, part := range m.Parts {
			if x, ok := part.(core.Reasoning); ok && !slices.Contains(before[i].Parts, core.Part(x)) {
				return fmt.Errorf("message %s thinks otherwise", m.ID)
			}
		}
	}
	for _, m := range before {
		if s, ok := stays[m.ID]; m.Protected && (!ok || !s.Equal(m)) {
			return fmt.Errorf("message %s is protected, and changed", m.ID)
		}
	}
	if opens(before) == core.RoleUser && opens(after) != core.RoleUser {
		return errors.New("the conversation no longer begins with the user")
	}
	return auditTools(before, after, fresh)
}

// opens returns the role of the first message.
func opens(messages []core.Message) core.Role {
	for _, m := range messages {
		if m.Role != core.RoleSystem {
			return m.Role
		}
	}
	return ""
}

// A toolPart is a call or result: its place, and that of its partner.
type toolPart struct {
	name      string // unique, and the same before and after
	message   int
	call      bool
	partner   string // the name of the partner; empty if there is none
	partnerIn int    // the message of the partner
}

// toolParts finds the partner of each call and result: the oldest call before a result
// with its ID that has no earlier result.
func toolParts(messages []core.Message) map[string]toolPart {
	all := map[string]toolPart{}
	open := map[string][]string{} // the names of open calls, by ID
	for i, m := range messages {
		seen := map[string]int{}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case core.ToolCall:
				key := fmt.Sprintf("%s call %s %s", m.ID, p.ID, p.Name)
				seen[key]++
				name := fmt.Sprint(key, " ", seen[key])
				all[name] = toolPart{name: name, message: i, call: true}
				open[p.ID] = append(open[p.ID], name)
			case core.ToolResult:
				key := fmt.Sprintf("%s result %s", m.ID, p.CallID)
				seen[key]++
				t := toolPart{name: fmt.Sprint(key, " ", seen[key]), message: i}
				if waiting := open[p.CallID]; len(waiting) > 0 {
					open[p.CallID] = waiting[1:]
					call := all[waiting[0]]
					t.partner, t.partnerIn = call.name, call.message
					call.partner, call.partnerIn = t.name, i
					all[call.name] = call
				}
				all[t.name] = t
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	return all
}

// auditTools checks that calls and results were kept together.
func auditTools(before, after []core.Message, fresh []bool) error {
	was, is := toolParts(before), toolParts(after)
	for name, t := range is {
		old, ok := was[name]
		switch {
		case !ok:
			return fmt.Errorf("%s was not there", name)
		case t.partner != old.partner:
			return fmt.Errorf("%s belonged to %q, belongs to %q", name, old.partner, t.partner)
		case t.partner != "" && !t.call && slices.Contains(fresh[t.partnerIn:t.message], true):
			return fmt.Errorf("%s has a new message between it and its call", name)
		}
	}
	end := len(before) - 1
	for end > 0 && !hasCall(before[end]) && len(before[end].Parts) > 0 && onlyResults(before[end]) {
		end--
	}
	for name, old := range was {
		if _, stays := is[name]; !stays && old.call && old.partner == "" && old.message == end {
			return fmt.Errorf("%s waits for its result, and is gone", name)
		}
	}
	return nil
}

func hasCall(m core.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p core.Part) bool { _, ok := p.(core.ToolCall); return ok })
}

func onlyResults(m core.Message) bool {
	return !slices.ContainsFunc(m.Parts, func(p core.Part) bool { _, ok := p.(core.ToolResult); return !ok })
}
