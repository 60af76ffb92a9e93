package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// limited is a provider with declared abilities.
type limited struct {
	core.CondensationProvider

	may core.Abilities
}

func (l limited) Abilities() core.Abilities { return l.may }

// TestAbilities: what a provider did not declare is rejected, and the message says what it did and what it declares.
func TestAbilities(t *testing.T) {
	hi, note := core.Text("What a long text of the user this is."), core.Text("In short.")
	before := messages{user("1", hi), assistant("2", hi), user("3", hi), assistant("4", hi)}
	for _, tt := range []struct {
		may   core.Abilities
		after messages
		usage core.Usage
		want  string // the error; empty for none
	}{
		{0, messages{user("1", hi), summary(note)}, core.Usage{Calls: 1}, ""},
		{core.Hides, messages{user("1", hi), user("3", hi)}, core.Usage{}, ""},
		{core.Rewrites, messages{user("1", hi), assistant("2", note), user("3", hi), assistant("4", hi)}, core.Usage{}, ""},
		{core.Hides | core.Inserts, messages{summary(note), user("3", hi)}, core.Usage{}, ""},
		{core.Hides | core.AsksModels, messages{user("1", hi)}, core.Usage{Calls: 2}, ""},
		{
			core.Rewrites,
			messages{user("1", hi), user("3", hi)},
			core.Usage{},
			`declared-abilities: message 2: is hidden, but the provider declares "rewrites only: cannot hide messages, insert messages or ask language models"`,
		},
		{
			core.Hides,
			messages{user("1", hi), assistant("2", note), user("3", hi)},
			core.Usage{},
			`declared-abilities: message 2: is rewritten, but the provider declares "hides only: cannot put a word into the conversation"`,
		},
		{
			core.Hides,
			messages{user("1", hi), summary(note)},
			core.Usage{},
			`declared-abilities: new message 1 is inserted, but the provider declares "hides only: cannot put a word into the conversation"`,
		},
		{
			core.Hides,
			messages{user("1", hi)},
			core.Usage{Calls: 2},
			`declared-abilities: language models were asked 2 times, but the provider declares "hides only: cannot put a word into the conversation"`,
		},
		{
			core.ParseAbilities([]string{"teleports"}),
			messages{user("1", hi)},
			core.Usage{},
			`declared-abilities: message 2: is hidden, but the provider declares "an ability unknown to this version: cannot put a word into the conversation"`,
		},
	} {
		req := &core.Request{Messages: before, Abilities: tt.may}
		err := core.Verify(req, &core.Result{Messages: tt.after, Usage: tt.usage})
		if got := errorText(err); got != tt.want {
			t.Errorf("%v: got  %s\nwant %s", tt.may.Names(), got, tt.want)
		}
	}
}

// TestKeepsWords: a provider that promises to keep the user's words may hide the message if the words are elsewhere; who promises nothing
// may lose them, and a user who approves it is told.
func TestKeepsWords(t *testing.T) {
	hi, bye := core.Text("What a long text of the user this is."), core.Text("Now the next one.")
	before := messages{user("1", core.Text("<reminder>Be brief.</reminder>"), hi), assistant("2", hi), user("3", hi), assistant("4", hi), user("5", bye), assistant("6", bye)}
	may := core.Hides | core.Inserts | core.KeepsWords
	const lost = "declared-abilities: message 1: words of the user are lost, and the provider declares that it keeps them"
	for _, tt := range []struct {
		may   core.Abilities
		after messages
		want  string
	}{
		{may, messages{user("3", hi), user("5", bye), assistant("6", bye)}, ""},
		{may, messages{summary(core.Text("The user said: ") + hi), user("5", bye), assistant("6", bye)}, ""},
		{may, messages{user("5", bye), assistant("6", bye)}, lost},
		{may, messages{summary(core.Text("A long text of the user.")), user("5", bye), assistant("6", bye)}, lost},
		{core.Hides, messages{user("5", bye), assistant("6", bye)}, ""},
	} {
		req := &core.Request{Messages: before, Abilities: tt.may, Typed: func(m *core.Message) []string {
			return []string{string(m.Parts[len(m.Parts)-1].(core.Text))}
		}}
		if got := errorText(core.Verify(req, &core.Result{Messages: tt.after})); got != tt.want {
			t.Errorf("%v: got  %s\nwant %s", tt.may.Names(), got, tt.want)
		}
	}
	for a, dropped := range map[core.Abilities]bool{0: true, core.Hides: true, core.Rewrites: true, core.Inserts: false, core.AsksModels: false, may: false} {
		if got := strings.HasSuffix(a.Told(), "; may drop words of the user"); got != dropped {
			t.Errorf("%v: %s", a.Names(), a.Told())
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestUndeclaredGoesOn: a chain rejects what was not declared, and asks the next provider for the conversation as it was.
func TestUndeclaredGoesOn(t *testing.T) {
	req := coretest.HalfRequest(coretest.Session())
	liar := limited{coretest.Truncates(), core.Rewrites}
	asks := limited{core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) {
		return nil, errors.Join(core.Hides.Check(core.AsksModels, "", "asks a language model"))
	}), core.Hides}
	chain, err := core.NewChain([]core.NamedProvider{
		{Name: "liar", Provider: liar}, {Name: "asks", Provider: asks}, {Name: "honest", Provider: limited{coretest.Truncates(), core.Hides | core.Inserts}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := chain.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if out.Provider != "honest" {
		t.Errorf("got the work of %q, want that of honest", out.Provider)
	}
	for _, a := range out.Attempts[:2] {
		if a.Outcome != core.OutcomeRejected || !strings.Contains(a.Reason, "declared-abilities: ") {
			t.Errorf("%s: got %s: %s; want rejected by its declared abilities", a.Provider, a.Outcome, a.Reason)
		}
	}
}

func TestAbilitiesInWords(t *testing.T) {
	for a, want := range map[core.Abilities]string{
		0:                            "not declared: may hide, rewrite and insert messages, and ask language models",
		core.Hides:                   "hides only: cannot put a word into the conversation",
		core.Hides | core.AsksModels: "hides and asks models: cannot put a word into the conversation",
		core.Hides | core.Inserts:    "hides and inserts: cannot rewrite messages or ask language models",
		core.Hides | core.Rewrites | core.Inserts | core.AsksModels: "hides, rewrites, inserts and asks models",
	} {
		if got := a.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var again core.Abilities
		if err := json.Unmarshal(text, &again); err != nil || again != a {
			t.Errorf("%s was read as %v (%v)", text, again.Names(), err)
		}
	}
}
