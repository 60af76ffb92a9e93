package media

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
)

// tokens returns the cost of an image, whose sides are 0 if they are unknown.
func (s sight) tokens(width, height int) int {
	w, h := float64(width), float64(height)
	if w <= 0 || h <= 0 {
		return usualImage
	}
	scale := min(1, s.edge/max(w, h))
	return int(math.Ceil(min(math.Ceil(w*scale/s.patch)*math.Ceil(h*scale/s.patch), s.most) * s.weight))
}

// imageHead is how much of an image is read, in base64: in a JPEG file the size follows the metadata. A megabyte of it
// is enough.
const imageHead = 1 << 20 / 3 * 4

// imageSize reads the size of a PNG, JPEG, GIF or WebP image from the beginning of its file in base64; zeros for others.
func imageSize(data string) (width, height int) {
	r := bufio.NewReader(io.LimitReader(decoder(data), 1<<20))
	const header = 30
	b, err := r.Peek(header)
	if err != nil {
		return 0, 0
	}
	var c image.Config
	switch magic := string(b); {
	case strings.HasPrefix(magic, "\x89PNG"):
		c, err = png.DecodeConfig(r)
	case strings.HasPrefix(magic, "\xff\xd8"):
		c, err = jpeg.DecodeConfig(r)
	case strings.HasPrefix(magic, "GIF8"):
		c, err = gif.DecodeConfig(r)
	case strings.HasPrefix(magic, "RIFF") && magic[8:12] == "WEBP":
		c = webpSize([header]byte(b))
	}
	if err != nil {
		return 0, 0
	}
	return c.Width, c.Height
}

// webpSize reads the first chunk of a WebP file (RFC 9649), of which there are three kinds.
func webpSize(b [30]byte) image.Config {
	const bits14 = 1<<14 - 1
	switch string(b[12:16]) {
	case "VP8 ": // lossy: two times 14 bits, after a start code
		return image.Config{Width: int(binary.LittleEndian.Uint16(b[26:]) & bits14), Height: int(binary.LittleEndian.Uint16(b[28:]) & bits14)}
	case "VP8L": // lossless: two times 14 bits in a row, less one
		x := binary.LittleEndian.Uint32(b[21:])
		return image.Config{Width: int(x&bits14) + 1, Height: int(x>>14&bits14) + 1}
	case "VP8X": // extended: two times 24 bits, less one
		return image.Config{
			Width:  (int(b[24]) | int(b[25])<<8 | int(b[26])<<16) + 1,
			Height: (int(b[27]) | int(b[28])<<8 | int(b[29])<<16) + 1,
		}
	}
	return image.Config{}
}

// decoder decodes base64 of both alphabets, with or without padding.
func decoder(s string) io.Reader {
	e := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		e = base64.RawURLEncoding
	}
	return base64.NewDecoder(e, strings.NewReader(strings.TrimRight(s, "=")))
}

// extension returns a media type, or the extension of a name in lower case.
func extension(format string) string {
	format, _, _ = strings.Cut(format, ";")
	if !strings.Contains(format, "/") {
		format = format[strings.LastIndexByte(format, '.')+1:]
	}
	return strings.ToLower(format)
}

// isText reports whether a media type, an extension or a name is a text's.
func isText(format string) bool {
	switch e := extension(format); e {
	case "txt", "md", "csv", "html", "json", "xml", "application/json", "application/xml", "application/yaml", "application/x-yaml",
		"application/javascript", "application/x-javascript", "application/x-python", "application/sql":
		return true
	default:
		return strings.HasPrefix(e, "text/")
	}
}

// isOffice reports whether a media type, an extension or a name is one of a PDF or of an office program.
func isOffice(format string) bool {
	switch e := extension(format); e {
	case "pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "epub":
		return true
	default:
		return e == "application/pdf" || e == "application/msword" || strings.Contains(e, "officedocument") ||
			strings.HasPrefix(e, "application/vnd.ms-")
	}
}

// looksText reports whether a file of unknown kind is a text.
func looksText(b []byte) bool {
	head := b[:min(len(b), 1<<10)]
	for cut := 0; cut < utf8.UTFMax && !utf8.Valid(head); cut++ { // the last character may be cut
		head = head[:len(head)-1]
	}
	return len(head) > 0 && utf8.Valid(head) && bytes.IndexByte(head, 0) < 0 && !isPDF(b)
}

func isPDF(b []byte) bool { return bytes.Contains(b[:min(len(b), 1<<10)], []byte("%PDF")) }

const (
	maxPages    = 1000 // Gemini's limit, the highest
	maxTrees    = 256  // nodes of the tree of pages that are read
	nodeBytes   = 16 << 10
	maxInflated = 16 << 20 // bytes
	maxStreams  = 10_000
)

var (
	pagesCount = plain.Pattern(`/Count\s+(\d{1,7})\b`)
	linearized = plain.Pattern(`/Linearized[^>]{0,300}?/N\s+(\d{1,7})\b`)
	onePage    = plain.Pattern(`/Type\s*/Page[^A-Za-z]`)
)

// pages counts the pages of a PDF file: by the tree of pages, else by the pages themselves, which may be compressed (ISO
// 32000-1, 7.5.7 and 7.7.3).
func pages(b []byte) (n int, known bool) {
	if !isPDF(b) {
		return 0, false
	}
	if m := linearized().FindSubmatch(b[:min(len(b), 1<<10)]); m != nil {
		n, _ = strconv.Atoi(string(m[1]))
	}
	if n == 0 {
		n = treePages(b)
	}
	if n == 0 {
		n = len(onePage().FindAllIndex(b, maxPages))
		inflate(b, func(objects []byte) { n += len(onePage().FindAllIndex(objects, maxPages)) })
	}
	if m := pagesCount().FindSubmatch(b); n == 0 && m != nil {
		n, _ = strconv.Atoi(string(m[1]))
	}
	return min(n, maxPages), n > 0
}

// treePages returns the highest count of a node of the tree of pages.
func treePages(b []byte) int {
	n := 0
	for rest, at := b, 0; at < maxTrees; at++ {
		i := bytes.Index(rest, []byte("/Pages"))
		if i < 0 {
			break
		}
		here := len(b) - len(rest) + i
		rest = rest[i+1:]
		from := max(0, here-nodeBytes)
		if k := bytes.LastIndex(b[from:here], []byte("obj")); k >= 0 {
			from += k
		}
		node := b[from:min(len(b), here+nodeBytes)]
		if end := bytes.Index(node, []byte("endobj")); end > 0 {
			node = node[:end]
		}
		if m := pagesCount().FindSubmatch(node); m != nil {
			k, _ := strconv.Atoi(string(m[1]))
			n = max(n, k)
		}
	}
	return n
}

// inflate calls each with the content of compressed streams of objects.
func inflate(b []byte, each func([]byte)) {
	left := int64(maxInflated)
	for range maxStreams {
		i := bytes.Index(b, []byte("/ObjStm"))
		if i < 0 || left <= 0 {
			return
		}
		b = b[i+1:]
		k := bytes.Index(b[:min(len(b), 1<<10)], []byte("stream"))
		if k < 0 {
			continue
		}
		r, err := zlib.NewReader(bytes.NewReader(bytes.TrimLeft(b[k+len("stream"):], "\r\n")))
		if err != nil {
			continue
		}
		objects, _ := io.ReadAll(io.LimitReader(r, left))
		left -= int64(len(objects)) + 1<<10
		each(objects)
	}
}
