package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/transcript"
)

// A scripted model returns a given answer or error, and counts its calls.
type scripted struct {
	text  string
	err   error
	asked atomic.Int64
}

func (s *scripted) Generate(context.Context, *model.Prompt) (*model.Answer, error) {
	s.asked.Add(1)
	if s.err != nil {
		return nil, s.err
	}
	return &model.Answer{Text: s.text, Usage: core.Usage{Calls: 1, InputTokens: 100, OutputTokens: 10, USD: 0.01}}, nil
}

func (s *scripted) Info() model.Info { return model.Info{Name: "scripted", Window: 1 << 20} }

var errKey = errors.New("401: invalid x-api-key")

// harmHost opens a host with this configuration, which counts
// four characters as a token, and the model m for providers that name none.
func harmHost(t *testing.T, text string, m model.Generator) *condense.Host {
	t.Helper()
	return start(t, &condense.Options{
		Load: loadText(t, "tokenizer: chars4\n"+text), Models: map[string]model.Generator{"m": m}, Model: "m",
	})
}

const (
	ruleAlpha = "RULE-ALPHA: never push to main."
	ruleBeta  = "RULE-BETA: use tabs."
)

// dialogue returns a conversation of about that many tokens in messages of about 100, with a
// rule at the beginning and one in the middle, and with repeated tool output.
func dialogue(t *testing.T, tokens int) *condense.Conversation {
	t.Helper()
	c := condense.NewConversation()
	n := tokens / 100
	for i := range n {
		text := fmt.Sprintf("%-388d", i)
		switch i {
		case 0:
			text = ruleAlpha + text[len(ruleAlpha):]
		case n / 2 / 2 * 2:
			text = ruleBeta + text[len(ruleBeta):]
		}
		role := []core.Role{core.RoleUser, core.RoleAssistant}[i%2]
		if err := c.Append(core.Message{ID: fmt.Sprint("m", i), Role: role, Parts: []core.Part{core.Text(text)}}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func manual() condense.Turn { return condense.Turn{Trigger: core.TriggerManual} }

func outcomes(r *condense.Report) string {
	var all []string
	for _, a := range r.Attempts {
		all = append(all, a.Provider+" "+string(a.Outcome))
	}
	return strings.Join(all, ", ")
}

// allOf returns all texts of a view.
func allOf(c *condense.Conversation) string {
	return spaces.ReplaceAllString(fmt.Sprint(c.View()), " ")
}

var spaces = regexp.MustCompile(` +`)

// A second manual condensation must not lose the rules that the first summary kept: no
// message was added in between, so no model is asked and nothing changes.
func TestSecondManualCondensationKeepsTheRules(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, preset := range []string{"fresh_start", "keep_recent", "rolling", "sections"} {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			m := &scripted{text: "In short."}
			h := harmHost(t, "profiles: {p: {window: 64000, chain: [s]}}\nproviders: {s: {strategy: native, settings: {preset: "+preset+"}}}\n", m)
			c := dialogue(t, 24000)
			r, err := h.Manage(t.Context(), c, manual())
			if err != nil || !r.Acted {
				t.Fatalf("the first time: acted %v, %v", r.Acted, err)
			}
			asked, view, text := m.asked.Load(), c.View(), allOf(c)
			if !strings.Contains(text, ruleAlpha) || !strings.Contains(text, ruleBeta) {
				t.Fatalf("the first summary does not hold the rules:\n%s", text)
			}
			for range 3 {
				r, err = h.Manage(t.Context(), c, manual())
				if err != nil || r.Acted || r.Decision != policy.ReasonNothingNew {
					t.Fatalf("again: acted %v, %s, %v", r.Acted, r.Decision, err)
				}
				if diff := cmp.Diff(view, c.View()); diff != "" || m.asked.Load() != asked {
					t.Fatalf("again: the model was asked %d times more, the view changed (-before +after):\n%s", m.asked.Load()-asked, diff)
				}
			}
			// With new messages there is something to condense. The rules stay.
			for i := range 200 {
				role := []core.Role{core.RoleUser, core.RoleAssistant}[i%2]
				if err := c.Append(core.Message{ID: fmt.Sprint("new", i), Role: role, Parts: []core.Part{core.Text(fmt.Sprintf("%-388d", i))}}); err != nil {
					t.Fatal(err)
				}
			}
			r, err = h.Manage(t.Context(), c, manual())
			if text := allOf(c); err != nil || !r.Acted || !strings.Contains(text, ruleAlpha) || !strings.Contains(text, ruleBeta) {
				t.Errorf("with something new: acted %v, %v, %s:\n%s", r.Acted, err, r.Reason, text)
			}
		})
	}
}

// A provider that fails below the limit must not cost the conversation: it stays unchanged,
// and the next turn works.
func TestWrongKeyBelowTheLimitCostsNothing(t *testing.T) {
	t.Parallel()
	// The limit is 19,600.
	const profile = "profiles: {p: {window: 24000, max_output: 2000, threshold: 60, chain: %s}}\nproviders: {s: {strategy: native}}\n"
	m := &scripted{err: errKey}
	h := harmHost(t, fmt.Sprintf(profile, "[s]"), m)
	c := dialogue(t, 17700)
	before := c.View()
	r, err := h.Manage(t.Context(), c, condense.Turn{})
	if err != nil || r.Acted || outcomes(r) != "s failed, truncation skipped" {
		t.Errorf("got acted %v, %s, %v", r.Acted, outcomes(r), err)
	}
	if diff := cmp.Diff(before, c.View()); diff != "" {
		t.Errorf("the conversation changed:\n%s", diff)
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "within the limit of 19,600") {
		t.Errorf("got the warnings %q", r.Warnings)
	}
	// After a manual trigger it is an error, and the conversation is unchanged, too.
	r, err = h.Manage(t.Context(), c, manual())
	if !errors.Is(err, errKey) || r.Acted {
		t.Errorf("by hand: got acted %v, %v; want the provider's error", r.Acted, err)
	}
	if diff := cmp.Diff(before, c.View()); diff != "" {
		t.Errorf("by hand: the conversation changed:\n%s", diff)
	}
	// Above the limit truncation is used for every trigger.
	for _, trigger := range []core.Trigger{core.TriggerAutomatic, core.TriggerManual} {
		c = dialogue(t, 20000)
		r, err = h.Manage(t.Context(), c, condense.Turn{Trigger: trigger})
		if err != nil || !r.Acted || outcomes(r) != "s failed, truncation applied" || r.Tokens.After > r.Budget.Limit {
			t.Errorf("%s, above the limit: acted %v, %s, %d tokens, %v", trigger, r.Acted, outcomes(r), r.Tokens.After, err)
		}
	}
}

// A manual condensation in a nearly empty window, with a model that fails, used to lose
// half of the conversation to truncation.
func TestManualFailureChangesNothing(t *testing.T) {
	t.Parallel()
	h := harmHost(t, "profiles: {p: {window: 200000, chain: [s]}}\nproviders: {s: {strategy: native}}\n", &scripted{err: errKey})
	c := dialogue(t, 17700)
	before := c.View()
	r, err := h.Manage(t.Context(), c, manual())
	if !errors.Is(err, errKey) || r.Acted {
		t.Errorf("got acted %v, %v; want the provider's error", r.Acted, err)
	}
	if diff := cmp.Diff(before, c.View()); diff != "" {
		t.Errorf("the conversation changed:\n%s", diff)
	}
}

// A lossless result below the limit is not truncated to the target.
func TestLosslessBelowTheLimitIsNotTruncated(t *testing.T) {
	t.Parallel()
	h := harmHost(t, "profiles: {p: {window: 100000, max_output: 8000, threshold: 60, chain: [l]}}\nproviders: {l: {strategy: smart, settings: {preset: lossless}}}\n", &scripted{})
	c := condense.NewConversation()
	same := strings.Repeat("the same line of a file that was read twice\n", 400)
	for i := range 6 {
		call := fmt.Sprint("c", i)
		if err := c.Append(
			core.Message{ID: fmt.Sprint("u", i), Role: core.RoleUser, Parts: []core.Part{core.Text(fmt.Sprintf("%-40000d", i))}},
			core.Message{ID: fmt.Sprint("a", i), Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: call, Name: "read", Args: `{"path":"a.go"}`}}},
			core.Message{ID: fmt.Sprint("t", i), Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: call, Content: []core.Part{core.Text(same)}}}},
			core.Message{ID: fmt.Sprint("b", i), Role: core.RoleAssistant, Parts: []core.Part{core.Text("Read.")}},
		); err != nil {
			t.Fatal(err)
		}
	}
	r, err := h.Manage(t.Context(), c, condense.Turn{})
	if err != nil || !r.Acted || outcomes(r) != "l insufficient, truncation skipped" {
		t.Fatalf("got acted %v, %s, %v", r.Acted, outcomes(r), err)
	}
	if r.Tokens.After > r.Budget.Limit || r.Tokens.After <= r.Budget.Target {
		t.Fatalf("the test is wrong: %d tokens, target %d, limit %d", r.Tokens.After, r.Budget.Target, r.Budget.Limit)
	}
	for i := range 6 {
		if !strings.Contains(fmt.Sprint(c.View()), fmt.Sprintf("%-40000d", i)) {
			t.Errorf("request %d of the person is cut", i)
		}
	}
}

