package media

import (
	"bufio"
	"bytes"
	"compress/zlib"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
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

// A Form is how an API writes a medium, and what it costs there. With no Data the API has no such medium.
type Form struct {
	API  string // as in package wire, or what writes such files
	Kind Kind   // unless the media type says another
	Type string // the "type" of the object; empty: any
	// Beside is a member that the object has, too; empty: none is needed.
	Beside string
	// Data is the path of the data from the object: base64 or a data URL. Format is the path of its media type,
	// extension or name, or several of them.
	Data, Format string
	Elsewhere    bool // Data is no data but where it is: an address or an ID
	ByName       bool // the object around says the kind: {"type":"document","source":{…}}
	// Page and Second are the tokens of a page and a second; 0 means the usual ones.
	Page, Second int

	path    []string
	formats [][]string
}

// Costs, in tokens. The gateway corrects them by the vendor's reports.
const (
	// Anthropic charges 1,500 to 3,000 tokens for a page, because it reads the text and an image of it
	// (https://platform.claude.com/docs/en/build-with-claude/pdf-support). Pages of text were measured as 2,100 to
	// 2,480, scans as 1,600 (https://huggingface.co/datasets/JOHNISKING/pdf-token-cost). OpenAI reads both, too.
	pageTokens = 2500
	usualPages = 4
	// Gemini hears 32 tokens a second (https://ai.google.dev/gemini-api/docs/tokens); other models fewer.
	secondOfAudio = 32
	// Gemini sees an image of 258 tokens a second and hears 32, Amazon's Nova sees one of 288
	// (https://docs.aws.amazon.com/nova/latest/userguide/modalities-video.html).
	secondOfVideo = 290
	usualSeconds  = 60
	// The fewest bytes of a second: of speech at 4 kbit/s, of a screen that does not move.
	minAudioRate, minVideoRate = 500, 2000
)

// A sight is how the newest models of a vendor see an image: scaled down to an edge of so many pixels, in square patches, at most so many,
// each of so many tokens.
type sight struct{ patch, edge, most, weight float64 }

// Measured by https://huggingface.co/datasets/JOHNISKING/image-token-cost. Older models see as little as a third of a large image.
var (
	// Claude Opus 4.7 and later by its rule, https://platform.claude.com/docs/en/build-with-claude/vision. It was measured up to
	// 1920 pixels; larger images cost less there (3,000 to 3,900).
	claude = sight{28, 2576, 4784, 1}
	// GPT-5.5 and later, if the request says no detail: measured up to 11,970 patches (GPT-5.5: 9,890).
	gpt = sight{32, anySize, 12_000, 1.2}
	// Gemini 3 sees a patch, whatever the size: https://ai.google.dev/gemini-api/docs/media-resolution.
	sights = map[string]sight{"chat": gpt, "responses": gpt, "gemini": {anySize, anySize, 1, 1120}}
)

// The pixels of no image, and the cost of one of unknown size, such as one at an address.
const anySize, usualImage = 1 << 30, 1600

// Forms has, for each API, a row for each kind of medium; several if it has several ways to write it. A kind that does
// not exist there has a row without data.
//   - messages: Anthropic's blocks image and document, in results of tools, too. A document of plain text has no base64.
//   - chat: OpenAI's parts, and those of servers that copy it: vLLM has audio_url and video_url, OpenRouter video_url. Audio beside a
//     transcript is the assistant's. Audio costs a token for 50 ms, as of the assistant; the user's half
//     (https://developers.openai.com/api/docs/guides/realtime-costs).
//   - responses: items of OpenAI's Responses API, and parts of their content. The last image is a screenshot of a tool.
//   - gemini: Gemini's parts, in responses of functions, too. The media type says the kind. A page is the default of Gemini 3, measured
//     as 560 for pages of any kind (https://ai.google.dev/gemini-api/docs/media-resolution).
//   - converse: blocks of Amazon Bedrock's Converse, in results of tools, too.
//   - mcp, ai-sdk: files of agents, and results of MCP. Data URLs are found everywhere but in prose.
var Forms = sync.OnceValue(func() (all []Form) {
	if err := json.Unmarshal(formsJSON, &all); err != nil {
		panic("media: forms.json: " + err.Error()) // embedded and tested
	}
	return all
})

//go:embed forms.json
var formsJSON []byte

// The members that tell forms apart.
const (
	besideURI        = "uri"
	besideTranscript = "transcript"
)

var (
	// prose are members that are text for the model, whatever is in it.
	prose = map[string]bool{"text": true, "content": true, "output": true, "thinking": true, "arguments": true, "input": true}
	// arguments are members of calls and results that are JSON for the model.
	arguments = map[string]bool{"input": true, "args": true, "arguments": true, "response": true, "json": true, "toolUse": true}
)

// files are the beginnings by which a file is known in a member that no form has: of data URLs, and of the base64 of PNG, JPEG, GIF,
// PDF, RIFF, Ogg, FLAC, MP3, MP4 and WebM.
var files = map[string]Kind{
	"data:":    "",
	"iVBORw0K": Image, "/9j/": Image, `\/9j\/`: Image, "R0lGOD": Image, "JVBERi0": Document, "UklGR": Audio, "T2dnUw": Audio, "ZkxhQ": Audio,
	"SUQz": Audio, "AAAAIGZ0eX": Video, "AAAAHGZ0eX": Video, "AAAAGGZ0eX": Video, "AAAAFGZ0eX": Video, "GkXfo": Video,
}

// An index has the forms by the member that has the medium. Marks are what follows a quote in any of them, by its first
// byte.
type index struct {
	byMember map[string][]*Form
	marks    [256][][]byte
}

var indexed = sync.OnceValue(func() *index {
	x := &index{byMember: map[string][]*Form{}}
	mark := func(s string) { x.marks[s[0]] = append(x.marks[s[0]], []byte(s)) }
	for begin := range files {
		mark(begin)
	}
	for i := range Forms() {
		f := &Forms()[i]
		if f.Data == "" {
			continue
		}
		f.path = strings.Split(f.Data, ".")
		for at := range strings.FieldsSeq(f.Format) {
			f.formats = append(f.formats, strings.Split(at, "."))
		}
		name := f.path[0]
		if x.byMember[name] == nil {
			mark(name + `"`)
		}
		x.byMember[name] = append(x.byMember[name], f)
	}
	return x
})

// sibling returns the form of a medium of another kind in the same API; nil if there is none.
func (f *Form) sibling(k Kind) *Form {
	if f == nil {
		return nil
	}
	for i := range Forms() {
		if s := &Forms()[i]; s.API == f.API && s.Kind == k && s.Data != "" {
			return s
		}
	}
	return nil
}
