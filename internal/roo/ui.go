package roo

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The events of condensing among what a UI message says.
const (
	sayCondensed  = "condense_context"
	sayTruncated  = "sliding_window_truncation"
	sayAPIRequest = "api_req_started"
)

// A UIMessage is one element of ui_messages.json, what the person sees. It keeps its JSON
// and is immutable.
type UIMessage struct {
	raw string
	// The values of members as JSON, "" if absent.
	ts, typ, say, text, condense, truncation string
}

// ParseUI reads ui_messages.json: an array of objects. It fails on anything else and says
// where.
func ParseUI(data []byte) ([]*UIMessage, error) {
	objects, err := splitArray(data)
	if err != nil {
		return nil, fmt.Errorf("UI messages: %w", err)
	}
	slab := make([]UIMessage, len(objects))
	messages := make([]*UIMessage, len(objects))
	for i, raw := range objects {
		slab[i].parse(raw)
		messages[i] = &slab[i]
	}
	return messages, nil
}

// EncodeUI writes messages as Roo does: an array without space between its elements, each
// with the bytes that it was read from.
func EncodeUI(messages []*UIMessage) []byte {
	return joinArray(messages, (*UIMessage).rawText)
}

// rawText returns the JSON of u.
func (u *UIMessage) rawText() string {
	if u.raw == "" {
		return "null"
	}
	return u.raw
}

// parse sets u to the message that raw, a valid JSON object, holds.
func (u *UIMessage) parse(raw string) {
	*u = UIMessage{raw: raw}
	for c := (cursor{s: raw, i: 1}); c.more(); {
		key := c.key()
		value := c.value()
		switch key {
		case "ts":
			u.ts = value
		case "type":
			u.typ = value
		case "say":
			u.say = value
		case "text":
			u.text = value
		case "contextCondense":
			u.condense = value
		case "contextTruncation":
			u.truncation = value
		}
	}
}

// JSON returns the message as it was read, byte for byte. The caller owns the copy.
func (u *UIMessage) JSON() json.RawMessage { return json.RawMessage(u.rawText()) }

// MarshalJSON returns the message as it was read. Note that [json.Marshal] removes the
// space in it and escapes <, > and &; [EncodeUI] keeps every byte.
func (u *UIMessage) MarshalJSON() ([]byte, error) { return u.JSON(), nil }

// TS returns when the message was written in milliseconds since 1970, and false if it has
// no such number.
func (u *UIMessage) TS() (ms float64, ok bool) {
	if kindOf(u.ts) != kindNumber {
		return math.NaN(), false
	}
	return parseNumber(u.ts), true
}

// says reports whether the member say is what.
func (u *UIMessage) says(what string) bool {
	return kindOf(u.say) == kindString && unquote(u.say) == what
}

// condensed returns the name of the summary whose making u reports, "" if it reports none
// or does not say which.
func (u *UIMessage) condensed() string {
	if !u.says(sayCondensed) {
		return ""
	}
	return nameOf(lookup(u.condense, CondenseID.String()))
}

// truncated returns the name of the marker whose making u reports, "" if it reports none
// or does not say which.
func (u *UIMessage) truncated() string {
	if !u.says(sayTruncated) {
		return ""
	}
	return nameOf(lookup(u.truncation, TruncationID.String()))
}

// ContextTokens returns the size of the conversation in tokens as the last request to the
// model, or the last condensation, reported it; 0 if none did. A truncation reports none.
func ContextTokens(messages []*UIMessage) float64 {
	for _, u := range slices.Backward(messages) {
		if n := u.contextTokens(); n != 0 {
			return n
		}
	}
	return 0
}

// contextTokens returns the size that u reports, 0 if it reports none.
func (u *UIMessage) contextTokens() float64 {
	if kindOf(u.typ) != kindString || unquote(u.typ) != "say" {
		return 0
	}
	if u.says(sayCondensed) {
		return tokens(lookup(u.condense, "newContextTokens"))
	}
	if !u.says(sayAPIRequest) || kindOf(u.text) != kindString {
		return 0
	}
	report := strings.TrimSpace(unquote(u.text)) // JSON in a string
	if !json.Valid([]byte(report)) {
		return 0
	}
	return tokens(lookup(report, "tokensIn")) + tokens(lookup(report, "tokensOut"))
}

// tokens returns a JSON number of tokens, 0 for what is none.
func tokens(raw string) float64 {
	if kindOf(raw) != kindNumber {
		return 0
	}
	return parseNumber(raw)
}
