package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/condensehq/condense/core"
)

// An originalLine is a line of a file with originals.
type originalLine struct {
	// Handles are the handles of the parts of the message and of the content of its tool results.
	Handles []string     `json:"handles"`
	Message core.Message `json:"message"`
}

// originalStart is how every line of originals begins.
const originalStart = `{"handles":`

// IsOriginals reports whether data begins as [EncodeOriginals] begins.
func IsOriginals(data []byte) bool { return bytes.HasPrefix(data, []byte(originalStart)) }

// EncodeOriginals writes messages as JSON, one a line, each with the handles of its content,
// by which an agent finds content that a condensation removed:
//
//	{"handles":["0123456789"],"message":{…}}     see [core.Message.MarshalJSON]
//
// Source is left out: it repeats Parts.
func EncodeOriginals(w io.Writer, messages []core.Message) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, m := range messages {
		m.Source = nil
		o := originalLine{Handles: []string{}, Message: m}
		for h := range Handles(m.Parts) {
			if !slices.Contains(o.Handles, h) {
				o.Handles = append(o.Handles, h)
			}
		}
		if err := e.Encode(o); err != nil {
			return fmt.Errorf("message %q: %w", m.ID, err)
		}
	}
	return nil
}

// DecodeOriginals reads the output of [EncodeOriginals]. The error names the line.
func DecodeOriginals(r io.Reader) ([]core.Message, error) {
	in := bufio.NewReader(r)
	var messages []core.Message
	for line := 1; ; line++ {
		data, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if len(data) == 0 {
			return messages, nil
		}
		var o originalLine
		if !IsOriginals(data) {
			return nil, fmt.Errorf(`line %d: found %q; want {"handles":…,"message":…}`, line, quote(bytes.TrimSpace(data)))
		}
		if err := unmarshal(data, &o); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		messages = append(messages, o.Message)
	}
}
