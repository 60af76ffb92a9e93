// Package count estimates the tokens of JSON. The reports of vendors correct the estimates.
package count

import (
	"bytes"
)

// BytesPerToken is typical of text and code with the usual tokenizers.
const BytesPerToken = 4

// mediaSize is the size in tokens of a typical image.
const mediaSize = 1600

// Tokens estimates the tokens of JSON; vendors' reports correct the estimate later. The data of an image or file
// counts as one typical image. It runs in linear time for any input.
func Tokens(raw []byte) int {
	const media = mediaSize
	const near = 200 // in an Anthropic source, the data follows the mark and a short media type
	n, size := 0, len(raw)
	for _, mark := range []string{`"base64"`, ";base64,"} {
		for rest := raw; ; {
			i := bytes.Index(rest, []byte(mark))
			if i < 0 {
				break
			}
			rest = rest[i+len(mark):]
			data := rest
			if mark[0] == '"' {
				const member = `"data":`
				k := bytes.Index(rest[:min(len(rest), near+len(member))], []byte(member))
				if k < 0 {
					continue
				}
				data = bytes.TrimLeft(rest[k+len(member):], ` "`)
			}
			end := bytes.IndexByte(data, '"')
			if end < 0 {
				break
			}
			if end > media*BytesPerToken {
				n += media
				size -= end
			}
			rest = data[end:]
		}
	}
	return n + (size+BytesPerToken-1)/BytesPerToken
}

// Media estimates how many tokens of our count of a request are images and files.
func Media(body []byte) int { return mediaSize * bytes.Count(body, []byte("base64")) }
