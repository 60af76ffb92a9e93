package wire

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A RuleError is a rule of the vendor that messages break.
type RuleError struct {
	Index  int // of the message; -1 if the rule is about the whole request
	Rule   string
	Client bool // the client's own messages break it in the same place
}

func (f *RuleError) Error() string {
	if f.Index < 0 {
		return "messages: " + f.Rule
	}
	return fmt.Sprintf("messages.%d: %s", f.Index, f.Rule)
}

// Rules about the order of messages, in words similar to the vendors'. Sources: the errors of the vendors' APIs, and
// their documentation of tool use, prompt caching, thinking and system messages inside a conversation.
const (
	noMessages   = "at least one message is required"
	notUserFirst = `the first message must use the "user" role`
	prefill      = "the conversation must end with a user message"
	systemPlace  = "`system` messages must follow a `user` message, and an `assistant` message or nothing must follow them"
	sameIDs      = "the ids of tool calls must be unique"
	noResult     = "tool calls were found without a result after them"
	noCall       = "a tool result has no tool call before it"
	twoResults   = "a tool call must have a single result"
	lateResults  = "tool results must be before other content"
	tooMany      = "a maximum of 4 blocks with cache_control may be provided"
	longAfter    = "a cache_control block with a longer ttl must not follow one with a shorter ttl"
	noThinking   = "when thinking is enabled, the assistant message before tool results must start with thinking"
	alone        = "reasoning was provided without the item that must follow it"
)

// mostMarkers is the limit of cache markers in a request. Source: Anthropic's documentation of prompt caching.
const mostMarkers = 4

// Check returns the *[RuleError] for which the vendor would refuse r with view in place of its messages, or nil. It
// reports a fault of the client's own only if there is no other. It cannot detect thinking that is invalid because
// the messages before it changed. Messages of view that are slices of r's are not read again. It parses a
// message once, even if it comes with many requests, like an epoch's block; without a cache each time.
func (c *Cache) Check(api API, r *Request, view [][]byte) error {
	known := make(map[*byte]int, len(r.Messages))
	for i := range r.Messages {
		known[&r.Messages[i].Raw[0]] = i
	}
	messages := make([]Message, len(view))
	for i, raw := range view {
		if len(raw) > 0 {
			if n, ok := known[&raw[0]]; ok && len(raw) == len(r.Messages[n].Raw) {
				messages[i] = r.Messages[n]
				continue
			}
		}
		m, err := c.checked(api, element(api, raw))
		if err != nil {
			return &RuleError{Index: i, Rule: err.Error()}
		}
		m.Raw = raw
		messages[i] = m
	}
	found := check(api, r, messages)
	if len(found) == 0 {
		return nil
	}
	type place struct {
		rule string
		raw  *byte
	}
	of := func(f RuleError, messages []Message) place {
		if f.Index < 0 {
			return place{rule: f.Rule}
		}
		return place{f.Rule, &messages[f.Index].Raw[0]}
	}
	own := map[place]bool{}
	for _, f := range check(api, r, r.Messages) {
		own[of(f, r.Messages)] = true
	}
	for i := range found {
		if found[i].Client = own[of(found[i], messages)]; !found[i].Client {
			return &found[i]
		}
	}
	return &found[0]
}

// A checker collects faults of messages.
type checker struct {
	messages []Message
	found    []RuleError
}

func (c *checker) add(index int, rule string) {
	c.found = append(c.found, RuleError{Index: index, Rule: rule})
}

// check returns all rules that the messages break.
func check(api API, r *Request, messages []Message) []RuleError {
	c := &checker{messages: messages}
	for i, m := range messages {
		if m.fault != "" {
			c.add(i, m.fault)
		}
	}
	switch api {
	case Messages, Converse:
		c.turns()
		c.markers(r)
		c.thinking(r)
	case Chat:
		c.chat()
	case Responses:
		c.items()
	case Gemini:
		c.contents()
	}
	return c.found
}

