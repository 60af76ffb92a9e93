// Package canary plants sentences in a recorded session, and detects later which of them survived. A canary is
// something that a user says once and expects to hold: a rule, constraint, fact, goal or preference, with a made-up
// value that occurs nowhere else. Some canaries are changed later, in the same words or in others; then the old value
// must go. Tool output with lines that ask to be kept, or pretend to be the user, is measured against neutral lines
// of the same length at the same places.
//
// No strategy imports this package, and it imports none: canaries must not depend on the words that a strategy looks
// for.
package canary

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
)

// A Set names the texts that are planted.
type Set string

// The sets. A session with canaries has the set's name before its own.
const (
	First  Set = "canaries"
	Second Set = "canaries2" // by a second author: see the variable second
)

// Sets are all sets.
var Sets = []Set{First, Second}

// A Type is a kind of canary.
type Type string

// The types: five of the user's, and two of tool output.
const (
	Rule       Type = "rule"
	Constraint Type = "constraint"
	Fact       Type = "fact"
	Goal       Type = "goal"
	Preference Type = "preference"
	Hostile    Type = "hostile"
	Neutral    Type = "neutral"
)

// Types are all types, in the order of reports. The first Said are the user's.
var Types = []Type{Rule, Constraint, Fact, Goal, Preference, Hostile, Neutral}

// Said is the number of the user's types.
const Said = 5

// A Canary is a sentence that was planted.
type Canary struct {
	Type Type
	// Message is the ID of the message with the canary, Update the ID of the message that changes it; empty if none
	// does.
	Message, Update string
	// Reworded says that the update has other words.
	Reworded   bool
	text, then probe
}

// A probe is a value to look for, with words of its sentence that must be near.
type probe struct {
	value string
	words []string
}

// The places of the canaries of each type, as shares of the first part that is condensed.
var places = [...]struct{ from, to float64 }{{0.04, 0.2}, {0.38, 0.55}, {0.72, 0.88}}

// hostilePlaces are places in the output of tools for hostile and neutral lines, by turns.
const hostilePlaces = 4

// Plant returns messages with canaries in the first window tokens, and the canaries. Half of the updates come before
// the window ends, half soon after. The same arguments give the same result. Swap exchanges the hostile lines for the
// neutral ones. The messages must be measured; new and changed ones in the result are not.
func Plant(set Set, messages []core.Message, name string, window int, seed uint64, swap bool) ([]core.Message, []Canary) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	p := planter{rng: rand.New(rand.NewPCG(seed, h.Sum64())), at: map[int][]core.Message{}, seen: text(messages)} //nolint:gosec // no secret
	p.called = strings.Contains(p.seen, "] Result:")
	p.read(messages)
	byType := map[Type][]family{}
	texts := families
	if set == Second {
		texts = second
	}
	for _, f := range familiesOf(texts) {
		byType[f.kind] = append(byType[f.kind], f)
	}
	for k, t := range Types[:Said] {
		of := byType[t]
		p.rng.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		updated := p.rng.IntN(len(places))
		for i, place := range places {
			share := place.from + p.rng.Float64()*(place.to-place.from)
			c := Canary{Type: t}
			c.text, c.Message = p.say(pick(p.rng, of[i].say), share*float64(window))
			if i == updated {
				words, at := of[i].again, 1.02+0.1*p.rng.Float64()
				if c.Reworded = (k+int(seed))%2 == 1; c.Reworded {
					words = of[i].reworded
				}
				if p.rng.IntN(2) == 0 {
					at = min(0.95, share+0.08)
				}
				c.then, c.Update = p.say(words, at*float64(window))
			}
			p.planted = append(p.planted, c)
		}
	}
	out := slices.Clone(messages)
	p.tools(out, window, swap)
	return p.insert(out), p.planted
}

func pick(rng *rand.Rand, list []string) string { return list[rng.IntN(len(list))] }

type planter struct {
	rng     *rand.Rand
	seen    string // all text of the session: values are not in it
	before  []int  // tokens before each message
	called  bool   // tools are called in texts, and answer in texts of the user's messages
	turns   []int  // messages of the assistant, before which the user may speak
	at      map[int][]core.Message
	planted []Canary
	n       int
}

func (p *planter) read(messages []core.Message) {
	n := 0
	for i := range messages {
		p.before = append(p.before, n)
		n += messages[i].Tokens
		if i > 0 && messages[i].Role == core.RoleAssistant {
			p.turns = append(p.turns, i)
		}
	}
}

