package tokens_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/tokens"
)

func TestImageTokens(t *testing.T) {
	t.Parallel()
	c := tokens.NewCounter(open(t, tokens.O200kBase))
	for _, tt := range []struct{ width, height, want int }{
		{1, 1, 1},
		{200, 200, 8 * 8},
		{1000, 1000, 36 * 36},
		{1024, 1024, 37 * 37}, // measured with Claude Opus 5.5: 1446 with the 77 of a request
		{1920, 1080, 69 * 39}, // 2768
		{2560, 1600, 4784},    // 92 * 58 are more than the most
		{5152, 280, 92 * 5},   // as 2576 by 140
		{280, 5152, 5 * 92},
		{5000, 1, 92},
	} {
		for format, encode := range formats {
			if got := c.Count(core.Image{Data: encode(t, tt.width, tt.height)}); got != tt.want {
				t.Errorf("%s of %d by %d: %d tokens, want %d", format, tt.width, tt.height, got, tt.want)
			}
		}
	}
}

func TestImageOfUnknownSize(t *testing.T) {
	t.Parallel()
	c := tokens.NewCounter(open(t, tokens.Chars4))
	whole := formats["png"](t, 10, 10)
	for name, p := range map[string]core.Image{
		"empty":      {},
		"URL":        {URL: "https://example.com/a.png"},
		"not base64": {Data: "!" + whole},
		"cut":        {Data: whole[:20]},
		"cut later":  {Data: whole[:44]},
		"PDF":        {Data: base64.StdEncoding.EncodeToString([]byte("%PDF-1.7 and what is needed to be long enough"))},
	} {
		if got := c.Count(p); got != 1600 {
			t.Errorf("%s: %d tokens, want 1600", name, got)
		}
	}
}

var formats = map[string]func(tb testing.TB, width, height int) string{
	"png": func(tb testing.TB, width, height int) string {
		tb.Helper()
		return encoded(tb, width, height, png.Encode)
	},
	"jpeg": func(tb testing.TB, width, height int) string {
		tb.Helper()
		return encoded(tb, width, height, func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) })
	},
	"gif": func(tb testing.TB, width, height int) string {
		tb.Helper()
		return encoded(tb, width, height, func(w io.Writer, m image.Image) error { return gif.Encode(w, m, nil) })
	},
	"webp lossy": func(_ testing.TB, width, height int) string {
		b := []byte("\x9d\x01\x2a")
		b = binary.LittleEndian.AppendUint16(b, uint16(width))
		return webp("VP8 ", append([]byte{0x30, 1, 0}, binary.LittleEndian.AppendUint16(b, uint16(height|1<<14))...))
	},
	"webp lossless": func(_ testing.TB, width, height int) string {
		return webp("VP8L", binary.LittleEndian.AppendUint32([]byte{0x2f}, uint32(width-1|(height-1)<<14|1<<28)))
	},
	"webp extended": func(_ testing.TB, width, height int) string {
		b := binary.LittleEndian.AppendUint32([]byte{0x10, 0, 0, 0}, uint32(width-1))
		return webp("VP8X", binary.LittleEndian.AppendUint32(b[:7], uint32(height-1))[:10])
	},
}

func encoded(tb testing.TB, width, height int, encode func(io.Writer, image.Image) error) string {
	tb.Helper()
	var b bytes.Buffer
	if err := encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), palette.WebSafe)); err != nil {
		tb.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// webp returns a file that has the header of a chunk.
func webp(kind string, chunk []byte) string {
	b := append([]byte("RIFF\x40\x00\x00\x00WEBP"+kind+"\x20\x00\x00\x00"), chunk...)
	return base64.StdEncoding.EncodeToString(append(b, make([]byte, 40)...))
}

func FuzzImage(f *testing.F) {
	for _, encode := range formats {
		data, err := base64.StdEncoding.DecodeString(encode(f, 20, 30))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	c := tokens.NewCounter(open(f, tokens.Chars4))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n := c.Count(core.Image{Data: base64.StdEncoding.EncodeToString(data)}); n < 1 || n > 1600 {
			t.Errorf("%d tokens, want 1 to 1600", n)
		}
	})
}
