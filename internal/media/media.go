// Package media finds images, documents, audio and video in the JSON of messages, and says what they cost. The gateway,
// the reader of files and the counter of the library use it, so a medium costs the same in all three.
//
// A medium costs by its pixels, pages or seconds, never by its bytes. The functions have no state, run in linear time
// for any input, and accept malformed input.
package media

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// A Kind is a kind of content.
type Kind string

// The kinds.
const (
	Image    Kind = "image"
	Document Kind = "document" // a PDF, a text, a file of an office program
	Audio    Kind = "audio"
	Video    Kind = "video"
)

// An Item is one medium.
type Item struct {
	Kind   Kind
	Format string // a media type, or an extension of files; empty if unknown
	data   string // base64; empty for a reference
	form   *Form  // that describes it; nil if none does
}

// OfImage returns an image by its file in base64, which is empty if it is elsewhere.
func OfImage(data string) Item { return Item{Kind: Image, data: data} }

// Tokens returns the cost of a medium that is not text.
func (m Item) Tokens() int { return m.measure().tokens }

// String describes m in a few words: "image 1024x768", "PDF, 3 pages", "audio, 12 s".
func (m Item) String() string { return m.measure().text }

// Text returns the content of a document that is text, which costs as much as its text.
func (m Item) Text() ([]byte, bool) {
	if m.Kind != Document || m.data == "" {
		return nil, false
	}
	declared := isText(m.Format)
	if !declared && isOffice(m.Format) {
		return nil, false
	}
	b := m.bytes()
	return b, declared || looksText(b)
}

// Count returns the tokens of the JSON of messages, or of a part of one, and how many of them are media. Text counts
// what is not media: the JSON without the data, and documents that are text.
func Count(raw []byte, text func([]byte) int) (tokens, media int) {
	var rest []byte // raw up to done, without data
	done, found := 0, 0
	find(raw, func(m Item, data []byte) {
		found++
		if from := rawjson.Offset(raw, data); data != nil && from >= done {
			rest = append(rest, raw[done:from]...)
			done = from + len(data)
		}
		if b, ok := m.Text(); ok {
			tokens += text(b)
		} else {
			media += m.Tokens()
		}
	})
	if found == 0 {
		return text(raw), 0
	}
	return tokens + media + text(append(rest, raw[done:]...)), media
}

// Find returns the media in the JSON of messages, or of a part of one, in their order.
func Find(raw []byte) []Item {
	var all []Item
	find(raw, func(m Item, _ []byte) { all = append(all, m) })
	return all
}

// find calls found with each medium and its data, a part of raw, in their order.
func find(raw []byte, found func(m Item, data []byte)) {
	if mayHave(raw) {
		f := finder{found: found}
		f.value(raw[rawjson.SkipSpace(raw, 0):], "", 0)
	}
}

// mayHave reports whether a member that can have a medium, or a data URL, is in raw: in most messages none is.
func mayHave(raw []byte) bool {
	marks := &indexed().marks
	for i := bytes.IndexByte(raw, '"'); i >= 0 && i+1 < len(raw); i = bytes.IndexByte(raw, '"') {
		raw = raw[i+1:]
		for _, mark := range marks[raw[0]] {
			if bytes.HasPrefix(raw, mark) {
				return true
			}
		}
	}
	return false
}

type finder struct {
	found func(m Item, data []byte)
}

const (
	unknownFile = 1 << 10 // bytes of base64; a shorter string in an unknown member may be something else
	deepest     = 16      // levels of nesting: no API has media below, and each level is read again
	maxMembers  = 16      // media in one object, by its members: no form has more than one
)

// value searches a value that is a member called name, or is in an object of type name.
func (f *finder) value(raw []byte, name string, depth int) {
	switch {
	case depth > deepest:
	case rawjson.IsString(raw):
		for begin, k := range files {
			if bytes.HasPrefix(raw[1:], []byte(begin)) && (k == "" || len(raw) > unknownFile) {
				f.yield(raw, Item{Kind: cmp.Or(k, Kind(name))})
			}
		}
	case rawjson.IsArray(raw):
		for e := range rawjson.Elements(raw) {
			f.value(e, name, depth+1)
		}
	case rawjson.IsObject(raw):
		f.object(raw, name, depth)
	}
}

