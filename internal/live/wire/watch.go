package wire

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/remote"
)

// An Answer is a vendor's report on a request: counts of tokens, and how it ended.
type Answer struct {
	ID, Model string
	Stop      string // why the model stopped, in the vendor's word; "" if it is not known
	ErrorType string // of an error, also of one inside a stream: its code or its type
	ErrorText string // cut at 4 kB
	Input     int    // of the whole prompt, including tokens read from and written to the vendor's cache
	CacheRead int
	CacheWrite,
	Output int
	Complete bool // the answer has arrived whole and is no error
	Overflow bool // an error: the prompt is too long for the model
}

// A Watcher reads an answer as it passes, streamed or not. It keeps no more of it than the fields of an [Answer]
// and never blocks. It is not safe for concurrent use.
type Watcher struct {
	d       *Dialect
	answer  Answer
	json    leafScanner
	kind    string // type of the event
	code    string // of an error
	message string
	first   promptUsage // of the Messages API, at the beginning of the answer
	last    promptUsage // at its end

	begun, stream, said bool
	binary              bool   // the stream is one of frames
	frames              frames // of that
	refused             string // the type of the error that the answer is, in its header
	size                int    // see [Watcher.Size]
	thought             int    // tokens of thinking that are not in the answer's output

	field []byte // the name of the field in this line of the stream, until the colon
	state lineState
	data  bool // the event has data
}

// promptUsage is the usage of a prompt in the Messages API. Fresh tokens were neither read from nor written to the
// cache.
type promptUsage struct{ fresh, read, write int }

func (u promptUsage) total() int { return u.fresh + u.read + u.write }

type lineState int

const (
	lineName  lineState = iota // in the name of a field
	lineSpace                  // after the colon of data
	lineData                   // in data
	lineOther                  // in ignored data
	lineCR                     // after a carriage return
)

const longestName = 8

// Watch returns a watcher of an answer, which is written to it without the encoding of its content.
func Watch(api API) *Watcher {
	w := &Watcher{d: Of(api)}
	w.json.wanted = func(path []byte) bool { _, ok := w.d.reply.leaves[string(path)]; return ok }
	w.json.leaf = w.leaf
	return w
}

// Write reads the next bytes of the answer. It never fails.
func (w *Watcher) Write(p []byte) (int, error) {
	n := len(p)
	if !w.begun {
		for len(p) > 0 && strings.IndexByte(" \t\r\n\xef\xbb\xbf", p[0]) >= 0 { // space, byte order mark
			p = p[1:]
		}
		if len(p) == 0 {
			return n, nil
		}
		w.begun = true
		w.stream, w.binary = strings.IndexByte("{[<", p[0]) < 0, p[0] == 0 // whatever the content type says
	}
	if w.binary {
		w.frames.write(p, w.frame)
	} else if w.stream {
		w.lines(p)
	} else {
		w.size += len(p)
		w.json.write(p)
	}
	return n, nil
}

// Answer returns the report so far. Call it when the answer has ended or was abandoned.
func (w *Watcher) Answer() Answer {
	w.json.end()
	if !w.stream || w.data && w.json.ended { // the vendor left out the last empty line
		w.event()
	}
	a := w.Seen()
	throttled := strings.HasPrefix(a.ErrorType, "rate_limit") || strings.HasPrefix(strings.ToLower(a.ErrorType), "throttling") // whatever its text is
	a.Overflow = (a.ErrorText != "" || a.ErrorType != "") && !throttled && remote.IsContextLength(&vendorError{a})
	return a
}

// Seen returns the part of the report that has come so far.
func (w *Watcher) Seen() Answer {
	a := w.answer
	if u := cmp.Or(w.first, w.last); u.total() > 0 {
		a.Input, a.CacheRead, a.CacheWrite = u.total(), u.read, u.write
	}
	a.Output += w.thought
	return a
}

// Refused tells the watcher that the answer is an error whose type is in its header, as Amazon's are.
func (w *Watcher) Refused(kind string) { w.refused, _, _ = strings.Cut(kind, ":") }

// A vendorError is the error of an answer.
type vendorError struct{ a Answer }

func (e *vendorError) Error() string { return e.a.ErrorType + ": " + e.a.ErrorText }

// RawJSON returns the error as vendors write it.
func (e *vendorError) RawJSON() string { return string(e.a.ErrorBody()) }

// ErrorBody returns the error as the body of a refusal, for an answer that failed in a stream.
func (a Answer) ErrorBody() []byte {
	return rawjson.Append(nil, `{"error":{"type":?,"code":?,"message":?}}`, a.ErrorType, a.ErrorType, a.ErrorText)
}

// Size returns the bytes of the model's output so far: of texts, thinking and arguments of calls in a stream, else of
// the body.
func (w *Watcher) Size() int { return w.size }

// Said reports whether more has come than the announcement of an answer.
func (w *Watcher) Said() bool { return w.said }

