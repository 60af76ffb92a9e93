package testkit

import (
	"bytes"
	"compress/zlib"
	_ "embed" // the messages
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"strings"
)

// noise returns n bytes that nothing can compress, without the quotes and marks of any format.
func noise(n int) []byte {
	b := make([]byte, max(0, n))
	r := rand.New(rand.NewPCG(1, uint64(n))) //nolint:gosec // the same in every run
	for i := range b {
		b[i] = byte(0x80 + r.IntN(0x7f))
	}
	return b
}

// PNG returns an image file of about size bytes.
func PNG(width, height, size int) []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)))
	return append(b.Bytes(), noise(size-b.Len())...)
}

// PDF returns a document of about size bytes. In a packed one the pages are in a compressed stream, as most programs
// write them.
func PDF(pages, size int, packed bool) []byte {
	var tree, kids strings.Builder
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", i+3)
	}
	body := []string{"<< /Type /Catalog /Pages 2 0 R >>", fmt.Sprintf("<< /Type /Pages /Kids [ %s] /Count %d >>", &kids, pages)}
	for range pages {
		body = append(body, "<< /Type /Page /Parent 2 0 R >>")
	}
	b := bytes.NewBufferString("%PDF-1.7\n")
	if packed {
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		_, _ = w.Write([]byte(strings.Join(body, "\n")))
		_ = w.Close()
		fmt.Fprintf(b, "9 0 obj\n<< /Type /ObjStm /N %d /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream\nendobj\n", len(body), z.Len(), z.Bytes())
	} else {
		for i, o := range body {
			fmt.Fprintf(&tree, "%d 0 obj\n%s\nendobj\n", i+1, o)
		}
		b.WriteString(tree.String())
	}
	fmt.Fprintf(b, "8 0 obj\n<< /Length 1 >>\nstream\n%s\nendstream\nendobj\n%%%%EOF", noise(size-b.Len()))
	return b.Bytes()
}

// WAV returns audio of about size bytes.
func WAV(seconds, size int) []byte {
	b := []byte("RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	rate := max(1, size/seconds)
	b = binary.LittleEndian.AppendUint32(b, uint32(rate/2))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = append(b, "\x02\x00\x10\x00data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(seconds*rate))
	return append(b, noise(seconds*rate)...)
}

// MP4 returns video of about size bytes.
func MP4(seconds, size int) []byte {
	box := func(name string, content ...[]byte) []byte {
		c := bytes.Join(content, nil)
		return append(append(binary.BigEndian.AppendUint32(nil, uint32(8+len(c))), name...), c...)
	}
	header := binary.BigEndian.AppendUint32(make([]byte, 12), 1000)
	header = binary.BigEndian.AppendUint32(header, uint32(seconds*1000))
	return append(append(box("ftyp", []byte("isom\x00\x00\x02\x00isom")), box("mdat", noise(size))...), box("moov", box("mvhd", append(header, make([]byte, 80)...)))...)
}

// A Medium is a way in which an API carries a medium. Messages are messages or items, joined by commas, with a %s for
// the base64.
type Medium struct{ API, Kind, Place, Messages string }

//go:embed media.txt
var mediaText string

// Media are all of them: in a line of the file are API, kind, place and messages.
var Media = func() (all []Medium) {
	for line := range strings.Lines(mediaText) {
		if f := strings.SplitN(strings.TrimSpace(line), " ", 4); len(f) == 4 {
			all = append(all, Medium{f[0], f[1], f[2], f[3]})
		}
	}
	return all
}()

// With returns the messages with a file of about size bytes, and its base64: an image of 1024 by 768 pixels, a PDF of 3
// pages, 12 seconds of audio or 20 of video.
func (m *Medium) With(size int) (messages, data string) {
	var b []byte
	switch m.Kind {
	case "image":
		b = PNG(1024, 768, size)
	case "document":
		b = PDF(3, size, size&1 == 1)
	case "audio":
		b = WAV(12, size)
	case "video":
		b = MP4(20, max(size, 40_000))
	}
	data = base64.StdEncoding.EncodeToString(b)
	return strings.Replace(m.Messages, "%s", data, 1), data
}

// Label is in the line that replaces the medium.
func (m *Medium) Label() string {
	return map[string]string{"image": "image 1024x768", "document": "PDF, 3 pages", "audio": "audio, 12 s", "video": "video, 20 s"}[m.Kind]
}

// A talk is how an API writes a conversation.
type talk struct {
	path, before, after string // the path; the request around its messages
	user, assistant     string // a message, with a %s for its text
}

var talks = map[string]talk{
	"messages": {
		"/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":1000,"messages":[`, `]}`,
		`{"role":"user","content":%q}`, `{"role":"assistant","content":%q}`,
	},
	"chat": {"/v1/chat/completions", `{"model":"gpt-4o","messages":[`, `]}`, `{"role":"user","content":%q}`, `{"role":"assistant","content":%q}`},
	"responses": {
		"/v1/responses", `{"model":"gpt-4o","store":false,"input":[`, `]}`, `{"type":"message","role":"user","content":%q}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}`,
	},
	"gemini": {"/v1beta/models/gemini-2.5-pro:generateContent", `{"contents":[`, `]}`, `{"role":"user","parts":[{"text":%q}]}`, `{"role":"model","parts":[{"text":%q}]}`},
	"converse": {
		"/model/us.anthropic.claude-haiku-4-5-v1:0/converse", `{"inferenceConfig":{"maxTokens":1000},"messages":[`, `]}`,
		`{"role":"user","content":[{"text":%q}]}`, `{"role":"assistant","content":[{"text":%q}]}`,
	},
}

// Path is the path of the API's requests.
func (m *Medium) Path() string { return talks[m.API].path }

// Request is a conversation of rounds of a question and an answer with text of size bytes, with messages put in after the
// rounds that they are keyed by.
func (m *Medium) Request(rounds, size int, put map[int]string) []byte {
	w := talks[m.API]
	var all []string
	for i := range rounds {
		if s := put[i]; s != "" {
			all = append(all, s, fmt.Sprintf(w.assistant, fmt.Sprintf("I have seen number %d.", i)))
		}
		var talk strings.Builder
		for k := 0; talk.Len() < size; k++ {
			fmt.Fprintf(&talk, "Point %d of answer %d is about module m%d_%d.\n", k, i, i, k*7)
		}
		all = append(all, fmt.Sprintf(w.user, fmt.Sprintf("Question %d: which part comes next?", i)), fmt.Sprintf(w.assistant, talk.String()))
	}
	if s := put[rounds]; s != "" {
		all = append(all, s)
	}
	return []byte(w.before + strings.Join(all, ",") + w.after)
}
