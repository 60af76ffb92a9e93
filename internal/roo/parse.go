package roo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Parse reads api_conversation_history.json: an array of objects.
//
// It fails on anything else and says where. Roo takes such a file for an empty
// conversation, and overwrites it with the next message.
func Parse(data []byte) ([]*Message, error) {
	objects, err := splitArray(data)
	if err != nil {
		return nil, fmt.Errorf("conversation history: %w", err)
	}
	slab := make([]Message, len(objects))
	messages := make([]*Message, len(objects))
	for i, raw := range objects {
		slab[i].parse(raw)
		messages[i] = &slab[i]
	}
	return messages, nil
}

// Encode writes messages as Roo does: an array without space between its elements. A
// message that was not edited has the bytes that it was read from, so reading a file of
// Roo's and writing it changes nothing.
func Encode(messages []*Message) []byte {
	return joinArray(messages, (*Message).text)
}

// text returns the JSON of m.
func (m *Message) text() string {
	if m.raw == "" {
		return "null"
	}
	return m.raw
}

// splitArray cuts an array of objects into its elements.
func splitArray(data []byte) ([]string, error) {
	if err := checkSyntax(data); err != nil {
		return nil, err
	}
	// A string cannot change under the messages that are cut from it.
	c := cursor{s: string(data)}
	c.space()
	if c.s[c.i] != '[' {
		return nil, fmt.Errorf("got %s, want an array of messages", describe(c.s[c.i:]))
	}
	var objects []string
	for c.enter(); c.more(); {
		raw := c.value()
		if kindOf(raw) != kindObject {
			return nil, fmt.Errorf("message %d: got %s, want an object", len(objects), describe(raw))
		}
		objects = append(objects, raw)
	}
	return objects, nil
}

// joinArray writes an array without space between its elements.
func joinArray[T any](elements []T, text func(T) string) []byte {
	size := len("[]") + len(elements)
	for _, e := range elements {
		size += len(text(e))
	}
	array := make([]byte, 0, size)
	array = append(array, '[')
	for i, e := range elements {
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, text(e)...)
	}
	return append(array, ']')
}

// checkSyntax reports what is wrong with data as JSON, and where.
func checkSyntax(data []byte) error {
	if json.Valid(data) {
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("the input is empty")
	}
	if bytes.HasPrefix(data, []byte("\xEF\xBB\xBF")) {
		return errors.New("the input begins with a byte order mark, which JSON does not allow: save it without")
	}
	var v json.RawMessage
	err := json.Unmarshal(data, &v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	read := data[:min(max(int(syntax.Offset)-1, 0), len(data))]
	line := bytes.Count(read, []byte("\n")) + 1
	column := len(read) - bytes.LastIndexByte(read, '\n')
	return fmt.Errorf("line %d, byte %d: %w", line, column, err)
}

// describe names the kind of a JSON value in an error.
func describe(raw string) string {
	switch kindOf(raw) {
	case kindNull:
		return "null"
	case kindBool:
		return "a boolean"
	case kindNumber:
		return "a number"
	case kindString:
		return "a string"
	case kindArray:
		return "an array"
	case kindObject:
		return "an object"
	case kindUndefined:
	}
	return "nothing"
}
