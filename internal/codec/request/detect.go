package request

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/rawjson"
)

// messagesIn returns the raw array of messages of a JSON file; nil if it has none.
func messagesIn(data []byte) []byte {
	switch at := rawjson.SkipSpace(data, 0); {
	case rawjson.IsArray(data[at:]):
		return data[at:]
	case rawjson.IsObject(data[at:]):
		if v := rawjson.Field(data, "messages"); rawjson.IsArray(v) {
			return v
		}
	}
	return nil
}

// VendorOf returns the vendor whose form the messages of the JSON file data have: Anthropic or OpenAI; empty if
// neither. Once a message decides, it looks at the first few only; the decoders refuse any others that do not fit.
//
// Content that only one vendor has decides: a kind of block, a field of a message, a role. Failing that, the other
// fields of the request decide, then a role "system": it is usually the first message of OpenAI's and never of
// Anthropic's. A plain conversation without tools is the same for both and counts as Anthropic's.
func VendorOf(data []byte) codec.Vendor {
	messages := messagesIn(data)
	if messages == nil {
		return ""
	}
	const enough = 20
	n := 0
	var sure, likely codec.Vendor
	for m := range rawjson.Elements(messages) {
		n++
		of, ok := vendorOfMessage(m, n == 1)
		if !ok {
			return ""
		}
		sure = cmp.Or(sure, of)
		if rawjson.Text(rawjson.Field(m, "role")) == "system" && (n == 1 || !claude(data)) {
			likely = codec.OpenAI
		}
		if sure != "" && n >= enough {
			return sure
		}
	}
	of, request := vendorOfRequest(data)
	switch {
	case n == 0 && (!request || !rawjson.Complete(messages)):
		return ""
	case sure != "":
		return sure
	case of != "":
		return of
	case likely != "":
		return likely
	}
	return codec.Anthropic
}

// claude reports whether the request data asks for a Claude model by the name that Anthropic's
// API has for it. Other servers add a vendor to the name.
func claude(data []byte) bool {
	return rawjson.IsObject(data[rawjson.SkipSpace(data, 0):]) && strings.HasPrefix(rawjson.Text(rawjson.Field(data, "model")), "claude-")
}

