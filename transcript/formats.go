package transcript

import (
	"bytes"
	"fmt"
	"strings"
)

// codecs are all formats, the most particular first: detection takes the first that
// recognises the file.
var codecs = []Codec{
	condenseCodec,
	claudecodeCodec,
	codexCodec,
	piCodec,
	opencodeCodec,
	geminiCodec,
	rooCodec,
	traceCodec,
	openaiCodec,
	anthropicCodec,
}

// A Format is a way to store a conversation.
type Format struct {
	Name string // as [Document.Write] and [ReadOptions] take it
	Doc  string // one line
	// ReadOnly says that conversations are read from this format, and written in it only if
	// they came from it and nothing changed.
	ReadOnly bool
}

// Formats returns the formats in the order in which they are tried.
func Formats() []Format {
	out := make([]Format, len(codecs))
	for i, c := range codecs {
		out[i] = Format{c.Name, c.Doc, c.Write == nil}
	}
	return out
}

// Detect returns the name of the format of data, which may be compressed. The error
// says what was seen and lists the formats.
func Detect(data []byte) (string, error) {
	data, err := ReadAll(bytes.NewReader(data), 0)
	if err != nil {
		return "", err
	}
	c, err := choose(bytes.TrimPrefix(data, byteOrderMark), "")
	if err != nil {
		return "", err
	}
	return c.Name, nil
}

func choose(data []byte, name string) (*Codec, error) {
	if name != "" {
		return byName(name)
	}
	for i := range codecs {
		if codecs[i].Detect(data) {
			return &codecs[i], nil
		}
	}
	if err := validate(data); err != nil && err.CutOff {
		return nil, err
	}
	return nil, fmt.Errorf("unknown format: found %s; want one of %s", seen(data), names())
}

func byName(name string) (*Codec, error) {
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
