// Package anthropic is the client of Anthropic's Messages API, and of servers and gateways
// that speak it.
package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/model"
)

// New returns the client of a model; see [remote.New]. A base URL may end before or
// after /v1. Without one the model is Anthropic's own, with the key in ANTHROPIC_API_KEY
// unless the options name another place.
func New(o remote.Options) (*remote.Client, error) { return remote.New(&vendor, o) }

const (
	baseURL = "https://api.anthropic.com"
	keyEnv  = "ANTHROPIC_API_KEY"
	path    = "/v1/messages"
)

var vendor = remote.Vendor{
	BaseURL:  baseURL,
	KeyEnv:   keyEnv,
	Path:     path,
	Sign:     sign,
	Body:     body,
	Optional: []string{"cache_control", "tool_choice"},
	Event:    event,
	Whole:    whole,

	Compaction: &compaction, Compacts: "anthropic",
}

// version is the version of the API, the only one there is.
const version = "2023-06-01"

func sign(header http.Header, key string) {
	header.Set("anthropic-version", version)
	if key != "" {
		header.Set("x-api-key", key)
	}
}

// defaultOutput is the longest answer of a prompt that leaves it to the model: the API
// demands a number, and a summary that is longer is none.
const defaultOutput = 8192

func maxTokens(p *model.Prompt, longest int) int {
	n := cmp.Or(max(p.MaxOutput, 0), defaultOutput)
	if longest > 0 {
		n = min(n, longest)
	}
	return n
}

// usage is the usage of an answer. The numbers of input do not overlap.
type usage struct {
	Input   *int `json:"input_tokens"`
	Read    *int `json:"cache_read_input_tokens"`
	Written *int `json:"cache_creation_input_tokens"`
	Output  *int `json:"output_tokens"`
}

// A block is a piece of an answer, or an event's addition to one.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
	Name string `json:"name"`
}

// A message is an answer, or its beginning.
type message struct {
	Content    []block `json:"content"`
	StopReason string  `json:"stop_reason"`
	Usage      *usage  `json:"usage"`
}

// event adds an event of the stream. Unknown kinds are ignored, as the API requires.
func event(r *remote.Reply, _ string, data []byte) error {
	var e struct {
		Type    string  `json:"type"`
		Message message `json:"message"`
		Block   block   `json:"content_block"`
		Delta   struct {
			block
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
		Usage *usage          `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event is not its JSON: %w", err)
	}
	switch e.Type {
	case "message_start":
		meter(r, e.Message.Usage)
	case "content_block_start":
		add(r, e.Block)
	case "content_block_delta":
		if e.Delta.Type == "text_delta" {
			r.Text.WriteString(e.Delta.Text)
		}
	case "message_delta":
		meter(r, e.Usage)
		stop(r, e.Delta.StopReason)
	case "message_stop":
		r.Ended, r.Done = true, true
	case "error":
		if err := remote.Reported(0, data); err != nil {
			return err
		}
		return fmt.Errorf("an error that says nothing: %.100q", data)
	case "":
		return fmt.Errorf("an event without a type: %.100q", data)
	}
	return nil
}

func whole(r *remote.Reply, data []byte) error {
	if e := remote.Reported(0, data); e != nil {
		return e
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	if m.StopReason == "" {
		return fmt.Errorf("no stop_reason in %.100q", data)
	}
	for _, b := range m.Content {
		add(r, b)
	}
	meter(r, m.Usage)
	stop(r, m.StopReason)
	r.Done = true
	return nil
}

func add(r *remote.Reply, b block) {
	switch b.Type {
	case "text":
		r.Text.WriteString(b.Text)
	case "tool_use", "server_tool_use", "mcp_tool_use":
		r.Silence = fmt.Sprintf("it called the tool %.64q", b.Name)
	}
}

// stop records why the model stopped.
func stop(r *remote.Reply, reason string) {
	switch reason {
	case "":
		return
	case "max_tokens", "model_context_window_exceeded":
		r.Truncated = true
	case "refusal":
		r.Refused, r.Silence = true, "it refused"
	}
	r.Ended = true
}

func meter(r *remote.Reply, u *usage) {
	if u == nil {
		return
	}
	if u.Read != nil || u.Written != nil || u.Input != nil {
		input := r.Usage.InputTokens - r.Usage.CachedTokens - r.Written
		set(&input, u.Input)
		set(&r.Usage.CachedTokens, u.Read)
		set(&r.Written, u.Written)
		r.Usage.InputTokens = input + r.Usage.CachedTokens + r.Written
	}
	set(&r.Usage.OutputTokens, u.Output)
	r.Metered = r.Usage.InputTokens > 0 // nothing is read for nothing
}

// set replaces a number that a later event repeats or raises.
func set(to *int, n *int) {
	const most = 1e12 // more is wrong, and sums would overflow
	if n != nil {
		*to = min(max(0, *n), most)
	}
}
