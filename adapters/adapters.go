// Package adapters keeps the conversation of an agent, in the message types of a Go library, within its model's window.
//
// The folders below it know the types of one library each, in modules of their own, so that an agent builds none but its own
// library: eino, langchaingo, adk, anthropic, openai. For another library a [Codec] is three methods.
package adapters

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
)

// A Codec knows the message type M of a library.
type Codec[M any] interface {
	// Read returns a message as core has it, without ID. Anything that core has no part for is an Opaque. Its Source is all of m as
	// JSON, from which Parse makes it again.
	Read(m M) (core.Message, error)
	Parse(source json.RawMessage) (M, error)
	// Write returns m in the library's type. Was is the message before its parts changed, from which the fields come that core does
	// not have; it is nil if m is new.
	Write(m core.Message, was *M) ([]M, error)
}

// ToCore returns messages as core has them, with their Source.
func ToCore[M any](codec Codec[M], messages []M) ([]core.Message, error) {
	out := make([]core.Message, 0, len(messages))
	for i, m := range messages {
		c, err := codec.Read(m)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// FromCore returns messages in the type of a library. A message whose parts are those of its Source comes from there, with
// everything that it had; so FromCore of ToCore changes nothing.
func FromCore[M any](codec Codec[M], messages []core.Message) ([]M, error) {
	var out []M
	for i, m := range messages {
		written, err := fromSource(codec, m)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		out = append(out, written...)
	}
	return out, nil
}

func fromSource[M any](codec Codec[M], m core.Message) ([]M, error) {
	if m.Source == nil {
		return codec.Write(m, nil)
	}
	was, err := codec.Parse(m.Source)
	if err != nil {
		return nil, err
	}
	before, err := codec.Read(was)
	if err != nil {
		return nil, err
	}
	if core.EqualParts(before.Parts, m.Parts) {
		return []M{was}, nil
	}
	return codec.Write(m, &was)
}

// Kept returns, for each part after a change, the index of the same part before it; -1 for a part that is new or changed. Indices
// only rise.
func Kept(before, after []core.Part) []int {
	out, next := make([]int, len(after)), 0
	for i, p := range after {
		out[i] = -1
		for j := next; j < len(before); j++ {
			if core.EqualParts(before[j:j+1], []core.Part{p}) {
				out[i], next = j, j+1
				break
			}
		}
	}
	return out
}

// Calls returns the calls among parts, and the results.
func Calls(parts []core.Part) (calls []core.ToolCall, results []core.ToolResult) {
	for _, p := range parts {
		switch p := p.(type) {
		case core.ToolCall:
			calls = append(calls, p)
		case core.ToolResult:
			results = append(results, p)
		case core.Text, core.Image, core.Reasoning, core.Opaque:
		}
	}
	return calls, results
}

// Joined returns the texts among parts, one after the other.
func Joined(parts []core.Part) string {
	var texts []string
	for _, p := range parts {
		if t, ok := p.(core.Text); ok && t != "" {
			texts = append(texts, string(t))
		}
	}
	return strings.Join(texts, "\n")
}

// ImageOf returns the image that url refers to, or holds.
func ImageOf(url string) core.Image {
	if rest, ok := strings.CutPrefix(url, "data:"); ok {
		if kind, data, ok := strings.Cut(rest, ";base64,"); ok {
			return core.Image{MediaType: kind, Data: data}
		}
	}
	return core.Image{URL: url}
}

// URLOf is the opposite of [ImageOf].
func URLOf(image core.Image) string {
	if image.URL != "" {
		return image.URL
	}
	return "data:" + image.MediaType + ";base64," + image.Data
}
