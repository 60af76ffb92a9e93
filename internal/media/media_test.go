package media_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/media"
	"github.com/condensehq/condense/internal/testkit"
)

func quarter(b []byte) int { return (len(b) + 3) / 4 }

// A photo of 5 MB is no more tokens than one of 10 kB, in every API and wherever it is, and what it costs is bounded by
// its pixels, pages and seconds.
func TestMediaCostNoBytes(t *testing.T) {
	t.Parallel()
	for _, m := range testkit.Media {
		t.Run(m.API+"/"+m.Kind+"/"+m.Place, func(t *testing.T) {
			t.Parallel()
			want := map[string]int{"image": 37 * 28, "document": 3 * 2500, "audio": 12 * 32, "video": 20 * 290}[m.Kind]
			switch {
			case m.API == "gemini" && m.Kind == "document":
				want = 3 * 560
			case m.Kind == "audio" && (m.API == "chat" || m.API == "responses"):
				want = 12 * 20
			case m.Kind == "image" && (m.API == "chat" || m.API == "responses"):
				want = 922 // 32 * 24 patches of 1.2 tokens
			case m.Kind == "image" && m.API == "gemini":
				want = 1120
			}
			for _, size := range []int{10_000, 100_001, 1_000_000, 5_000_001} {
				if testing.Short() && size > 100_001 {
					continue
				}
				messages, data := m.With(size)
				raw := []byte("[" + messages + "]")
				all := media.Find(raw)
				if len(all) != 1 || all[0].Tokens() != want || all[0].String() != m.Label() {
					t.Fatalf("%d bytes: %v, %d tokens, want %s, %d", size, all, all[0].Tokens(), m.Label(), want)
				}
				tokens, of := media.Count(raw, quarter)
				if of != want || tokens != want+quarter(raw[:len(raw)-len(data)]) {
					t.Errorf("%d bytes: %d tokens, %d of them media, want %d", size, tokens, of, want)
				}
				php := strings.ReplaceAll(messages, "/", `\/`) // as PHP writes JSON
				if tokens, _ := media.Count([]byte("["+php+"]"), quarter); tokens > want+quarter(raw[:len(raw)-len(data)])+10 {
					t.Errorf("%d bytes: %d tokens with escapes", size, tokens)
				}
			}
		})
	}
}

// Every API has a row for every kind of medium that another has, if only to say that it does not exist there, and every
// row with data is tried by a test.
func TestEveryAPIHasARowForEveryMedium(t *testing.T) {
	t.Parallel()
	type row struct {
		api  string
		kind media.Kind
	}
	rows, tried := map[row]bool{}, map[row]bool{}
	for _, f := range media.Forms() {
		r := row{f.API, f.Kind}
		rows[r] = rows[r] || f.Data != ""
	}
	for _, m := range testkit.Media {
		tried[row{m.API, media.Kind(m.Kind)}] = true
	}
	for _, api := range []string{"messages", "chat", "responses", "gemini", "converse"} {
		for _, kind := range []media.Kind{media.Image, media.Document, media.Audio, media.Video} {
			r := row{api, kind}
			if exists, ok := rows[r]; !ok || exists != tried[r] {
				t.Errorf("%v: in the table %t, with data %t, tried %t", r, ok, exists, tried[r])
			}
		}
	}
}

// Documents that are text cost as much as their text; so do arguments of calls, whatever they look like.
func TestTextCountsAsText(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("One line of words.\n", 500)
	data := base64.StdEncoding.EncodeToString([]byte(text))
	for _, form := range []string{
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":%q}}`,
		`{"document":{"format":"txt","name":"a","source":{"text":%q}}}`,
		`{"document":{"format":"md","name":"a","source":{"bytes":"` + data + `"}}}%.0q`,
		`{"inlineData":{"mimeType":"text/csv","data":"` + data + `"}}%.0q`,
		`{"type":"input_file","filename":"a.go","file_data":"data:application/octet-stream;base64,` + data + `"}%.0q`,
		`{"type":"file","file":{"filename":"notes","file_data":"data:text/plain;base64,` + data + `"}}%.0q`,
		`{"type":"text","text":%q}`,
		`{"images":["a.png","b.png"],"text":%q}`,
		`{"type":"tool_use","id":"a","name":"b","input":{"type":"base64","media_type":"image/png","data":%q}}`,
	} {
		n, of := media.Count(fmt.Appendf(nil, form, text), quarter)
		if want := len(text) / 4; of != 0 || n < want || n > want+250 {
			t.Errorf("%.60s: %d tokens, %d of media, want %d and a few", form, n, of, want)
		}
	}
}

