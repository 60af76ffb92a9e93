// Package messages reads the messages of requests as transcripts.
package messages

import (
	"bytes"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript"
)

// Formats maps APIs to their names in package transcript.
var Formats = map[wire.API]string{wire.Messages: "anthropic", wire.Chat: "openai", wire.Responses: "responses", wire.Gemini: "gemini-api", wire.Generate: "ollama"}

// Read reads messages.
func Read(api wire.API, messages [][]byte) (*transcript.Document, error) {
	return transcript.Read(bytes.NewReader(rawjson.Array(messages)), &transcript.ReadOptions{Format: Formats[api]})
}

// Raw returns the JSON of messages as in the request.
func Raw(messages []wire.Message) [][]byte {
	raw := make([][]byte, len(messages))
	for i := range messages {
		raw[i] = messages[i].Raw
	}
	return raw
}