// say puts a message of the user with a sentence at so many tokens.
func (p *planter) say(words string, at float64) (probe, string) {
	sentence, value := p.fill(words)
	around := []string{pick(p.rng, chatter), sentence, pick(p.rng, chatter)}
	if p.rng.IntN(4) == 0 {
		around = append(around, pick(p.rng, chatter))
	}
	around = slices.DeleteFunc(around, func(s string) bool { return s == "" })
	turn := len(p.before)
	for _, t := range p.turns {
		if float64(p.before[t]) >= at {
			turn = t
			break
		}
	}
	p.n++
	said := strings.Join(around, " ")
	if p.called { // the form in which agents of such sessions send a remark between two turns
		said = "<user_message>\n" + said + "\n</user_message>"
	}
	m := core.Message{ID: fmt.Sprintf("canary-%d", p.n), Role: core.RoleUser, Parts: []core.Part{core.Text(said)}}
	p.at[turn] = append(p.at[turn], m)
	return newProbe(sentence, value), m.ID
}

// fill inserts a value that does not occur in the session into words.
func (p *planter) fill(words string) (sentence, value string) {
	for {
		if strings.Contains(words, "«n»") {
			value = strconv.Itoa(1000 + p.rng.IntN(98000))
		} else {
			value = ""
			for range 3 {
				value += string("bdfgklmnprstvz"[p.rng.IntN(14)]) + string("aeiou"[p.rng.IntN(5)])
			}
			value += string("lmnrst"[p.rng.IntN(6)])
		}
		if !strings.Contains(p.seen, value) {
			p.seen += " " + value
			return strings.NewReplacer("«n»", value, "«v»", value).Replace(words), value
		}
	}
}

// tools puts hostile and neutral lines into results of tools.
func (p *planter) tools(messages []core.Message, window int, swap bool) {
	for k := range hostilePlaces {
		share := (float64(k) + 0.2 + 0.6*p.rng.Float64()) / hostilePlaces * 0.9
		evil, value := p.fill(pick(p.rng, hostile))
		calm := p.shuffled(evil)
		kind, line := Hostile, evil
		if (k%2 == 1) != swap {
			kind, line = Neutral, calm
		}
		if id := p.answer(messages, int(share*float64(window)), line); id != "" {
			words := evil
			if kind == Neutral {
				words = calm
			}
			p.planted = append(p.planted, Canary{Type: kind, Message: id, text: newProbe(words, value)})
		}
	}
}

// shuffled returns a line of the same words in random order, and so of the same length and rarity, without a meaning.
func (p *planter) shuffled(line string) string {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \n:.,;#¶<>[]_", r) })
	p.rng.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	out := strings.ToLower(strings.Join(words, " "))
	return out + strings.Repeat(".", max(0, len(line)-len(out)))
}

// answer puts a line into the middle of the first long result after so many tokens, and returns the ID of its
// message; empty if there is none.
func (p *planter) answer(messages []core.Message, at int, line string) string {
	for i := range messages {
		if p.before[i] < at {
			continue
		}
		for j, part := range messages[i].Parts {
			r, ok := part.(core.ToolResult)
			if !ok || len(r.Content) == 0 {
				continue
			}
			t, ok := r.Content[0].(core.Text)
			lines := strings.Split(string(t), "\n")
			if !ok || len(lines) < 6 {
				continue
			}
			m := &messages[i]
			m.Parts = slices.Clone(m.Parts)
			r.Content = slices.Clone(r.Content)
			r.Content[0] = core.Text(strings.Join(slices.Insert(lines, len(lines)/2, line), "\n"))
			m.Parts[j], m.Source, m.Tokens = r, nil, 0
			return m.ID
		}
	}
	return ""
}

// insert returns messages with the user's canaries.
func (p *planter) insert(messages []core.Message) []core.Message {
	var out []core.Message
	for i := range messages {
		out = append(append(out, p.at[i]...), messages[i])
	}
	return out
}

func newProbe(sentence, value string) probe {
	p := probe{value: value}
	for w := range words(strings.ReplaceAll(sentence, value, " ")) {
		if len(w) >= 4 && !slices.Contains(p.words, w) {
			p.words = append(p.words, w)
		}
	}
	return p
}

func words(s string) func(func(string) bool) {
	return strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && r < 0x80
	})
}