func (f *finder) object(raw []byte, name string, depth int) {
	o := object{raw: raw, around: name}
	for k, v := range rawjson.Fields(raw) {
		switch string(k) {
		case "type":
			o.kind = rawjson.Text(v)
		case besideURI, besideTranscript:
			o.beside = string(k)
		}
	}
	for k, v := range rawjson.Fields(raw) {
		if f.form(&o, string(k), v) {
			continue
		}
		switch key := string(k); {
		case rawjson.IsString(v):
			if !prose[key] {
				f.value(v, name, depth+1)
			}
		case arguments[key] && rawjson.IsObject(v):
		case o.kind != "":
			f.value(v, o.kind, depth+1)
		default:
			f.value(v, key, depth+1)
		}
	}
}

// An object is one that may have media.
type object struct {
	raw    []byte
	around string // the type of the object around it, or the member that it is
	kind   string // its type
	beside string // the last member that tells forms apart
	media  int    // found in it
}

// form reports whether the member key of an object is a medium in one of the known forms.
func (f *finder) form(o *object, key string, v []byte) bool {
	for _, form := range indexed().byMember[key] {
		if form.Type != "" && form.Type != o.kind || form.Beside != "" && form.Beside != o.beside || o.media > maxMembers {
			continue
		}
		data := v
		for _, step := range form.path[1:] {
			data = rawjson.Field(data, step)
		}
		m := Item{Kind: form.Kind, form: form}
		for _, at := range form.formats {
			from := o.raw
			for _, step := range at {
				from = rawjson.Field(from, step)
			}
			if s := rawjson.Text(from); s != "" && m.Format == "" {
				m.Format = s
			}
		}
		if form.ByName && kindOf(m.Format) == "" {
			m.Kind = Kind(o.around)
		}
		o.media++
		if rawjson.IsString(data) && len(data) > len(`""`) {
			f.yield(data, m)
			return true
		}
	}
	return false
}

var dataURL = []byte(`"data:`)

