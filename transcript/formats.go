package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/anthropic"
	"github.com/condensehq/condense/internal/codec/converse"
	"github.com/condensehq/condense/internal/codec/geminiapi"
	"github.com/condensehq/condense/internal/codec/openai"
	"github.com/condensehq/condense/internal/codec/responses"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/aider"
	"github.com/condensehq/condense/transcript/internal/claudecode"
	"github.com/condensehq/condense/transcript/internal/codex"
	"github.com/condensehq/condense/transcript/internal/condense"
	"github.com/condensehq/condense/transcript/internal/copilot"
	"github.com/condensehq/condense/transcript/internal/exports"
	"github.com/condensehq/condense/transcript/internal/gemini"
	"github.com/condensehq/condense/transcript/internal/opencode"
	"github.com/condensehq/condense/transcript/internal/pi"
	"github.com/condensehq/condense/transcript/internal/roo"
	"github.com/condensehq/condense/transcript/internal/trace"
)

// codecs are all formats, the most specific first: detection takes the first that accepts the file. CONTRIBUTING.md says how to
// add one.
var codecs = slices.Concat([]codec.Codec{
	condense.Codec,
	gemini.Qwen,
	claudecode.Codec,
	claudecode.Array,
	codex.Codec,
	pi.Codec,
	copilot.Codec,
	opencode.Codec,
	gemini.Codec,
	roo.Codec,
	trace.Codec,
	responses.Codec,
	geminiapi.Codec,
	converse.Codec,
	openai.Codec,
	anthropic.Codec,
}, exports.Codecs, []codec.Codec{aider.Codec})

// A Format is a way to store a conversation.
type Format struct {
	Name string // as [Document.Write] and [ReadOptions] take it
	Doc  string // one line
	// ReadOnly reports that conversations are only read from this format: they are written in
	// it only if they came from it and nothing changed.
	ReadOnly bool
}

// Formats returns the formats in the order of detection.
func Formats() []Format {
	out := make([]Format, len(codecs))
	for i, c := range codecs {
		out[i] = Format{c.Name, c.Doc, c.Write == nil}
	}
	return out
}

// Detect returns the name of the format of data, which may be compressed. The error describes
// the data and lists the formats.
func Detect(data []byte) (string, error) {
	data, err := ReadAll(bytes.NewReader(data), 0)
	if err != nil {
		return "", err
	}
	c, err := choose(bytes.TrimPrefix(data, codec.ByteOrderMark), "")
	if err != nil {
		return "", err
	}
	return c.Name, nil
}

func choose(data []byte, name string) (*codec.Codec, error) {
	if name != "" {
		return byName(name)
	}
	for i := range codecs {
		if codecs[i].Detect(data) {
			return &codecs[i], nil
		}
	}
	if err := syntax.Validate(data); err != nil && err.CutOff {
		return nil, err
	}
	return nil, fmt.Errorf("unknown format: found %s; want one of %s", seen(data), names())
}

func byName(name string) (*codec.Codec, error) {
	for i := range codecs {
		if codecs[i].Name == name {
			return &codecs[i], nil
		}
	}
	return nil, fmt.Errorf("unknown format %q; want one of %s", name, names())
}

func names() string {
	all := make([]string, len(codecs))
	for i, c := range codecs {
		all[i] = c.Name
	}
	return strings.Join(all, ", ")
}

// seen describes data that is in no known format.
func seen(data []byte) string {
	at := rawjson.SkipSpace(data, 0)
	if at == len(data) {
		return "an empty file"
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return "UTF-16 text (convert the file to UTF-8)"
	}
	switch data[at] {
	case '{':
		if keys := keysOf(data[at:]); keys != "no fields" || json.Valid(data[at:]) {
			return "an object with " + keys
		}
		return "an object that is no JSON, or breaks off"
	case '[':
		for first := range rawjson.Elements(data[at:]) {
			if rawjson.IsObject(first) {
				return "an array of objects with " + keysOf(first)
			}
			return "an array of " + syntax.Describe(first)
		}
		return "an array that does not end"
	}
	line, _, _ := bytes.Cut(data[at:min(len(data), at+200)], []byte("\n"))
	if r := []rune(strings.ToValidUTF8(string(line), "\ufffd")); len(r) > 40 {
		return fmt.Sprintf("text that begins %q", string(r[:40])+"…")
	}
	return fmt.Sprintf("text that begins %q", line)
}

// keysOf lists the first few keys of the object raw.
func keysOf(raw []byte) string {
	var keys []string
	for k := range rawjson.Fields(raw) {
		if len(keys) == 8 {
			keys = append(keys, "…")
			break
		}
		keys = append(keys, string(k))
	}
	if len(keys) == 0 {
		return "no fields"
	}
	return "the fields " + strings.Join(keys, ", ")
}