// turns checks roles and pairs of the Messages API, which joins messages of one role to turns.
func (c *checker) turns() {
	open, calls := pairs{}, pairs{} // calls of the previous turn, and of this one
	at, begin := -1, 0              // where these turns begin
	used := map[string]bool{}
	role, before := "", "" // of the turn, of the message before
	front := true          // only results so far
	served := false
	end := func() {
		if open.unanswered() {
			c.add(at, noResult)
		}
		open, calls, at, front = calls, pairs{}, begin, true
	}
	for i, m := range c.messages {
		if m.Role == "system" {
			if before != "user" && (before != "assistant" || !served) {
				c.add(i, systemPlace)
			}
			before = m.Role
			continue
		}
		switch {
		case before == "" && m.Role != "user":
			c.add(i, notUserFirst)
		case before == "system" && m.Role != "assistant":
			c.add(i, systemPlace)
		}
		if m.Role != role || before == "system" {
			end()
			role, begin = m.Role, i
		}
		before, served = m.Role, m.lastServed
		for _, id := range m.Results {
			if rule := open.answer(id); rule != "" {
				c.add(i, rule)
			}
		}
		if m.lateResult || len(m.Results) > 0 && !front {
			c.add(i, lateResults)
		}
		front = front && !m.other
		for _, id := range m.Calls {
			if used[id] {
				c.add(i, sameIDs)
			}
			used[id] = true
			calls[id] = false
		}
	}
	end()
	end()
	switch role {
	case "":
		c.add(-1, noMessages)
	case "assistant":
		c.add(len(c.messages)-1, prefill)
	}
}

// pairs are the IDs of calls that may be answered, and whether they are.
type pairs map[string]bool

// answer takes a result, and returns the rule that it breaks.
func (p pairs) answer(id string) string {
	answered, ok := p[id]
	switch {
	case !ok:
		return noCall
	case answered:
		return twoResults
	}
	p[id] = true
	return ""
}

func (p pairs) unanswered() bool {
	for _, answered := range p {
		if !answered {
			return true
		}
	}
	return false
}

// markers checks the cache markers of the Messages API.
func (c *checker) markers(r *Request) {
	all := slices.Clone(r.headTTLs)
	for i := range c.messages {
		all = append(all, c.messages[i].ttls...)
	}
	all = append(all, r.wholeTTL...)
	if len(all) > mostMarkers {
		c.add(-1, tooMany)
	}
	if !slices.IsSortedFunc(all, func(a, b time.Duration) int { return int(b - a) }) {
		c.add(-1, longAfter)
	}
}

// thinking checks that an open round of tools begins with thinking where it must.
func (c *checker) thinking(r *Request) {
	if r.Thinking != "enabled" {
		return
	}
	at := OpenRound(c.messages)
	if at == len(c.messages) || c.messages[at].firstThinks {
		return
	}
	for _, m := range c.messages[at:] {
		if len(m.Results) > 0 {
			c.add(at, noThinking)
			return
		}
	}
}

// chat checks pairs of the Chat API: the results of a message's calls follow it directly. Old calls by name, without
// IDs, are not checked.
func (c *checker) chat() {
	byName := func(id string) bool { return strings.HasPrefix(id, "function:") }
	open, at := pairs{}, 0
	used := map[string]bool{}
	end := func() {
		if open.unanswered() {
			c.add(at, noResult)
		}
	}
	for i, m := range c.messages {
		for _, id := range m.Results {
			if rule := open.answer(id); rule != "" && !byName(id) {
				c.add(i, rule)
			}
		}
		if m.Role == "tool" {
			continue
		}
		end()
		open, at = pairs{}, i
		for _, id := range m.Calls {
			if byName(id) {
				continue
			}
			if used[id] {
				c.add(i, sameIDs)
			}
			used[id] = true
			open[id] = false
		}
	}
	end()
	if len(c.messages) == 0 {
		c.add(-1, noMessages)
	}
}

// items checks pairs of the Responses API, which are matched by ID wherever they are, and that reasoning is followed
// by its item.
func (c *checker) items() {
	calls, results := map[string]int{}, map[string]bool{}
	kind := func(item string) string { return strings.TrimSuffix(strings.TrimSuffix(item, "_output"), "_call") }
	for i, m := range c.messages {
		for _, id := range m.Calls {
			if _, ok := calls[id]; ok {
				c.add(i, sameIDs)
			}
			calls[id] = i
		}
		for _, id := range m.Results {
			n, ok := calls[id]
			switch {
			case !ok || kind(c.messages[n].item) != kind(m.item):
				c.add(i, noCall)
			case results[id]:
				c.add(i, twoResults)
			}
			results[id] = true
		}
		if m.item != "reasoning" {
			continue
		}
		if i+1 == len(c.messages) || c.messages[i+1].Role != "assistant" || c.messages[i+1].item == "reasoning" {
			c.add(i, alone)
		}
	}
	for i, m := range c.messages {
		if slices.ContainsFunc(m.Calls, func(id string) bool { return !results[id] }) {
			c.add(i, noResult)
		}
	}
}