// yield reports the medium that the string raw has: base64, a data URL, or a reference.
func (f *finder) yield(raw []byte, m Item) {
	data := raw[1 : len(raw)-1]
	if bytes.HasPrefix(raw, dataURL) {
		head, _, ok := bytes.Cut(data[:min(len(data), maxHead)], []byte(","))
		if !ok {
			return // no vendor would read it
		}
		mime, _, _ := strings.Cut(string(head[len("data:"):]), ";")
		m.Format = strings.ReplaceAll(mime, `\/`, "/")
		data = data[len(head)+1:]
	} else if m.form != nil && m.form.Elsewhere && (len(data) < longestURL || bytes.Contains(data[:min(len(data), maxHead)], []byte("://"))) {
		data = nil
	}
	if k := kindOf(m.Format); k != "" {
		m.Kind = k
	}
	switch m.Kind {
	case Image, Audio, Video, Document:
	default:
		m.Kind = Document
	}
	if data != nil {
		keep := len(data)
		if m.Kind == Image {
			keep = min(keep, imageHead)
		}
		if m.data = string(data[:keep]); strings.Contains(m.data, `\`) {
			m.data = strings.NewReplacer(`\/`, "/", `\n`, "", `\r`, "", `\`, "").Replace(m.data)
		}
	}
	if m.form == nil || m.form.Kind != m.Kind {
		m.form = m.form.sibling(m.Kind)
	}
	f.found(m, data)
}

const (
	maxHead    = 4 << 10 // bytes of a data URL before its data
	longestURL = 1 << 10
)

// kindOf returns the kind of a media type; none for an extension of files, or an unknown one.
func kindOf(format string) Kind {
	switch main, _, _ := strings.Cut(format, "/"); main {
	case "image", "audio", "video":
		return Kind(main)
	case "text", "application":
		return Document
	}
	return ""
}

// A measured is the result of reading a file.
type measured struct {
	tokens int
	text   string
}

// measure reads the file of m.
func (m Item) measure() measured {
	form := m.form
	if form == nil {
		form = &Form{}
	}
	switch m.Kind {
	case Image:
		w, h := imageSize(m.data)
		n, text := cmp.Or(sights[form.API], claude).tokens(w, h), "image"
		if w > 0 && h > 0 {
			text = fmt.Sprintf("image %dx%d", w, h)
		}
		return measured{n, text}
	case Audio:
		return m.timed(cmp.Or(form.Second, secondOfAudio), minAudioRate)
	case Video:
		return m.timed(cmp.Or(form.Second, secondOfVideo), minVideoRate)
	case Document:
	}
	page := cmp.Or(form.Page, pageTokens)
	if m.data == "" {
		return measured{usualPages * page, "document"}
	}
	b := m.bytes()
	n, known := pages(b)
	switch {
	case known:
		return measured{n * page, fmt.Sprintf("PDF, %d page%s", n, strings.Repeat("s", min(1, n-1)))}
	case isPDF(b), extension(m.Format) == "pdf", m.Format == "application/pdf":
		return measured{m.atMost(usualPages * page), "PDF"}
	}
	return measured{m.atMost(usualPages * page), "document"}
}

// timed measures audio or video: second is the cost of one, least the fewest bytes that one can have.
func (m Item) timed(second, least int) measured {
	if m.data == "" {
		return measured{usualSeconds * second, string(m.Kind)}
	}
	b := m.bytes()
	s := math.Min(duration(b, m.Format), float64(len(b)/least+1))
	if s <= 0 {
		return measured{m.atMost(usualSeconds * second), string(m.Kind)}
	}
	n := int(math.Ceil(s))
	return measured{n * second, fmt.Sprintf("%s, %d s", m.Kind, n)}
}

// atMost limits an estimate for a file that cannot be read: it costs no more than its base64 would.
func (m Item) atMost(tokens int) int { return min(tokens, len(m.data)/4+1) }

// bytes decodes the file of m, as far as it is base64.
func (m Item) bytes() []byte {
	b, _ := io.ReadAll(decoder(m.data)) // the bytes before a fault are what there is
	return b
}

// duration reads the seconds of audio or video from its file: WAV, MP3, Ogg, FLAC, MP4 and its kin, WebM and Matroska;
// 0 if they are not known.
func duration(b []byte, format string) float64 {
	s := 0.0
	switch head := string(b[:min(len(b), 12)]); {
	case strings.HasPrefix(head, "RIFF"):
		s = wav(b)
	case strings.HasPrefix(head, "OggS"):
		s = ogg(b)
	case strings.HasPrefix(head, "fLaC") && len(b) >= 26:
		x := binary.BigEndian.Uint64(b[18:]) // 20 bits rate, 8 of other facts, 36 samples
		s = float64(x&(1<<36-1)) / float64(x>>44)
	case strings.HasPrefix(head, "\x1a\x45\xdf\xa3"):
		s = matroska(b[:min(len(b), 64<<10)])
	case len(head) == 12 && strings.Contains("ftyp moov mdat free wide skip", head[4:8]):
		s = mp4(b)
	case strings.HasSuffix(format, "pcm16"):
		s = float64(len(b)) / (2 * 24_000)
	case strings.HasPrefix(head, "ID3") || len(b) > 1 && b[0] == 0xff && b[1]&0xe0 == 0xe0:
		s = mp3(b)
	}
	if math.IsNaN(s) || math.IsInf(s, 0) {
		return 0
	}
	return s
}

func wav(b []byte) float64 {
	rate := 0.0
	for at := 12; at+8 <= len(b); {
		size := int(binary.LittleEndian.Uint32(b[at+4:]))
		switch name := string(b[at : at+4]); {
		case name == "fmt " && at+20 <= len(b):
			rate = float64(binary.LittleEndian.Uint32(b[at+16:]))
		case name == "data": // a stream does not know its size
			return float64(min(size, len(b)-at-8)) / rate
		}
		at += 8 + size + size&1
	}
	return 0
}

// ogg returns the position of the last page.
func ogg(b []byte) float64 {
	rate := 48_000.0 // of Opus, always
	if i := bytes.Index(b[:min(len(b), 256)], []byte("\x01vorbis")); i >= 0 && i+16 <= len(b) {
		rate = float64(binary.LittleEndian.Uint32(b[i+12:]))
	}
	tail := b[max(0, len(b)-128<<10):]
	i := bytes.LastIndex(tail, []byte("OggS"))
	if i < 0 || i+14 > len(tail) {
		return 0
	}
	return float64(binary.LittleEndian.Uint64(tail[i+6:])) / rate
}

// mp4 reads the header of a movie (ISO 14496-12, 8.2.2).
func mp4(b []byte) float64 {
	moov := box(b, "moov")
	h := box(moov, "mvhd")
	switch {
	case len(h) >= 20 && h[0] == 0:
		return float64(binary.BigEndian.Uint32(h[16:])) / float64(binary.BigEndian.Uint32(h[12:]))
	case len(h) >= 32:
		return float64(binary.BigEndian.Uint64(h[24:])) / float64(binary.BigEndian.Uint32(h[20:]))
	}
	return 0
}

// box returns the content of the first box with a name.
func box(b []byte, name string) []byte {
	for len(b) >= 8 {
		size, head := uint64(binary.BigEndian.Uint32(b)), 8
		if size == 1 && len(b) >= 16 {
			size, head = binary.BigEndian.Uint64(b[8:]), 16
		}
		if size == 0 || size > uint64(len(b)) {
			size = uint64(len(b))
		}
		if size < uint64(head) {
			return nil
		}
		if string(b[4:8]) == name {
			return b[head:size]
		}
		b = b[size:]
	}
	return nil
}

// matroska finds the duration and its unit in the beginning of a file (RFC 9559, 5.1.2).
func matroska(b []byte) float64 {
	scale := 1e6 // nanoseconds
	if i := bytes.Index(b, []byte{0x2a, 0xd7, 0xb1}); i >= 0 && i+4 < len(b) {
		n, x := int(b[i+3]&0x7f), 0.0
		for k := range min(n, 8, len(b)-i-4) {
			x = x*256 + float64(b[i+4+k])
		}
		if x > 0 {
			scale = x
		}
	}
	if i := bytes.Index(b, []byte{0x44, 0x89, 0x88}); i >= 0 && i+11 <= len(b) {
		return math.Float64frombits(binary.BigEndian.Uint64(b[i+3:])) * scale / 1e9
	}
	if i := bytes.Index(b, []byte{0x44, 0x89, 0x84}); i >= 0 && i+7 <= len(b) {
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b[i+3:]))) * scale / 1e9
	}
	return 0
}

// The bit rates of MPEG audio, layer III, in kbit/s: of version 1, and of versions 2 and 2.5.
var bitRates = [2][16]float64{
	{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
}

// mp3 reads the first frame: its bit rate, or the number of frames if the rate varies.
func mp3(b []byte) float64 {
	if len(b) > 10 && string(b[:3]) == "ID3" {
		b = b[min(len(b), 10+int(b[6])<<21+int(b[7])<<14+int(b[8])<<7+int(b[9])):]
	}
	for i := range max(0, min(len(b)-200, 8<<10)) {
		h := b[i:]
		version, layer := h[1]>>3&3, h[1]>>1&3 // 3 is version 1, 1 is layer III
		if h[0] != 0xff || h[1]&0xe0 != 0xe0 || version == 1 || layer != 1 || h[2]>>4 == 15 || h[2]>>2&3 == 3 {
			continue
		}
		rate := []float64{44_100, 48_000, 32_000}[h[2]>>2&3]
		samples, row := 1152.0, 0
		if version != 3 {
			samples, row, rate = 576, 1, rate/2
			if version == 0 {
				rate /= 2
			}
		}
		for _, name := range []string{"Xing", "Info"} {
			if k := bytes.Index(h[:min(len(h), 200)], []byte(name)); k > 0 && k+12 <= len(h) && h[k+7]&1 == 1 {
				return float64(binary.BigEndian.Uint32(h[k+8:])) * samples / rate
			}
		}
		if kbit := bitRates[row][h[2]>>4]; kbit > 0 {
			return float64(len(h)) * 8 / (kbit * 1000)
		}
	}
	return 0
}