// An image costs what was measured with the newest models of each vendor, less what a request without one costs; with Claude above 1920
// pixels what its documents say.
func TestImagesCostWhatVendorsCharge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ width, height, claude, gpt, gemini int }{
		{256, 256, 177 - 77, 77, 1090},
		{768, 768, 861 - 77, 692, 1090},
		{1280, 720, 1273 - 77, 1104, 1101},
		{1920, 1080, 2768 - 77, 2448, 1101},
		{3840, 2160, 4784, 9792, 1101},
		{4032, 3024, 4784, 14_364, 1065},
	} {
		var png bytes.Buffer
		png.WriteString("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
		head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(tt.width)), uint32(tt.height))
		head = append(head, 8, 2, 0, 0, 0)
		png.Write(binary.BigEndian.AppendUint32(head, crc32.ChecksumIEEE(append([]byte("IHDR"), head...))))
		data := base64.StdEncoding.EncodeToString(png.Bytes())
		for form, want := range map[string]int{
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}`: tt.claude,
			`{"image":{"format":"png","source":{"bytes":"%s"}}}`:                               tt.claude,
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}`:              tt.gpt,
			`{"type":"input_image","image_url":"data:image/png;base64,%s"}`:                    tt.gpt,
			`{"inlineData":{"mimeType":"image/png","data":"%s"}}`:                              tt.gemini,
		} {
			all := media.Find(fmt.Appendf(nil, form, data))
			if len(all) != 1 || math.Abs(float64(all[0].Tokens()-want)) > .06*float64(want) {
				t.Errorf("%dx%d as %s: %v, %d tokens, want %d", tt.width, tt.height, form, all, all[0].Tokens(), want)
			}
		}
	}
}

