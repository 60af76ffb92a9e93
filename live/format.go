package live

import (
	"bytes"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript"
)

// formats maps APIs to their names in package transcript.
var formats = map[wire.API]string{wire.Messages: "anthropic", wire.Chat: "openai", wire.Responses: "responses"}

// document reads messages.
func document(api wire.API, messages [][]byte) (*transcript.Document, error) {
	return transcript.Read(bytes.NewReader(rawjson.Array(messages)), &transcript.ReadOptions{Format: formats[api]})
}

// rawOf returns the JSON of messages as in the request.
func rawOf(messages []wire.Message) [][]byte {
	raw := make([][]byte, len(messages))
	for i := range messages {
		raw[i] = messages[i].Raw
	}
	return raw
}
