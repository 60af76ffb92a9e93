package transcript

import (
	"slices"

	"github.com/condensehq/condense/core"
)

// A decoder returns what the message raw says: its role, its parts, and the source's
// own ID for it, if it has one, in ID. The offset in an error counts from the start of
// raw.
type decoder func(raw []byte) (core.Message, *fault)

// readArray fills f from the messages of a JSON file: the file itself if it is an
// array, else its member "messages".
func readArray(f *File, data []byte, decode decoder) error {
	if err := validate(data); err != nil {
		return err
	}
	start := skipSpace(data, 0)
	array := data[start:skipValue(data, start)]
	if isObject(array) {
		array = field(data, "messages")
		if !isArray(array) {
			return wrongMessages(data, array)
		}
	} else if !isArray(array) {
		return &fault{Offset: start, Found: describe(array), Want: "an array of messages, or an object with messages"}
	}
	e := &f.Envelope
	base := offsetIn(data, array)
	first := skipSpace(array, 1)
	e.sep = append([]byte{','}, array[1:first]...)
	var messages []core.Message
	taken := ids{}
	end := base + 1 // of what the envelope has
	for raw := range elements(array) {
		n := len(messages) + 1
		at := offsetIn(data, raw)
		m, err := decode(raw)
		if err != nil {
			err.Offset += at
			err.Message = n
			return err
		}
		m.ID = taken.next(n, m.ID)
		m.Source = slices.Clip(raw)
		switch n {
		case 1:
			e.head = data[:at:at]
		case 2:
			e.sep = data[end:at:at]
		default:
			e.setGap(m.ID, data[end:at:at])
		}
		messages = append(messages, m)
		end = at + len(raw)
	}
	if len(messages) == 0 {
		e.head = data[:end:end]
	}
	e.tail = data[end:]
	return f.Add(messages...)
}

// readAnthropic reads an array of messages, or a request with one.
func readAnthropic(data []byte, f *File) error {
	if err := readArray(f, data, decodeAnthropic); err != nil {
		return err
	}
	for k, v := range fields(data) {
		switch string(k) {
		case "system":
			parts, err := decodeContent(v)
			if err != nil {
				err.Offset += offsetIn(data, v)
				err.Found += ` in "system"`
				return err
			}
			f.System = joinText(parts)
		case "tools":
			if !isNull(v) {
				f.Tools = slices.Clip(v)
			}
		case "model":
			f.Model = text(v)
		case "max_tokens":
			f.MaxOutput = number(v)
		}
	}
	return nil
}