// A medium elsewhere, or one that cannot be read, has a plausible cost.
func TestUnreadableMedia(t *testing.T) {
	t.Parallel()
	junk := strings.Repeat("gIGC", 200_000)
	for form, most := range map[string]int{
		`{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`:               1600,
		`{"type":"document","source":{"type":"file","file_id":"file_1"}}`:                          10_000,
		`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`:                     1600,
		`{"type":"input_file","file_url":"https://example.com/a.pdf"}`:                             10_000,
		`{"fileData":{"mimeType":"video/mp4","fileUri":"https://example.com/a"}}`:                  17_400,
		`{"video":{"format":"mp4","source":{"s3Location":{"uri":"s3://a/b"}}}}`:                    17_400,
		`{"type":"input_audio","input_audio":{"data":"` + junk + `","format":"mp3"}}`:              1200,
		`{"document":{"format":"pdf","name":"a","source":{"bytes":"` + junk + `"}}}`:               10_000,
		`{"document":{"format":"docx","name":"a","source":{"bytes":"` + junk + `"}}}`:              10_000,
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"x"}}`: 1,
	} {
		if n, of := media.Count([]byte(form), quarter); of != most || n > most+100 {
			t.Errorf("%.80s: %d tokens, %d of media, want %d", form, n, of, most)
		}
	}
	wild := base64.StdEncoding.EncodeToString([]byte("%PDF-1.4 /Type /Pages /Count 9999999" + strings.Repeat("\x80", 3000)))
	if _, of := media.Count([]byte(`{"document":{"format":"pdf","source":{"bytes":"`+wild+`"}}}`), quarter); of > 1000*2500 {
		t.Errorf("%d tokens", of)
	}
}

// Counting takes linear time, whatever is in a text.
func TestFindIsLinear(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{`{"data":`, `[`, `{"type":"base64","data":"x"},`, `{"images":[`} {
		testkit.Linear(t, 50_000, func(n int) func() {
			raw := []byte(strings.Repeat(unit, n/len(unit)))
			return func() { media.Count(raw, quarter) }
		})
	}
	for _, unit := range []string{`"data":"x",`, `"type":"base64","data":"data:,",`, `"images":[],`} {
		testkit.Linear(t, 50_000, func(n int) func() {
			raw := []byte(`{` + strings.Repeat(unit, n/len(unit)) + `"z":1}`)
			return func() { media.Count(raw, quarter) }
		})
	}
	for _, unit := range []string{"/Pages", "/ObjStm", "/ObjStm stream\n", "/Type /Page ", "/Count 1", "OggS"} {
		testkit.Linear(t, 200_000, func(n int) func() {
			b := base64.StdEncoding.EncodeToString([]byte("%PDF-" + strings.Repeat(unit, n/len(unit))))
			raw := []byte(`{"document":{"format":"pdf","source":{"bytes":"` + b + `"}}}`)
			return func() { media.Count(raw, quarter) }
		})
	}
}

// The duration is read from the files that recorders and browsers write.
func TestDurations(t *testing.T) {
	t.Parallel()
	be32, be64, le64 := binary.BigEndian.AppendUint32, binary.BigEndian.AppendUint64, binary.LittleEndian.AppendUint64
	page := func(granule uint64, content string) []byte {
		return append(le64([]byte("OggS\x00\x02"), granule), ("serialno" + "seqncrc!" + content)...)
	}
	frame := "\xff\xfb\x90\x00" // version 1, layer III, 128 kbit/s, 44.1 kHz
	movie := append([]byte("\x00\x00\x00\x30moov\x00\x00\x00\x28mvhd\x01\x00\x00\x00"), make([]byte, 16)...)
	for name, f := range map[string][]byte{
		"audio/mpeg": append([]byte(frame), make([]byte, 7*16_000-4)...),
		"tagged.mp3": append([]byte("ID3\x04\x00\x00\x00\x00\x01\x00"+strings.Repeat("x", 128)+frame), make([]byte, 7*16_000-4)...),
		"varies.mp3": append(be32([]byte(frame+strings.Repeat("\x00", 32)+"Xing\x00\x00\x00\x01"), 7*44_100/1152), make([]byte, 5000)...),
		"audio/ogg":  append(append(page(0, "OpusHead"), make([]byte, 5000)...), page(7*48_000, "end")...),
		"vorbis.ogg": append(append(page(0, "\x01vorbis\x00\x00\x00\x00\x02\x22\x56\x00\x00"), make([]byte, 5000)...), page(7*22_050, "end")...),
		"audio/flac": append(be64([]byte("fLaC\x00\x00\x00\x22\x10\x00\x10\x00\x00\x00\x00\x00\x00\x00"), 44_100<<44|7*44_100), make([]byte, 5000)...),
		"audio/webm": append(be64([]byte("\x1a\x45\xdf\xa3\x84webm\x2a\xd7\xb1\x83\x0f\x42\x40\x44\x89\x88"), math.Float64bits(7000)), make([]byte, 5000)...),
		"audio/mp4":  append(append([]byte("\x00\x00\x00\x10ftypM4A \x00\x00\x00\x00"), be64(be32(movie, 1000), 7000)...), make([]byte, 5000)...),
		"pcm16":      make([]byte, 7*48_000),
	} {
		raw := fmt.Sprintf(`{"type":"input_audio","input_audio":{"data":%q,"format":%q}}`, base64.StdEncoding.EncodeToString(f), name)
		if all := media.Find([]byte(raw)); len(all) != 1 || all[0].String() != "audio, 7 s" {
			t.Errorf("%s: %v", name, all)
		}
	}
}

// Nothing that comes from a client panics, and a file costs something.
func TestAnyFile(t *testing.T) {
	t.Parallel()
	heads := []string{"", "\x89PNG", "%PDF-1.4 /Type /Pages /Count 2", "RIFF1234WAVE", "OggS", "fLaC", "\x1a\x45\xdf\xa3\x44\x89\x88", "1234ftyp", "ID3", "\xff\xfb\x90"}
	rapid.Check(t, func(t *rapid.T) {
		b := append([]byte(rapid.SampledFrom(heads).Draw(t, "head")), rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "rest")...)
		data := base64.StdEncoding.EncodeToString(b)
		for _, m := range testkit.Media {
			raw := []byte(strings.Replace(m.Messages, "%s", data, 1))
			cut := raw[:rapid.IntRange(0, len(raw)).Draw(t, "cut")]
			for _, raw := range [][]byte{raw, cut} {
				if n, _ := media.Count(raw, quarter); n < 0 || n > len(raw)+3*2500*1000 {
					t.Fatalf("%s: %d tokens", raw, n)
				}
			}
		}
	})
}

// A file in a member that no form has, and a data URL with a long head, cost no more by their bytes; what only a vendor can read stays
// text.
func TestUnknownFormsCostNoBytes(t *testing.T) {
	b64 := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	for _, tt := range []struct {
		name, raw string
		most      int
	}{
		{"a block of unknown type", `{"type":"input_video","input_video":{"data":"` + b64(testkit.MP4(20, 400_000)) + `","format":"mp4"}}`, 20*290 + 60},
		{"an image of unknown form", `{"type":"picture","png":"` + b64(testkit.PNG(640, 480, 400_000)) + `"}`, 500},
		{"escaped", `{"type":"picture","jpeg":"\/9j\/` + strings.Repeat("AbC1", 100_000) + `"}`, 1700},
		{"a long address", `{"type":"image_url","image_url":{"url":"https://example.com/?` + strings.Repeat("q", 2000) + `"}}`, 2300},
		{"a long name", `{"type":"image_url","image_url":{"url":"data:image/png;name=` + strings.Repeat("n", 1000) + `;base64,` + b64(testkit.PNG(640, 480, 400_000)) + `"}}`, 800},
	} {
		if n, _ := media.Count([]byte(tt.raw), quarter); n > tt.most {
			t.Errorf("%s: %d tokens", tt.name, n)
		}
	}
	sealed := `{"type":"reasoning","encrypted_content":"` + strings.Repeat("gAAAAABo", 1000) + `"}`
	if n, found := media.Count([]byte(sealed), quarter); n != quarter([]byte(sealed)) || found != 0 {
		t.Errorf("sealed: %d tokens, %d media", n, found)
	}
}