// The marks of messages: roles, fields and kinds of content that only one vendor has, and marks of other tools that
// also use "role".
var (
	openaiRoles    = []string{"developer", "tool", "function"}
	openaiFields   = []string{"tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content", "images"}
	openaiTypes    = []string{"image_url", "input_audio", "audio_url", "video_url", "file", "refusal"}
	anthropicTypes = []string{"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}
	// ForeignFields are fields of other tools' messages, and foreignTypes their kinds of content. UI messages of the
	// Vercel AI SDK, Gemini's API and OpenCode keep the content in parts; pi and the SDK's model
	// messages have blocks of these kinds. The input_ kinds are of OpenAI's Responses API.
	ForeignFields = []string{"parts", "toolInvocations", "experimental_attachments"}
	foreignTypes  = []string{
		"tool-call", "tool-result", "tool-invocation", "toolCall", "toolResult",
		"input_text", "output_text", "input_image", "function_call", "function_call_output",
	}
)

// vendorOfMessage returns the vendor that the message m belongs to, if only one has such
// messages. It reports false if m is a message of neither. After the first message, invalid
// content does not change the format: the decoder reports it.
func vendorOfMessage(m []byte, first bool) (of codec.Vendor, ok bool) {
	var role, content []byte
	openai := false // it has a field of OpenAI's
	for k, v := range rawjson.Fields(m) {
		switch key := string(k); {
		case key == "role":
			role = v
		case key == "content":
			content = v
		case slices.Contains(ForeignFields, key):
			return "", false
		case slices.Contains(openaiFields, key):
			openai = true
		}
	}
	if !rawjson.IsString(role) || content == nil && !openai {
		return "", false
	}
	if first && content != nil && !rawjson.IsString(content) && !rawjson.IsArray(content) && !rawjson.IsNull(content) {
		return "", false
	}
	if openai || slices.Contains(openaiRoles, rawjson.Text(role)) {
		of = codec.OpenAI
	}
	for block := range rawjson.Elements(content) {
		kind := rawjson.Text(rawjson.Field(block, "type"))
		switch {
		case kind == "" && !rawjson.IsString(block) && first, slices.Contains(foreignTypes, kind):
			return "", false
		case of != "":
		case slices.Contains(openaiTypes, kind):
			of = codec.OpenAI
		case slices.Contains(anthropicTypes, kind):
			of = codec.Anthropic
		}
	}
	return of, true
}

// The fields of a request other than its messages: fields that only one vendor has, and fields that decide nothing.
var (
	anthropicRequest = rawjson.Set("system", "stop_sequences", "anthropic_version", "anthropic_beta", "context_management",
		"mcp_servers", "container", "output_config", "cache_control")
	openaiRequest = rawjson.Set("functions", "function_call", "max_completion_tokens", "response_format", "reasoning_effort",
		"parallel_tool_calls", "stream_options", "frequency_penalty", "presence_penalty", "logit_bias", "logprobs",
		"top_logprobs", "n", "seed", "modalities", "prompt_cache_key", "verbosity")
	anyRequest = rawjson.Set("messages", "model", "max_tokens", "tools", "tool_choice", "temperature", "top_p", "top_k", "stream",
		"stop", "metadata", "user", "thinking", "service_tier", "store")
)

// vendorOfRequest returns the vendor that the request data belongs to, if only one has such
// fields. It reports false if data is an object with fields that no request has.
func vendorOfRequest(data []byte) (of codec.Vendor, ok bool) {
	ok = true
	var tools codec.Vendor
	for k, v := range rawjson.Fields(data) {
		switch key := string(k); {
		case key == "tools":
			tools = vendorOfTools(v)
		case anthropicRequest[key]:
			of = codec.Anthropic
		case openaiRequest[key]:
			of = codec.OpenAI
		case !anyRequest[key]:
			ok = false
		}
	}
	if tools != "" {
		of = tools
	}
	return of, ok
}

func vendorOfTools(tools []byte) codec.Vendor {
	for tool := range rawjson.Elements(tools) {
		switch {
		case rawjson.Field(tool, "input_schema") != nil:
			return codec.Anthropic
		case rawjson.Field(tool, "function") != nil:
			return codec.OpenAI
		}
	}
	return ""
}

// Pairs names the calls of a conversation in an API in which they have no IDs, or need none: a result answers the
// call with its ID or, without one, the first open call of its tool. The zero value is ready.
type Pairs struct {
	n    int
	used map[string]bool
	open []opened
}

type opened struct{ own, id, name string }

// Turn begins a message of the model: calls before it that have no result get none.
func (p *Pairs) Turn() { p.open = nil }

// Call returns the ID of the next call, of which own is the client's ID, if it has one.
func (p *Pairs) Call(own, name string) string {
	p.n++
	id := own
	if p.used == nil {
		p.used = map[string]bool{}
	}
	for n := p.n; id == "" || p.used[id]; n++ {
		id = fmt.Sprint("call-", n)
	}
	p.used[id] = true
	p.open = append(p.open, opened{own, id, name})
	return id
}

// Result returns the ID of the call that a result answers, of which own and name are the ID and the tool, if it has
// them. Without such a call it is an ID that no call has.
func (p *Pairs) Result(own, name string) string {
	fits := []func(o opened) bool{
		func(o opened) bool { return own != "" && o.own == own },
		func(o opened) bool { return o.name == name },
		func(opened) bool { return name == "" },
	}
	for _, fit := range fits {
		rest := p.open
		for i, o := range rest {
			if fit(o) {
				if p.open = p.open[1:]; i > 0 { // results come in the order of calls, mostly
					p.open = append(rest[:i:i], rest[i+1:]...)
				}
				return o.id
			}
		}
	}
	p.n++
	return fmt.Sprint("result-", p.n)
}

// ToolNames returns the names of the tools by the IDs of their calls.
func ToolNames(f *codec.File) map[string]string {
	names := map[string]string{}
	for _, m := range f.Journal.Messages() {
		for _, part := range m.Parts {
			if c, ok := part.(core.ToolCall); ok {
				names[c.ID] = c.Name
			}
		}
	}
	return names
}

// Open reports whether a call waits for its result.
func (p *Pairs) Open() bool { return len(p.open) > 0 }