// Configured truncation acts at the threshold.
func TestConfiguredTruncationActsAtTheThreshold(t *testing.T) {
	t.Parallel()
	for chain, want := range map[string]string{
		"[]":                 "truncation applied",
		"[truncation]":       "truncation applied",
		"[s, truncation]":    "s failed, truncation applied",
		"[w]":                "w applied, truncation skipped",
		"[s, w]":             "s failed, w applied, truncation skipped",
		"[s]":                "s failed, truncation skipped",
		"[s, l]":             "s failed, l no-op, truncation skipped",
		"[s, slidingwindow]": "s failed, slidingwindow applied, truncation skipped",
	} {
		t.Run(chain, func(t *testing.T) {
			t.Parallel()
			h := harmHost(t, "profiles: {p: {window: 24000, max_output: 2000, threshold: 60, chain: "+chain+"}}\n"+
				"providers: {s: {strategy: native}, w: {strategy: slidingwindow}, l: {strategy: smart, settings: {preset: lossless}}}\n", &scripted{err: errKey})
			r, err := h.Manage(t.Context(), dialogue(t, 17700), condense.Turn{})
			if err != nil || outcomes(r) != want {
				t.Errorf("got %s, %v; want %s", outcomes(r), err, want)
			}
		})
	}
}

// Roo-Code hides half of the messages once, and if there is a summary to try first, only
// above the limit.
func TestRooStopsWhereRooStops(t *testing.T) {
	t.Parallel()
	const profile = "profiles: {p: {preset: roo, window: 20000, max_output: 1000, threshold: %d, chain: %s}}\nproviders: {s: {strategy: native}}\n"
	for _, c := range []struct {
		name, chain string
		threshold   int
		tokens      int
		want        string
		after       int // at least
	}{
		{"above the limit of 17,000", "[roo_half]", 100, 17700, "roo_half applied, truncation skipped", 8900},
		{"above the limit, after a summary that failed", "[s, roo_half]", 75, 17700, "s failed, roo_half applied, truncation skipped", 8900},
		{"below the limit, after a summary that failed", "[s, roo_half]", 75, 16500, "s failed, roo_half skipped, truncation skipped", 16500},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := harmHost(t, fmt.Sprintf(profile, c.threshold, c.chain), &scripted{err: errKey})
			r, err := h.Manage(t.Context(), dialogue(t, c.tokens), condense.Turn{})
			if err != nil || outcomes(r) != c.want || r.Tokens.After < c.after {
				t.Errorf("got %s, %d tokens, %v; want %s, at least %d", outcomes(r), r.Tokens.After, err, c.want, c.after)
			}
		})
	}
}

