package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Abilities are the permitted actions of a provider, as its author declared them: a set of the constants
// below. The zero value declares nothing, and restricts nothing. The host rejects a result with an undeclared action, and refuses the
// language models to a provider that did
// not declare them, so that a user need not trust the author for it.
type Abilities uint8

// The abilities.
const (
	Hides      Abilities = 1 << iota // hides messages
	Rewrites                         // gives messages other parts
	Inserts                          // adds messages
	AsksModels                       // asks language models, the host's or its own

	// KeepsWords is a promise: no word of the user is lost, whatever is hidden. Without it, a provider that hides or rewrites may lose some.
	KeepsWords

	// unknown is any ability of a later version: it allows nothing here.
	unknown
)

// abilities have the name of each in a plugin's description, and a verb for what users read.
var abilities = []struct {
	is         Abilities
	name, does string
	verb       string // after "cannot"
}{
	{Hides, "hides", "hides", "hide messages"},
	{Rewrites, "rewrites", "rewrites", "rewrite messages"},
	{Inserts, "inserts", "inserts", "insert messages"},
	{AsksModels, "asks_models", "asks models", "ask language models"},
	{KeepsWords, "keeps_words", "keeps the user's words", ""},
	{unknown, "unknown", "an ability unknown to this version", ""},
}

// ParseAbilities returns the abilities of these names: hides, rewrites, inserts, asks_models, keeps_words. Others allow nothing, but
// they declare.
func ParseAbilities(names []string) Abilities {
	var a Abilities
	for _, name := range names {
		is := unknown
		for _, known := range abilities {
			if known.name == name {
				is = known.is
			}
		}
		a |= is
	}
	return a
}

// Names returns the names of the abilities, as [ParseAbilities] takes them.
func (a Abilities) Names() []string {
	names := []string{}
	for _, known := range abilities {
		if a&known.is != 0 {
			names = append(names, known.name)
		}
	}
	return names
}

// Allow reports whether a provider with these abilities may do all of b. Without a declaration it may do everything.
func (a Abilities) Allow(b Abilities) bool { return a == 0 || a&b == b }

// String returns the abilities in words, with the consequence: "hides only: cannot put a word into the conversation".
func (a Abilities) String() string {
	if a == 0 {
		return "not declared: may hide, rewrite and insert messages, and ask language models"
	}
	var does, cannot []string
	for _, known := range abilities {
		if a&known.is != 0 {
			does = append(does, known.does)
		} else if known.verb != "" {
			cannot = append(cannot, known.verb)
		}
	}
	text := list(does, "and")
	if len(does) == 1 && a&(unknown|KeepsWords) == 0 {
		text += " only"
	}
	if !a.Allow(Rewrites) && !a.Allow(Inserts) {
		return text + ": cannot put a word into the conversation"
	} else if len(cannot) > 0 {
		return text + ": cannot " + list(cannot, "or")
	}
	return text
}

// Told returns the abilities in words for a user who is to approve them: also whether words of the user may be lost.
func (a Abilities) Told() string {
	if a&KeepsWords != 0 || !a.Allow(Hides) && !a.Allow(Rewrites) {
		return a.String()
	}
	return a.String() + "; may drop words of the user"
}

// list joins words: "a, b and c".
func list(words []string, last string) string {
	n := len(words)
	if n < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n-1], ", ") + " " + last + " " + words[n-1]
}

// Check returns a [*ViolationError] if a provider with these abilities does something else: text names it, such as
// "is hidden", to the message id, if it was to one.
func (a Abilities) Check(did Abilities, id, text string) error {
	if a.Allow(did) {
		return nil
	}
	return &ViolationError{Rule: ruleAbilities, Message: id, Detail: fmt.Sprintf("%s, but the provider declares %q", text, a.String())}
}

// MarshalJSON writes the names of the abilities.
func (a Abilities) MarshalJSON() ([]byte, error) { return json.Marshal(a.Names()) }

// UnmarshalJSON reads the form that MarshalJSON writes.
func (a *Abilities) UnmarshalJSON(data []byte) error {
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return err
	}
	*a = ParseAbilities(names)
	return nil
}

// A Declarer is a provider that declares its abilities.
type Declarer interface{ Abilities() Abilities }

// AbilitiesOf returns the abilities that p declares: none if it is no [Declarer]. A plugin's are known once it was started.
func AbilitiesOf(p CondensationProvider) Abilities {
	if d, ok := p.(Declarer); ok {
		return d.Abilities()
	}
	return 0
}

// abilities checks that the result does only what the provider declared.
func (v *verifier) abilities(usage Usage) {
	may := v.req.Abilities
	if may == 0 {
		return
	}
	check := func(did Abilities, id, text string) bool {
		err := may.Check(did, id, text)
		if err != nil {
			v.faults = append(v.faults, err)
		}
		return err != nil
	}
	if j := slices.Index(v.kept, -1); j >= 0 {
		check(Hides, v.req.Messages[j].ID, "is hidden")
	}
	for i := range v.out {
		if v.from[i] >= 0 && !v.same[i] && check(Rewrites, v.out[i].ID, "is rewritten") {
			break
		}
	}
	if i := slices.Index(v.from, -1); i >= 0 {
		check(Inserts, "", fmt.Sprintf("new message %d is inserted", i))
	}
	if may&KeepsWords != 0 && v.lost() != "" {
		v.fault(ruleAbilities, v.lost(), "words of the user are lost, and the provider declares that it keeps them")
	}
	if usage.Calls > 0 {
		check(AsksModels, "", fmt.Sprintf("language models were asked %d times", usage.Calls))
	}
}

// lost returns the ID of the first message with a text of the user that is nowhere in the result; empty if there is none.
func (v *verifier) lost() string {
	r, texts := v.req, make([]string, len(v.out))
	for i := range v.out {
		texts[i] = joinTexts(v.out[i].Parts, nil)
	}
	view := strings.Join(texts, "\n")
	lacks := func(text string) bool { return !strings.Contains(view, strings.TrimSpace(text)) }
	part := func(p Part) bool { t, ok := p.(Text); return ok && lacks(string(t)) }
	for i := range r.Messages {
		if m := &r.Messages[i]; r.FromUser(m) && (r.Typed == nil && slices.ContainsFunc(m.Parts, part) || r.Typed != nil && slices.ContainsFunc(r.Typed(m), lacks)) {
			return m.ID
		}
	}
	return ""
}

// undeclared reports whether err says that a provider did something undeclared.
func undeclared(err error) bool {
	v, ok := errors.AsType[*ViolationError](err)
	return ok && v.Rule == ruleAbilities
}
