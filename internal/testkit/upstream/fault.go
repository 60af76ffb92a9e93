package upstream

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"slices"
)

// A Fault is a failure of one answer. The zero value is none. At, Reset, Stall and Event count bytes of the body.
type Fault struct {
	Status     int             // refuse with this status: 429, 500, 529 or another
	RetryAfter string          // the header of that refusal; "" is none
	Hold       <-chan struct{} // nothing is sent, not even the header, until it is closed
	At         int             // where Reset, Stall or Error happen: after so many bytes
	Reset      bool            // the connection is reset
	Stall      <-chan struct{} // nothing more is sent until it is closed
	Error      bool            // an "error" event ends the stream, at the end of the event that has byte At
	Unended    bool            // the last event is missing
	Chunk      int             // bytes of each write, which may end within a character; 0 is one event each
}

// trouble returns a refusal that is not the client's fault.
func trouble(status int) *refusal {
	kinds := map[int][2]string{
		429: {"rate_limit_error", "This request would exceed your organization's rate limit."},
		529: {"overloaded_error", "Overloaded"},
	}
	if k, ok := kinds[status]; ok {
		return &refusal{status: status, rule: "fault", kind: k[0], text: k[1]}
	}
	return &refusal{status: status, rule: "fault", kind: "api_error", text: "Internal server error"}
}

// late is the event of an error after a status of 200.
func late(r *Record) []byte {
	if r.Cloud == Bedrock {
		kind := map[string]string{":exception-type": "modelStreamErrorException"}
		return frame("exception", kind, encode(object{"message": "The model is overloaded."}))
	}
	switch r.API {
	case Chat:
		return event{data: object{"error": object{"message": "The server had an error while processing your request.", "type": "server_error", "param": nil, "code": nil}}}.bytes()
	case Responses:
		return event{"error", object{"type": "error", "code": "server_error", "message": "The server had an error while processing your request.", "param": nil, "sequence_number": 99}}.bytes()
	case Gemini:
		return event{data: (&refusal{status: 503, text: "The model is overloaded. Please try again later."}).google()}.bytes()
	case Messages, Converse:
	}
	return event{"error", object{"type": "error", "error": object{"type": "overloaded_error", "message": "Overloaded"}}}.bytes()
}

// wait waits for open, or for the client to go away; then it is false.
func wait(ctx context.Context, r *Record, open <-chan struct{}) bool {
	select {
	case <-ctx.Done():
	case <-open:
		return true
	}
	close(r.gone)
	return false
}

// send writes an answer in parts, each flushed, with the fault.
func send(ctx context.Context, w http.ResponseWriter, r *Record, parts [][]byte, f *Fault) {
	stream := len(parts) > 1
	if f.Unended && stream {
		parts = parts[:len(parts)-1]
	}
	if f.Error && stream {
		for i, sent := 0, 0; i < len(parts); i++ {
			if sent += len(parts[i]); sent >= f.At {
				parts = append(parts[:i+1:i+1], late(r))
				break
			}
		}
	}
	if f.Chunk > 0 {
		parts = slices.Collect(slices.Chunk(bytes.Join(parts, nil), f.Chunk))
	}
	if f.Reset || f.Stall != nil { // a part ends at byte At
		for i, sent := 0, 0; i < len(parts); i++ {
			if cut := f.At - sent; cut >= 0 && cut < len(parts[i]) {
				parts = append(append(parts[:i:i], parts[i][:cut], parts[i][cut:]), parts[i+1:]...)
				break
			}
			sent += len(parts[i])
		}
	}
	control := http.NewResponseController(w)
	sent := 0
	for _, part := range parts {
		if sent == f.At && len(part) > 0 {
			if f.Reset {
				reset(control)
			}
			if f.Stall != nil && !wait(ctx, r, f.Stall) {
				return
			}
		}
		if _, err := w.Write(part); err != nil || ctx.Err() != nil { //nolint:gosec // no browser reads it
			close(r.gone)
			return
		}
		sent += len(part)
		_ = control.Flush() // a recorder of tests cannot
	}
}

// reset ends the connection without an end of the answer; with a TCP reset, if it can.
func reset(control *http.ResponseController) {
	if conn, _, err := control.Hijack(); err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a close is a reset
		}
		_ = conn.Close()
	}
	panic(http.ErrAbortHandler)
}
