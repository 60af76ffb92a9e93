// Package count estimates the tokens of JSON. The reports of vendors correct the estimates.
package count

import (
	"bytes"
)

// BytesPerToken is typical of text and code with the usual tokenizers.
const BytesPerToken = 4

// mediaSize is the size in tokens of a typical image.
const mediaSize = 1600

// mediaMarks are how requests mark the data of an image or file: in a data URL it follows directly; in an Anthropic
// source and in Gemini's parts it is a member, after a short media type.
var mediaMarks = []struct{ mark, member string }{
	{`"base64"`, `"data":`}, {";base64,", ""}, {`"inlineData"`, `"data":`}, {`"inline_data"`, `"data":`},
}

// imagesMark is the name of the list of images in a message of Ollama's.
const imagesMark = `"images":`

// Tokens estimates the tokens of JSON; vendors' reports correct the estimate later. The data of an image or file
// counts as one typical image. It runs in linear time for any input.
func Tokens(raw []byte) int {
	const near = 200 // bytes between a mark and the data
	n, size := 0, len(raw)
	count := func(data []byte) (rest []byte) {
		end := bytes.IndexByte(data, '"')
		if end < 0 {
			return nil
		}
		if end > mediaSize*BytesPerToken {
			n += mediaSize
			size -= end
		}
		return data[end:]
	}
	for _, m := range mediaMarks {
		for rest := raw; rest != nil; {
			i := bytes.Index(rest, []byte(m.mark))
			if i < 0 {
				break
			}
			rest = rest[i+len(m.mark):]
			data := rest
			if m.member != "" {
				k := bytes.Index(rest[:min(len(rest), near+len(m.member))], []byte(m.member))
				if k < 0 {
					continue
				}
				data = bytes.TrimLeft(rest[k+len(m.member):], ` "`)
			}
			rest = count(data)
		}
	}
	for rest := raw; ; {
		i := bytes.Index(rest, []byte(imagesMark))
		if i < 0 {
			break
		}
		rest = bytes.TrimLeft(rest[i+len(imagesMark):], " ")
		for len(rest) > 1 && (rest[0] == '[' || rest[0] == ',') && rest[1] == '"' {
			if rest = count(rest[2:]); rest != nil {
				rest = rest[1:]
			}
		}
	}
	return n + (size+BytesPerToken-1)/BytesPerToken
}

// Message returns the tokens of a message, and estimates how many of them are images and files.
func Message(raw []byte) (tokens, media int) {
	for _, mark := range []string{"base64", "inlineData", "inline_data", imagesMark} {
		media += bytes.Count(raw, []byte(mark))
	}
	return Tokens(raw), mediaSize * media
}
