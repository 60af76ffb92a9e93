// Package count estimates the tokens of JSON. The reports of vendors correct the estimates.
package count

import "github.com/condensehq/condense/internal/media"

// BytesPerToken is typical of text and code with the usual tokenizers.
const BytesPerToken = 4

// Tokens estimates the tokens of JSON. Images, documents, audio and video cost what package media says, not their
// bytes. It runs in linear time for any input.
func Tokens(raw []byte) int {
	n, _ := Message(raw)
	return n
}

// Message returns the tokens of a message, and how many of them are those of media.
func Message(raw []byte) (tokens, ofMedia int) { return media.Count(raw, text) }

func text(b []byte) int { return (len(b) + BytesPerToken - 1) / BytesPerToken }
