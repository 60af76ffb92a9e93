package wire

import "fmt"

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
		m, err := c.checked(api, element(Of(api), raw))
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
	Of(api).read.check(c, r)
	return c.found
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
