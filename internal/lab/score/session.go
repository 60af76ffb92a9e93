package score

import (
	"slices"
	"strconv"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// An Origin is the author of a part of a message.
type Origin uint8

// The origins. OriginUnknown means the author that the role and kind of the part suggest; then all text with the role
// user counts as typed.
const (
	OriginUnknown  Origin = iota
	OriginUser            // typed by the user
	OriginAgent           // written by the model: text, reasoning, tool calls
	OriginTool            // result of a tool
	OriginInjected        // injected by the agent's program: reminders, environment, files
)

// A Session is a complete recorded conversation. It must not be modified after it was passed to this
// package.
type Session struct {
	ID     string
	Source string // where it comes from: sessions of one source are not independent
	Format string // of the transcript that it was read from; empty if unknown
	Mode   string // the agent's activity; empty if unknown
	System string // the system prompt, which is not part of the messages or the budget
	// Tools are the names of the tools and of their parameters, if known. Names that occur in Messages may be left
	// out.
	Tools    []string
	Messages []core.Message
	// Origins has the origin of every part of every message. Missing elements mean OriginUnknown.
	Origins     [][]Origin
	Compactions []Compaction
	// Usage has the vendor's counts for the requests that these messages answer; empty if they are not recorded.
	Usage map[int]Usage
}

// A Usage has a vendor's counts for one request, in tokens.
type Usage struct {
	ID    string // of the answer; several messages may be parts of one
	Model string
	Input int // the whole prompt
	Read  int // of it from the cache
	Write int // to it
	Hour  int // of Write, for an hour
}

// A Compaction is a compaction in a recorded session.
type Compaction struct {
	At       int    // index of the first message after it
	KeptFrom int    // index of the first message that was kept with the summary; At for none
	Summary  string // empty if unknown
	// View is all that it left; nil if that is the summary and the kept messages.
	View []core.Message `json:"-"`
}

// Origin returns the author of part p of message m.
func (s *Session) Origin(m, p int) Origin {
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
	return OriginUser
}

// typed reports whether part p of message m is text that the user typed.
func (s *Session) typed(m, p int) bool {
	_, ok := s.Messages[m].Parts[p].(core.Text)
	return ok && s.Origin(m, p) == OriginUser
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

// turnsFrom returns how many of the indices in turns are i or greater.
func turnsFrom(turns []int, i int) int {
	at, _ := slices.BinarySearch(turns, i)
	return len(turns) - at
}

// names returns the names of the tools of s and of their parameters, from its calls and definitions. The
// agent does not need the conversation for them.
func (s *Session) names() []string {
	seen := plain.Set(s.Tools)
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

// A Cut is a place in a session at which it is condensed. A strategy condenses the messages before At; the messages
// from At to End are the future by which the result is measured.
type Cut struct {
	Session *Session
	Name    string // "32k", "50%", "compaction 1": unique in its session
	At, End int
	Tokens  int // of the messages before At
	// Compaction is the index of the recorded compaction at this place; -1 if there is none.
	Compaction int
	// Budget is the size in tokens of the recorded summary and of the messages kept with it; zero if
	// Compaction is -1.
	Budget int
	// Before are messages that precede the session's for a strategy and are not measured.
	Before []core.Message
}

// TurnsAfter is the number of assistant turns that must follow a cut. A shorter future says too little.
const TurnsAfter = 6

// The usual sizes: 32k is the window of a small local model, and at 64k and 100k large models begin to degrade or are
// condensed.
const (
	smallSession   = 36_000 // tokens; a smaller session is cut at shares of its size
	turnsAfterReal = 5      // TurnsAfter for a recorded compaction
	messagesBefore = 20     // messages that must precede a recorded compaction
)

// TurnsOfTheFuture is the number of assistant turns that are read after a cut.
const TurnsOfTheFuture = 40

var (
	cutWindows = []int{32_000, 64_000, 100_000}
	cutShares  = []int{50, 75}
)

// Cuts returns the places at which s is cut: where it would exceed 32,000, 64,000 and 100,000 tokens, or
// for a small session half and three quarters of its tokens; and every recorded compaction with a summary.
// Except for the latter, a cut is before an assistant turn and not after the first recorded compaction.
// Every message of s must be measured.
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

// The results that [ResultCuts] finds, and how many turns of the assistant are read after each.
const (
	LongResult       = 8000 // tokens
	TurnsAfterResult = 5
	maxResults       = 12 // of a session
)

// ResultCuts returns a cut after each of the first twelve results of s with more than [LongResult] tokens. The cut's
// session holds the message with the result and the future of five turns, so that only use of the result counts;
// Before has the newest message of the user before it and the call. Every message of s must be measured.
func ResultCuts(s *Session) []Cut {
	turns := s.turns()
	asked := -1
	var out []Cut
	for i := range s.Messages {
		m := &s.Messages[i]
		results, bytes := 0, 0
		for j, p := range m.Parts {
			if _, ok := p.(core.ToolResult); ok {
				results, bytes = results+1, core.ContentBytes(p)
			} else if s.typed(i, j) {
				asked = i
			}
		}
		left := turnsFrom(turns, i)
		if results != 1 || 10*bytes < 9*core.ContentBytes(m.Parts...) || m.Tokens <= LongResult || left < TurnsAfterResult || i == 0 || len(out) == maxResults {
			continue
		}
		call := i - 1
		for call > 0 && s.Messages[call].Role != core.RoleAssistant {
			call--
		}
		k := len(turns) - left + TurnsAfterResult
		end := len(s.Messages)
		if k < len(turns) {
			end = turns[k]
		}
		sub := *s
		sub.Messages, sub.Compactions, sub.Usage = s.Messages[i:end], nil, nil
		if sub.Origins = nil; i < len(s.Origins) {
			sub.Origins = s.Origins[i:min(end, len(s.Origins))]
		}
		cut := Cut{Session: &sub, Name: "result " + strconv.Itoa(i), At: 1, End: end - i, Tokens: m.Tokens, Compaction: -1}
		if asked >= 0 && asked < call {
			cut.Before = append(cut.Before, s.Messages[asked])
		}
		cut.Before = append(cut.Before, s.Messages[call])
		out = append(out, cut)
	}
	return out
}

// CutAt returns the cut of s before message at, or false if too little follows it or it is after the first
// recorded compaction. Every message of s must be measured.
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
	if n := len(turns) - turnsFrom(turns, at) + TurnsOfTheFuture; n < len(turns) {
		end = turns[n]
	}
	return Cut{Session: s, Name: name, At: at, End: end, Tokens: tokens, Compaction: -1}
}

// Prefix returns the messages before the cut.
func (c *Cut) Prefix() []core.Message { return c.Session.Messages[:c.At:c.At] }
