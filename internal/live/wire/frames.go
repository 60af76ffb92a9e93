package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/condensehq/condense/internal/rawjson"
)

// longestFrame is the most bytes of a frame that is read. Models write less than a hundred at a time.
const longestFrame = 4 << 20

// shortestFrame is a frame without headers and payload: two lengths and two checksums.
const shortestFrame = 16

// frames reads the binary stream of events of AWS (application/vnd.amazon.eventstream), in pieces of any size.
type frames struct {
	part    []byte // of a frame
	broken  bool   // what follows cannot be read
	decoder *eventstream.Decoder
}

// write reads the next bytes of a stream, and calls each for every frame that is complete.
func (f *frames) write(p []byte, each func(eventstream.Message)) {
	for len(p) > 0 && !f.broken {
		const length = 4
		if n := length - len(f.part); n > 0 {
			n = min(n, len(p))
			f.part, p = append(f.part, p[:n]...), p[n:]
			if len(f.part) < length {
				return
			}
		}
		total := int64(binary.BigEndian.Uint32(f.part))
		if total < shortestFrame || total > longestFrame {
			f.broken, f.part = true, nil
			return
		}
		n := min(int(total)-len(f.part), len(p))
		f.part, p = append(f.part, p[:n]...), p[n:]
		if len(f.part) < int(total) {
			return
		}
		if f.decoder == nil {
			f.decoder = eventstream.NewDecoder()
		}
		m, err := f.decoder.Decode(bytes.NewReader(f.part), nil)
		f.part = f.part[:0]
		if err != nil {
			f.broken = true
			return
		}
		each(m)
	}
}

// Headers of frames, and kinds of frames. Source: "Amazon event stream specification" of the Smithy documentation.
const (
	frameKind      = ":message-type"
	eventKind      = ":event-type"
	exceptionKind  = ":exception-type"
	errorCode      = ":error-code"
	errorMessage   = ":error-message"
	frameException = "exception"
	frameError     = "error"
)

// frame reads an event. A frame of InvokeModel holds an event of Anthropic's API; a frame of Converse has its kind in a
// header.
func (w *Watcher) frame(m eventstream.Message) {
	header := func(name string) string {
		if v := m.Headers.Get(name); v != nil {
			return v.String()
		}
		return ""
	}
	payload := m.Payload
	switch header(frameKind) {
	case frameException:
		w.json.write(payload)
		w.json.end()
		w.kind, w.code = "error", header(exceptionKind)
	case frameError:
		w.kind, w.code, w.message = "error", header(errorCode), header(errorMessage)
	default:
		kind := header(eventKind)
		if w.api == Messages {
			encoded := rawjson.Text(rawjson.Field(object(payload), "bytes"))
			var err error
			if payload, err = base64.StdEncoding.DecodeString(encoded); err != nil || len(payload) == 0 {
				return // not for us: the client finds the fault
			}
		}
		w.json.write(payload)
		w.json.end()
		if w.api == Converse {
			w.kind = kind
		}
	}
	w.event()
	w.json.reset()
}

// object returns raw if it is a JSON object, else an empty one.
func object(raw []byte) []byte {
	if i := rawjson.SkipSpace(raw, 0); i < len(raw) && raw[i] == '{' && rawjson.Complete(raw[i:]) {
		return raw[i:]
	}
	return []byte("{}")
}
