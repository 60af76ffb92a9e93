package media

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
)

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
