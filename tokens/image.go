package tokens

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"strings"

	"github.com/condensehq/condense/core"
)

// Anthropic's rule, https://docs.claude.com/en/docs/build-with-claude/vision: width times
// height over 750 tokens; images above 1568 pixels on an edge, or of more than about 1600
// tokens, are scaled down first.
const (
	pixelsPerToken = 750
	maxEdge        = 1568
	maxImageTokens = 1600
)

// imageTokens estimates the cost of an image.
func imageTokens(p core.Image) int {
	c, err := imageSize(p.Data)
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return maxImageTokens
	}
	w, h := float64(c.Width), float64(c.Height)
	scale := min(1, maxEdge/max(w, h))
	return int(min(math.Ceil(w*scale*h*scale/pixelsPerToken), maxImageTokens))
}

var errNoImage = errors.New("no PNG, JPEG, GIF or WebP")

// imageSize reads the size of an image from the beginning of its file.
func imageSize(data string) (image.Config, error) {
	if data == "" {
		return image.Config{}, errNoImage
	}
	// In a JPEG file the size follows the metadata. A megabyte of it is enough.
	r := bufio.NewReader(io.LimitReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)), 1<<20))
	const header = 30
	b, err := r.Peek(header)
	if err != nil {
		return image.Config{}, err
	}
	switch magic := string(b); {
	case strings.HasPrefix(magic, "\x89PNG"):
		return png.DecodeConfig(r)
	case strings.HasPrefix(magic, "\xff\xd8"):
		return jpeg.DecodeConfig(r)
	case strings.HasPrefix(magic, "GIF8"):
		return gif.DecodeConfig(r)
	case strings.HasPrefix(magic, "RIFF") && magic[8:12] == "WEBP":
		return webpSize([header]byte(b))
	}
	return image.Config{}, errNoImage
}

// webpSize reads the first chunk of a WebP file (RFC 9649), of which there are three
// kinds.
func webpSize(b [30]byte) (image.Config, error) {
	const bits14 = 1<<14 - 1
	switch string(b[12:16]) {
	case "VP8 ": // lossy: two times 14 bits, after a start code
		return image.Config{
			Width:  int(binary.LittleEndian.Uint16(b[26:]) & bits14),
			Height: int(binary.LittleEndian.Uint16(b[28:]) & bits14),
		}, nil
	case "VP8L": // lossless: two times 14 bits in a row, less one
		x := binary.LittleEndian.Uint32(b[21:])
		return image.Config{Width: int(x&bits14) + 1, Height: int(x>>14&bits14) + 1}, nil
	case "VP8X": // extended: two times 24 bits, less one
		return image.Config{
			Width:  (int(b[24]) | int(b[25])<<8 | int(b[26])<<16) + 1,
			Height: (int(b[27]) | int(b[28])<<8 | int(b[29])<<16) + 1,
		}, nil
	}
	return image.Config{}, errNoImage
}