// With automatic condensing switched off, no model is used unless the user asks, not even
// above the limit.
func TestAutoOffAsksNoModel(t *testing.T) {
	t.Parallel()
	for _, preset := range []string{"", "preset: roo, "} {
		for _, c := range []struct {
			name, providers, chain string
			trigger                core.Trigger
			want                   string
			asked                  int
		}{
			{"over the limit", "s: {strategy: native}", "[s]", "", "s skipped, truncation applied", 0},
			{"refused", "s: {strategy: native}", "[s]", core.TriggerOverflow, "s skipped, truncation applied", 0},
			{"a person asks", "s: {strategy: native}", "[s]", core.TriggerManual, "s applied, truncation skipped", 1},
			{"no model", "s: {strategy: native, settings: {model: extractive}}", "[s]", "", "s applied, truncation skipped", 0},
			{"an account of the work", "s: {strategy: handover}", "[s]", "", "s skipped, truncation applied", 0},
			{"free ones", "s: {strategy: smart}", "[s]", "", "s applied, truncation skipped", 0},
			{"paid, then free", "s: {strategy: native}, f: {strategy: smart}", "[s, f]", "", "s skipped, f applied, truncation skipped", 0},
		} {
			t.Run(preset+c.name, func(t *testing.T) {
				t.Parallel()
				m := &scripted{text: "In short."}
				h := harmHost(t, "auto: false\nprofiles: {p: {"+preset+"window: 24000, max_output: 2000, chain: "+c.chain+"}}\nproviders: {"+c.providers+"}\n", m)
				turn := condense.Turn{Trigger: c.trigger, Estimate: true}
				r, err := h.Manage(t.Context(), dialogue(t, 20000), turn)
				if err != nil || outcomes(r) != c.want || (m.asked.Load() > 0) != (c.asked > 0) {
					t.Errorf("got %s, asked %d times, %v; want %s", outcomes(r), m.asked.Load(), err, c.want)
				}
				if c.asked == 0 && (len(r.Estimates) > 0 || r.Usage.USD > 0) {
					t.Errorf("estimated %v, spent %v", r.Estimates, r.Usage)
				}
			})
		}
	}
}

