package score

import (
	"slices"
	"strconv"

	"github.com/condensehq/condense/core"
)

// An Origin says who wrote a part of a message.
type Origin uint8

// The origins. The zero Origin is what the role and the kind of the part suggest, which
// takes all text of a user for typed.
const (
	OriginUnknown  Origin = iota
	OriginHuman           // typed by the person
	OriginAgent           // written by the model: text, reasoning, tool calls
	OriginTool            // what a tool answered
	OriginInjected        // put there by the agent's program: reminders, environment, files
)

// A Session is a recorded conversation, whole: what came after a cut is what the cut is
// judged by. Nothing in it may be modified once it was handed to this package.
type Session struct {
	ID     string
	Source string // where it comes from: sessions of one source are not independent
	Mode   string // what the agent was doing; empty if unknown
	System string // the system prompt, which a strategy neither sees nor pays
	// Tools are the names of the tools and of their parameters, if known; those of the
	// calls in Messages need not be among them.
	Tools    []string
	Messages []core.Message
	// Origins holds the origin of every part of every message; where it is shorter than
	// Messages or their Parts the origin is unknown.
	Origins     [][]Origin
	Compactions []Compaction
}

// A Compaction is one that happened while the session was recorded.
type Compaction struct {
	At       int    // index of the first message after it
	KeptFrom int    // index of the first message that was kept with the summary; At if none was
	Summary  string // what a model wrote; empty if it is not known
}

// origin returns who wrote part p of message m.
func (s *Session) origin(m, p int) Origin {
	if m < len(s.Origins) && p < len(s.Origins[m]) {
		if o := s.Origins[m][p]; o != OriginUnknown {
			return o
		}
	}
	msg := &s.Messages[m]
	return guess(msg.Role, msg.Kind, msg.Parts[p])
}

func guess(role core.Role, kind core.Kind, p core.Part) Origin {
	switch p.(type) {
	case core.ToolResult:
		return OriginTool
	case core.ToolCall, core.Reasoning:
		return OriginAgent
	case core.Text, core.Image, core.Opaque:
	}
	switch {
	case role == core.RoleAssistant:
		return OriginAgent
	case role == core.RoleTool:
		return OriginTool
	case role == core.RoleSystem, kind != core.KindOriginal:
		return OriginInjected
	}
	return OriginHuman
}

// humanText reports whether part p of message m is text that a person typed.
func (s *Session) humanText(m, p int) bool {
	_, ok := s.Messages[m].Parts[p].(core.Text)
	return ok && s.origin(m, p) == OriginHuman
}

// turns returns the indices of the messages of the assistant.
func (s *Session) turns() []int {
	var out []int
	for i := range s.Messages {
		if s.Messages[i].Role == core.RoleAssistant {
			out = append(out, i)
		}
	}
	return out
}

// turnsFrom returns how many of the indices in turns are at or above i.
func turnsFrom(turns []int, i int) int {
	at, _ := slices.BinarySearch(turns, i)
	return len(turns) - at
}

// names returns the names of the tools of s and of their parameters, as far as its calls
// and its definitions show: the agent has them from elsewhere.
func (s *Session) names() []string {
	seen := map[string]bool{}
	for _, t := range s.Tools {
		seen[t] = true
	}
	for i := range s.Messages {
		for _, p := range s.Messages[i].Parts {
			if c, ok := p.(core.ToolCall); ok {
				seen[c.Name] = true
				for _, k := range keys(c.Args) {
					seen[k] = true
				}
			}
		}
	}
	out := make([]string, 0, len(seen))
	for n := range seen {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// A Cut is a place in a session at which it is condensed: the messages before At are
// given to a strategy, those up to End are what the agent really did afterwards.
type Cut struct {
	Session *Session
	Name    string // "32k", "50%", "compaction 1": unique in its session
	At, End int
	Tokens  int // of the messages before At
	// Compaction is the index of the recorded one that happened here; -1 if none did.
	Compaction int
	// Budget is what the recorded summary and the messages kept with it cost in tokens;
	// zero if Compaction is -1.
	Budget int
}

// TurnsAfter is how many turns of the assistant must follow a cut: a shorter future says too
// little.
const TurnsAfter = 6

// The sizes come from the field: 32k is a small local model, 64k and 100k are where large
// ones begin to degrade or are condensed.
const (
	smallSession     = 36_000 // tokens; a session below is cut at shares of itself
	turnsAfterReal   = 5      // the same for a recorded compaction
	messagesBefore   = 20     // messages that must precede a recorded compaction
	turnsOfTheFuture = 40     // assistant turns that are looked at
)

var (
	cutWindows = []int{32_000, 64_000, 100_000}
	cutShares  = []int{50, 75}
)

// Cuts returns the places at which s is to be cut: where it would have overflowed a
// window of 32,000, 64,000 and 100,000 tokens (a small session: at half and at three
// quarters of its tokens), always before a turn of the assistant and before its first
// recorded compaction; and at every recorded compaction with a summary. Every message of
// s must be measured.
func Cuts(s *Session, c core.Counter) []Cut {
	turns := s.turns()
	sizes := make([]int, len(s.Messages)+1)
	for i := range s.Messages {
		sizes[i+1] = sizes[i] + s.Messages[i].Tokens
	}
	end := len(s.Messages)
	if len(s.Compactions) > 0 {
		end = min(end, s.Compactions[0].At)
	}
	var out []Cut
	last := 0
	add := func(name string, tokens int) {
		at := 0
		for _, t := range turns {
			if t <= end && sizes[t] <= tokens {
				at = t
			}
		}
		if at <= last || turnsFrom(turns, at) < TurnsAfter {
			return
		}
		last = at
		out = append(out, s.cut(name, at, sizes[at], turns))
	}
	if total := sizes[len(s.Messages)]; total < smallSession {
		for _, share := range cutShares {
			add(strconv.Itoa(share)+"%", total*share/100)
		}
	} else {
		for _, w := range cutWindows {
			if sizes[end] >= w {
				add(strconv.Itoa(w/1000)+"k", w)
			}
		}
	}
	for i, k := range s.Compactions {
		if k.Summary == "" || k.At < messagesBefore || k.At > len(s.Messages) || turnsFrom(turns, k.At) < turnsAfterReal {
			continue
		}
		cut := s.cut("compaction "+strconv.Itoa(i+1), k.At, sizes[k.At], turns)
		cut.Compaction = i
		cut.Budget = core.MessageTokens(c, core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(k.Summary)}}) + sizes[k.At] - sizes[min(k.KeptFrom, k.At)]
		out = append(out, cut)
	}
	return out
}

// CutAt returns the cut of s before message at; false if too little follows it, or if it
// is not before the first recorded compaction. Every message of s must be measured.
func CutAt(s *Session, name string, at int) (Cut, bool) {
	turns := s.turns()
	if at < 1 || at > len(s.Messages) || turnsFrom(turns, at) < TurnsAfter || len(s.Compactions) > 0 && at > s.Compactions[0].At {
		return Cut{}, false
	}
	tokens := 0
	for i := range at {
		tokens += s.Messages[i].Tokens
	}
	return s.cut(name, at, tokens, turns), true
}

func (s *Session) cut(name string, at, tokens int, turns []int) Cut {
	end := len(s.Messages)
	if n := len(turns) - turnsFrom(turns, at) + turnsOfTheFuture; n < len(turns) {
		end = turns[n]
	}
	return Cut{Session: s, Name: name, At: at, End: end, Tokens: tokens, Compaction: -1}
}

// Prefix returns the messages before the cut.
func (c *Cut) Prefix() []core.Message { return c.Session.Messages[:c.At:c.At] }
