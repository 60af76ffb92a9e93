package live

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// A question holds the options of a call to /v1/compress, apart from the model and the messages.
type question struct {
	session string // hash of the caller's session ID; empty without a session
	id      string // session ID as the caller sent it

	frozen  int     // messages at the front that stay byte for byte; ignored with a session
	recent  int     // messages at the end that are not condensed
	users   *bool   // whether messages of users may be condensed; nil: only if there is no other way
	ratio   float64 // share of the tokens to keep; 0: as the profile says
	budget  int     // tokens to fit into, instead of the model's window; 0: the window
	recalls bool    // the caller wants handles

	added []int // indices of messages that complete added, which are not returned
}

// longestSession is the most bytes that a session ID may have.
const longestSession = 256

// questionOf reads the options in a body. The error says which one is not valid.
func questionOf(body []byte) (*question, error) {
	var got struct {
		Session *string         `json:"session_id"`
		Budget  *int            `json:"token_budget"`
		Config  json.RawMessage `json:"config"`
	}
	var c struct {
		Mode     string   `json:"mode"`
		Frozen   *int     `json:"frozen_message_count"`
		Session  *string  `json:"session_id"`
		Users    *bool    `json:"compress_user_messages"`
		Ratio    *float64 `json:"target_ratio"`
		Recent   *int     `json:"protect_recent"`
		Retrieve bool     `json:"retrieve"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, err
	}
	if len(got.Config) > 0 {
		if err := json.Unmarshal(got.Config, &c); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
	}
	q := &question{users: c.Users, recalls: c.Retrieve}
	switch c.Mode {
	case "", "lossy_inline", "lossless_then_lossy":
	case "ccr":
		q.recalls = true
	default:
		return nil, fmt.Errorf("config.mode: %q is none of ccr, lossy_inline, lossless_then_lossy; omit it", plain.Clip(c.Mode))
	}
	for _, n := range []struct {
		name string
		from *int
		to   *int
	}{{"config.frozen_message_count", c.Frozen, &q.frozen}, {"config.protect_recent", c.Recent, &q.recent}, {"token_budget", got.Budget, &q.budget}} {
		if n.from != nil {
			if *n.to = *n.from; *n.from < 0 {
				return nil, fmt.Errorf("%s: %d is negative", n.name, *n.from)
			}
		}
	}
	if c.Ratio != nil {
		if q.ratio = *c.Ratio; !(q.ratio > 0 && q.ratio <= 1) {
			return nil, fmt.Errorf("config.target_ratio: %v is not above 0 and at most 1", *c.Ratio)
		}
	}
	if id := cmp.Or(c.Session, got.Session); id != nil {
		if q.id = *id; strings.TrimSpace(q.id) == "" || len(q.id) > longestSession {
			return nil, fmt.Errorf("session_id: use 1 to %d bytes", longestSession)
		}
		const size = 16
		sum := sha256.Sum256([]byte(q.id)) // a session ID can be any text
		q.session = "compress:" + hex.EncodeToString(sum[:size])
	}
	return q, nil
}

// credentials returns the headers that identify the caller; nil if its Authorization is the gateway's token, which must
// not count because it is replaced now and then.
func credentials(t *target, h http.Header) http.Header {
	if t.bearer {
		return nil
	}
	return h
}

// shapeOf returns the API whose format the messages have. Messages of plain text fit any API: they count as Chat, which
// most callers use.
func shapeOf(body []byte) wire.API {
	if rawjson.Field(body, "system") != nil {
		return wire.Messages
	}
	first := true
	for m := range rawjson.Elements(rawjson.Field(body, "messages")) {
		role := rawjson.Text(rawjson.Field(m, "role"))
		switch {
		// Later system messages do not tell, because Anthropic has some too.
		case role == "tool", role == "developer", role == "function", role == "system" && first:
			return wire.Chat
		}
		first = false
		if rawjson.Field(m, "tool_calls") != nil || rawjson.Field(m, "function_call") != nil {
			return wire.Chat
		}
		for b := range rawjson.Elements(rawjson.Field(m, "content")) {
			switch rawjson.Text(rawjson.Field(b, "type")) {
			case "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document":
				return wire.Messages
			case "image_url", "input_audio", "file", "refusal":
				return wire.Chat
			}
			if rawjson.Field(b, "cache_control") != nil {
				return wire.Messages
			}
		}
	}
	return wire.Chat
}

// complete returns the messages with a call added for each tool result that has none, because LiteLLM leaves out the
// model's messages. It notes the added ones in q.added.
func (q *question) complete(messages []wire.Message) [][]byte {
	var all [][]byte
	open := map[string]bool{}
	frozen, recent := q.frozen, len(messages)-q.recent
	for i, m := range messages {
		for _, id := range m.Calls {
			open[id] = true
		}
		if m.Role == "tool" && len(m.Results) == 1 && !open[m.Results[0]] {
			q.added = append(q.added, len(all))
			all = append(all, rawjson.Append(nil, `{"role":"assistant","content":null,"tool_calls":[{"id":?,"type":"function","function":{"name":"tool","arguments":"{}"}}]}`, m.Results[0]))
			if i < frozen {
				q.frozen++
			}
			if i >= recent {
				q.recent++
			}
		}
		all = append(all, m.Raw)
	}
	return all
}

// pins returns the IDs of the messages in view that must stay unchanged. With all, it adds users' messages, which should stay
// if possible.
func (q *question) pins(view []core.Message, all bool) []string {
	var ids []string
	for i := range view {
		m := &view[i]
		typed := m.Role == core.RoleUser && m.Kind == core.KindOriginal && slices.ContainsFunc(m.Parts, func(p core.Part) bool {
			_, ok := p.(core.Text)
			return ok
		})
		users := typed && (q.users == nil && all || q.users != nil && !*q.users)
		if i < q.frozen && q.session == "" || i >= len(view)-q.recent || users {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
