// Package request reads and writes the files that hold messages as the vendors' APIs take
// them: an array of messages, or a request with one.
package request

import (
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
)

// A decoder returns the message that raw is: its role, its parts, and in ID the ID that it has
// in the file, if any. The offset in an error counts from the start of raw.
type decoder func(raw []byte) (core.Message, *syntax.Error)

// ReadArray fills f with the messages of a JSON file: the file itself if it is an array,
// otherwise its member with the given name.
func ReadArray(f *codec.File, data []byte, member string, decode decoder) error {
	if err := syntax.Validate(data); err != nil {
		return err
	}
	start := rawjson.SkipSpace(data, 0)
	array := data[start:rawjson.SkipValue(data, start)]
	if rawjson.IsObject(array) {
		array = rawjson.Field(data, member)
		if !rawjson.IsArray(array) {
			return syntax.NoMessages(data, member, array)
		}
	} else if !rawjson.IsArray(array) {
		return &syntax.Error{Offset: start, Found: syntax.Describe(array), Want: "an array of messages, or an object with " + member}
	}
	e := &f.Envelope
	base := rawjson.Offset(data, array)
	first := rawjson.SkipSpace(array, 1)
	e.Sep = append([]byte{','}, array[1:first]...)
	var messages []core.Message
	taken := codec.IDs{}
	end := base + 1 // of the text in the envelope
	for raw := range rawjson.Elements(array) {
		n := len(messages) + 1
		at := rawjson.Offset(data, raw)
		m, err := decode(raw)
		if err != nil {
			err.Offset += at
			err.Message = n
			return err
		}
		m.ID = taken.Next(n, m.ID)
		m.Source = slices.Clip(raw)
		switch n {
		case 1:
			e.Head = data[:at:at]
		case 2:
			e.Sep = data[end:at:at]
		default:
			e.SetGap(m.ID, data[end:at:at])
		}
		messages = append(messages, m)
		end = at + len(raw)
	}
	if len(messages) == 0 {
		e.Head = data[:end:end]
	}
	e.Tail = data[end:]
	return f.Add(messages...)
}

// ReadAnthropic reads an array of messages, or a request with one.
func ReadAnthropic(data []byte, f *codec.File) error {
	if err := ReadArray(f, data, "messages", blocks.DecodeMessage); err != nil {
		return err
	}
	var system, tools, model, most []byte
	rawjson.Pick(data, []string{"system", "tools", "model", "max_tokens"}, &system, &tools, &model, &most)
	if system != nil {
		parts, err := blocks.Decode(system)
		if err != nil {
			err.Offset += rawjson.Offset(data, system)
			err.Found += ` in "system"`
			return err
		}
		f.System = blocks.Join(parts)
	}
	if tools != nil && !rawjson.IsNull(tools) {
		f.Tools = slices.Clip(tools)
	}
	f.Model, f.MaxOutput = rawjson.Text(model), rawjson.Int(most)
	return nil
}
