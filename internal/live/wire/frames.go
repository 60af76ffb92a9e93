package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/condensehq/condense/internal/rawjson"
)

// longestFrame is the most bytes of a frame that is read. Models write less than a hundred at a time.
const longestFrame = 4 << 20

// shortestFrame is a frame without headers and payload: two lengths and two checksums.
const shortestFrame = 16

// frames reads the binary stream of events of AWS (application/vnd.amazon.eventstream), in pieces of any size.
type frames struct {
	part   []byte // of a frame
	broken bool   // what follows cannot be read
}

// write reads the next bytes of a stream, and calls each for every frame that is complete.
func (f *frames) write(p []byte, each func(eventstream.Message)) {
	if f.broken {
		return
	}
	f.part = append(f.part, p...)
	at := 0
	for {
		n := frameEnd(f.part[at:])
		if n == 0 {
			break
		}
		m, err := eventstream.NewDecoder().Decode(bytes.NewReader(f.part[at:at+n]), nil)
		if err != nil {
			f.broken, f.part = true, nil
			return
		}
		each(m)
		at += n
	}
	f.part = f.part[:copy(f.part, f.part[at:])]
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

// headerOf returns a header of a frame; "" if it has none.
func headerOf(m *eventstream.Message, name string) string {
	if v := m.Headers.Get(name); v != nil {
		return v.String()
	}
	return ""
}

// frame reads an event. A frame of Converse has its kind in a header.
func (w *Watcher) frame(m eventstream.Message) {
	switch headerOf(&m, frameKind) {
	case frameException:
		w.json.write(m.Payload)
		w.json.end()
		w.kind, w.code = "error", headerOf(&m, exceptionKind)
	case frameError:
		w.kind, w.code, w.message = "error", headerOf(&m, errorCode), headerOf(&m, errorMessage)
	default:
		e := eventOf(w.d, m)
		if e == nil {
			return // not for us: the client finds the fault
		}
		w.json.write(e.data)
		w.json.end()
		if w.d.reply.frames && w.d.reply.encoded == "" {
			w.kind = e.kind
		}
	}
	w.event()
	w.json.reset()
}

// An amazonEvent is a frame that says something. One of InvokeModel holds an event of Anthropic's API.
type amazonEvent struct {
	d       *Dialect
	message eventstream.Message
	kind    string
	data    []byte
}

func eventOf(d *Dialect, m eventstream.Message) *amazonEvent {
	e := &amazonEvent{d: d, message: m, kind: headerOf(&m, eventKind), data: m.Payload}
	if d.reply.encoded != "" {
		var err error
		e.data, err = base64.StdEncoding.DecodeString(rawjson.Text(rawjson.Field(object(m.Payload), d.reply.encoded)))
		if err != nil || len(e.data) == 0 {
			return nil
		}
	}
	return e
}

// readFrame reads a frame of a stream; nil if it is none, or says that the stream failed.
func readFrame(d *Dialect, raw []byte) *amazonEvent {
	m, err := eventstream.NewDecoder().Decode(bytes.NewReader(raw), nil)
	if err != nil || headerOf(&m, frameKind) == frameException || headerOf(&m, frameKind) == frameError {
		return nil
	}
	return eventOf(d, m)
}

// with returns the frame with other data.
func (e *amazonEvent) with(data []byte) []byte {
	m := e.message
	if m.Payload = data; e.d.reply.encoded != "" {
		encoded := rawjson.AppendQuote(nil, base64.StdEncoding.EncodeToString(data))
		m.Payload = rawjson.SetField(slices.Clip(object(e.message.Payload)), e.d.reply.encoded, encoded)
	}
	return encodeFrame(m)
}

func encodeFrame(m eventstream.Message) []byte {
	var b bytes.Buffer
	if eventstream.NewEncoder().Encode(&b, m) != nil {
		return nil // it has no headers but those of a frame that was read
	}
	return b.Bytes()
}

// newFrame returns a frame of the gateway's own: an event, or an exception.
func newFrame(kind, nameHeader, name string, payload []byte) []byte {
	m := eventstream.Message{Payload: payload}
	m.Headers.Set(nameHeader, eventstream.StringValue(name))
	m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
	m.Headers.Set(frameKind, eventstream.StringValue(kind))
	return encodeFrame(m)
}

// streamErrors are the exceptions that a stream can end with, by status; others are internalServerException. Source: the
// service's model.
var streamErrors = map[int]string{
	http.StatusBadRequest: "validationException", http.StatusRequestEntityTooLarge: "validationException",
	http.StatusTooManyRequests: "throttlingException", http.StatusServiceUnavailable: "serviceUnavailableException",
	http.StatusBadGateway: "serviceUnavailableException",
}

// failedFrame returns the end of a stream whose next answer is an error of the vendor, with a status and a body.
func failedFrame(status int, body []byte) []byte {
	body = object(body)
	text := rawjson.Text(rawjson.Field(rawjson.Field(body, "error"), "message")) // the gateway's own
	text = cmp.Or(text, rawjson.Text(rawjson.Field(body, "message")), "the vendor answered with status "+strconv.Itoa(status))
	kind := cmp.Or(streamErrors[status], "internalServerException")
	return newFrame(frameException, exceptionKind, kind, rawjson.Append(nil, `{"message":?}`, text))
}

// frameEnd returns the length of the first frame of data; 0 if it is incomplete. What is no frame is one piece.
func frameEnd(data []byte) int {
	const length = 4
	if len(data) < length {
		return 0
	}
	switch total := int64(binary.BigEndian.Uint32(data)); {
	case total < shortestFrame, total > longestFrame:
		return len(data)
	case total > int64(len(data)):
		return 0
	default:
		return int(total)
	}
}

// object returns raw if it is a JSON object, else an empty one.
func object(raw []byte) []byte {
	if i := rawjson.SkipSpace(raw, 0); i < len(raw) && raw[i] == '{' && rawjson.Complete(raw[i:]) {
		return raw[i:]
	}
	return []byte("{}")
}