// lines reads the lines of a stream of events, which end with LF, CR LF or CR.
func (w *Watcher) lines(p []byte) {
	for len(p) > 0 {
		if w.state == lineCR {
			w.state = lineName
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		if p[0] == '\r' || p[0] == '\n' {
			w.endLine(p[0])
			p = p[1:]
			continue
		}
		end := 1
		if w.state == lineName {
			if p[0] == ':' {
				w.state = lineOther
				if string(w.field) == "data" {
					w.state = lineSpace
				}
			} else if len(w.field) < longestName {
				w.field = append(w.field, p[0])
			}
		} else if w.state == lineSpace {
			if w.data {
				w.json.write([]byte{'\n'})
			}
			w.state, w.data = lineData, true
			if p[0] != ' ' {
				end = 0
			}
		} else if end = lineEnd(p); w.state == lineData {
			w.json.write(p[:end])
		}
		p = p[end:]
	}
}

// lineEnd returns the index of the first line end in p, or its length.
func lineEnd(p []byte) int {
	if end := bytes.IndexAny(p, "\r\n"); end >= 0 {
		return end
	}
	return len(p)
}

// endLine ends a line, and with an empty one the event.
func (w *Watcher) endLine(c byte) {
	if w.state == lineName && len(w.field) == 0 && w.data {
		w.json.end()
		w.event()
		w.json.reset()
		w.data = false
	}
	w.field, w.state = w.field[:0], lineName
	if c == '\r' {
		w.state = lineCR
	}
}

// event ends an event, or an answer that is no stream.
func (w *Watcher) event() {
	a := &w.answer
	failed := w.refused != ""
	switch w.kind {
	case "response.created", "response.in_progress", "response.queued", "message_start", "ping", "messageStart":
	default:
		w.said = true
	}
	switch w.kind {
	case "error", "response.failed":
		failed = true
	case "message_stop", "response.completed", "response.incomplete", "[DONE]", "metadata":
		a.Complete = w.stream
	}
	if failed && a.ErrorText == "" {
		a.ErrorText = w.message
	}
	if failed && a.ErrorType == "" {
		a.ErrorType = cmp.Or(w.code, w.refused)
	}
	if a.ErrorType == "" && (a.ErrorText != "" || failed) {
		a.ErrorType = "error"
	}
	switch {
	case w.d.reply.noEnd && w.stream:
		a.Complete = a.Stop != ""
	case !w.stream:
		a.Complete = w.json.ended
	}
	a.Complete = a.Complete && a.ErrorType == ""
	w.kind, w.message, w.code = "", "", ""
}

// A leaf is a field of an answer.
type leaf int

const (
	leafKind leaf = iota
	leafID
	leafModel
	leafStop
	leafStatus
	leafInput
	leafRead
	leafWrite
	leafOutput
	leafFresh
	leafFreshRead
	leafFreshWrite
	leafErrorType
	leafErrorCode
	leafErrorText
	leafMessage
	leafCode
	leafText    // a piece of the model's output, in a stream
	leafThought // tokens of output that are counted apart
)

// fields returns the fields at the paths of each leaf.
func fields(of map[leaf]string) map[string]leaf {
	all := map[string]leaf{}
	for l, paths := range of {
		for path := range strings.SplitSeq(paths, " ") {
			all[path] = l
		}
	}
	return all
}

// leaf takes a value of the answer.
func (w *Watcher) leaf(path []byte, value string) {
	if value == "null" || value == "" {
		return
	}
	a := &w.answer
	n, _ := strconv.Atoi(value)
	n = min(max(n, 0), math.MaxInt32) // sums of many are numbers, too
	switch w.d.reply.leaves[string(path)] {
	case leafKind:
		if w.kind = value; value == "DONE" {
			w.kind = "[DONE]"
		}
	case leafID:
		a.ID = cmp.Or(a.ID, value)
	case leafModel:
		a.Model = value
	case leafStop:
		a.Stop = value
	case leafStatus:
		if value != "in_progress" && value != "queued" && a.Stop == "" {
			a.Stop = value
		}
	case leafInput:
		a.Input = n
	case leafRead:
		a.CacheRead = max(a.CacheRead, n)
	case leafWrite:
		a.CacheWrite = n
	case leafOutput:
		a.Output = n
	case leafFresh:
		w.usage(path).fresh = n
	case leafFreshRead:
		w.usage(path).read = n
	case leafFreshWrite:
		w.usage(path).write = n
	case leafErrorType:
		a.ErrorType = cmp.Or(a.ErrorType, value)
	case leafErrorCode: // says more than the type, unless it is a number
		if n == 0 {
			a.ErrorType = value
		}
	case leafErrorText:
		a.ErrorText = value
	case leafMessage:
		w.message = value
	case leafCode:
		w.code = value
	case leafThought:
		w.thought = n
	case leafText:
		if !w.stream {
			return
		}
		w.size += w.json.size - 1 // without its quote
	}
}

// usage returns the usage that the field at path is of.
func (w *Watcher) usage(path []byte) *promptUsage {
	if bytes.HasPrefix(path, []byte("message.")) {
		return &w.first
	}
	return &w.last
}