// A system prompt and tools that nearly reach the threshold must not cause the conversation
// to be emptied every few turns while thousands of tokens are free.
func TestDialogueIsNotEmptiedWithRoomToSpare(t *testing.T) {
	t.Parallel()
	h := harmHost(t, "profiles: {p: {window: 20000, threshold: 50, chain: []}}\n", &scripted{})
	c := condense.NewConversation()
	turn := condense.Turn{System: strings.Repeat("rule", 9300)} // 9,369 fixed tokens with the note of truncation
	condensed := 0
	for i := range 60 {
		for _, role := range []core.Role{core.RoleUser, core.RoleAssistant} {
			if err := c.Append(core.Message{ID: fmt.Sprint(i, role), Role: role, Parts: []core.Part{core.Text(fmt.Sprintf("%-404d", i))}}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := h.Manage(t.Context(), c, turn)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Acted {
			continue
		}
		condensed++
		if talk := r.Tokens.After - r.Budget.Floor; talk < 2000 {
			t.Errorf("turn %d: %d tokens became %d, of which only %d were said; %d were free below the limit",
				i, r.Tokens.Before, r.Tokens.After, talk, r.Budget.Limit-r.Tokens.Before)
		}
	}
	if condensed == 0 || condensed > 5 {
		t.Errorf("condensed %d times in 60 turns, want 1 to 5", condensed)
	}
}

// The same through every format: most do not record condensations, and a summary is read
// from them as an ordinary message.
func TestSecondManualCondensationThroughEveryFormat(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for i, preset := range []string{"fresh_start", "keep_recent", "rolling", "sections"} {
		for k, f := range transcript.Formats() {
			if f.ReadOnly || k%4 != i { // a format does not know who wrote the summary: each has one preset
				continue
			}
			for _, open := range []bool{false, true} { // the user's message is the last one
				t.Run(fmt.Sprint(preset, "/", f.Name, "/", open), func(t *testing.T) {
					t.Parallel()
					m := &scripted{text: "In short."}
					h := harmHost(t, "profiles: {p: {window: 64000, chain: [s]}}\nproviders: {s: {strategy: native, settings: {preset: "+preset+"}}}\n", m)
					c := dialogue(t, 24000)
					if open {
						if err := c.Append(core.Message{ID: "q", Role: core.RoleUser, Parts: []core.Part{core.Text("And what about the tests?")}}); err != nil {
							t.Fatal(err)
						}
					}
					d := read(t, write(t, &transcript.Document{Journal: c.Journal()}, f.Name))
					for round := range 4 {
						asked := m.asked.Load()
						c := condense.ResumeConversation(d.Journal)
						before := c.View()
						r, err := h.Manage(t.Context(), c, manual())
						if err != nil || r.Acted != (round == 0) || (m.asked.Load() > asked) != (round == 0) {
							t.Fatalf("round %d: acted %v, asked %d times, %s, %v\n%s", round, r.Acted, m.asked.Load()-asked, r.Reason, err, shapeOf(before))
						}
						text := allOf(c)
						if !strings.Contains(text, ruleAlpha) || !strings.Contains(text, ruleBeta) {
							t.Fatalf("round %d: the rules are gone:\n%s", round, text)
						}
						d = read(t, write(t, d, f.Name))
					}
				})
			}
		}
	}
}

// shapeOf returns the kinds of the messages.
func shapeOf(messages []core.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s %s %.60q\n", m.Role, m.Kind, spaces.ReplaceAllString(fmt.Sprint(m.Parts), " "))
	}
	return b.String()
}
