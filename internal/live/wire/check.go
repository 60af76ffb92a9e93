package wire

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
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

// Check returns the *[RuleError] for which the vendor would refuse r with view in place of its messages, or nil. It
// reports a fault of the client's own only if there is no other. It cannot detect thinking that is invalid because
// the messages before it changed. Messages of view that are slices of r's are not read again. It parses a
// message once, even if it comes with many requests, like an epoch's block; without a cache each time.
func (c *Cache) Check(api API, r *Request, view [][]byte) error {
	known := plain.Index(r.Messages, func(x Message) *byte { return &x.Raw[0] })
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
	own := plain.Set(plain.Each(check(api, r, r.Messages), func(f RuleError) place { return of(f, r.Messages) }))
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
	return slices.Contains(slices.Collect(maps.Values(p)), false)
}

// errorTypes are the types of errors by status, as the vendors document them. Other statuses are errors of the
// server.
var errorTypes = map[int]struct{ anthropic, openai string }{
	http.StatusBadRequest:            {"invalid_request_error", "invalid_request_error"},
	http.StatusUnauthorized:          {"authentication_error", "authentication_error"},
	http.StatusForbidden:             {"permission_error", "permission_error"},
	http.StatusNotFound:              {"not_found_error", "not_found_error"},
	http.StatusRequestEntityTooLarge: {"request_too_large", "invalid_request_error"},
	http.StatusTooManyRequests:       {"rate_limit_error", "rate_limit_error"},
	http.StatusGatewayTimeout:        {"timeout_error", "server_error"},
}

// foreignErrors are the shapes of errors of APIs that the gateway does not read, for their clients; ? is the message.
// Others have OpenAI's.
var foreignErrors = map[Vendor]string{Azure: `{"error":{"code":"404","message":?}}`}

// forms are the APIs whose errors the clients of vendors read. Others have OpenAI's.
var forms = map[Vendor]API{Anthropic: Messages, Google: Gemini, Vertex: Gemini, Amazon: Converse}

// Form returns the API whose errors the clients of the path read.
func (e *Endpoint) Form() API {
	switch {
	case slices.Contains(e.Of, Amazon): // whatever the format of the conversation is
		return Converse
	case e.API != "":
		return e.API
	case len(e.Of) > 0:
		return forms[e.Of[0]]
	}
	return forms[e.Owner]
}

// NotFound returns the body of an answer with the status 404, in the error format of the API to which the path
// belongs.
func (e *Endpoint) NotFound(message string) []byte {
	owner := e.Owner
	if owner == "" && len(e.Of) > 0 {
		owner = e.Of[0]
	}
	if shape, ok := foreignErrors[owner]; ok {
		return rawjson.Append(nil, shape, message)
	}
	return Refusal(e.Form(), http.StatusNotFound, message)
}

// Refusal returns the body of an answer of the gateway's own with a status, in the shape of the vendor's errors.
func Refusal(api API, status int, message string) []byte { return Of(api).Refuse(status, message) }

func refuseAnthropic(status int, message string) []byte {
	return rawjson.Append(nil, `{"type":"error","error":{"type":?,"message":?}}`, cmp.Or(errorTypes[status].anthropic, "api_error"), message)
}

func refuseOpenAI(status int, message string) []byte {
	code := []byte("null")
	if status == http.StatusRequestEntityTooLarge {
		code = []byte(`"request_too_large"`)
	}
	return rawjson.Append(nil, `{"error":{"message":?,"type":?,"param":null,"code":?}}`, message, cmp.Or(errorTypes[status].openai, "server_error"), code)
}

// Newest returns the messages without texts of the system that a later text of the system repeats, and for each
// message the index of its origin. A text repeats another if both are equal, or begin with the same of begins: agents
// append such reminders again and again, and each is out of date with the next. Of equal messages without a text the last
// stays. The system prompt, that is, messages before the first of another role, is not looked at, nor is a message that stays
// reports.
func Newest(messages []Message, begins []string, stays func(i int) bool) (view [][]byte, origin []int) {
	first := 0
	for first < len(messages) && isSystem(&messages[first]) {
		first++
	}
	view, origin = make([][]byte, len(messages)), make([]int, 0, len(messages))
	later := map[string]bool{}
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		if view[i] = m.Raw; i >= first && isSystem(m) {
			if raw := newest(m.Raw, begins, later); len(raw) != len(m.Raw) && !stays(i) && (raw != nil || !between(messages, i)) {
				view[i] = raw
			}
		}
	}
	kept := view[:0]
	for i, raw := range view {
		if raw != nil {
			kept, origin = append(kept, raw), append(origin, i)
		}
	}
	return kept, origin
}

func isSystem(m *Message) bool { return m.Role == "system" || m.Role == "developer" }

// between reports whether message i is between two messages of the model, which would become neighbours without it.
func between(messages []Message, i int) bool {
	return i > 0 && i+1 < len(messages) && messages[i-1].Role == "assistant" && messages[i+1].Role == "assistant"
}

// newest returns a message without texts that are in later, nil if nothing is left, and adds its texts to later.
// Other fields than role and content are settings, which keep the last text.
func newest(raw []byte, begins []string, later map[string]bool) []byte {
	repeats := func(text string) bool {
		if i := slices.IndexFunc(begins, func(b string) bool { return strings.HasPrefix(text, b) }); i >= 0 {
			text = begins[i]
		}
		was := later[text]
		later[text] = true
		return was && text != ""
	}
	content := rawjson.Field(raw, "content")
	tunes := isEmptyArray(content) || textAt(raw, "type") == "configuration_update" // of pi: a setting alone, such as the effort
	if tunes && repeats(string(raw)) {
		return nil
	}
	if tunes || len(begins) == 0 {
		return raw
	}
	fields := 0
	for range rawjson.Fields(raw) {
		fields++
	}
	const plain = 2 // role and content
	if rawjson.IsString(content) && repeats(textOf(rawjson.Text(content))) && fields == plain {
		return nil
	}
	if !rawjson.IsArray(content) {
		return raw
	}
	var kept [][]byte
	all := slices.Collect(rawjson.Elements(content))
	for i, block := range slices.Backward(all) {
		text := rawjson.Field(block, "text")
		if !rawjson.IsString(text) || !repeats(textOf(rawjson.Text(text))) || fields != plain && i == 0 && len(kept) == 0 {
			kept = append(kept, block)
		}
	}
	switch len(kept) {
	case len(all):
		return raw
	case 0:
		return nil
	}
	slices.Reverse(kept)
	return rawjson.ReplaceValue(raw, content, rawjson.Array(kept))
}

// textOf returns a reminder without the space and the tag that agents put around some.
func textOf(s string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), toolcall.ReminderOpen))
}
