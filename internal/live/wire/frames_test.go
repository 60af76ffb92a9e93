package wire_test

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/condensehq/condense/internal/live/wire"
)

// framed returns a stream of events, encoded by the library of the AWS SDK, each a type and a payload.
func framed(tb testing.TB, events ...[2]string) []byte {
	tb.Helper()
	var b bytes.Buffer
	for _, e := range events {
		m := eventstream.Message{Payload: []byte(e[1])}
		m.Headers.Set(":message-type", eventstream.StringValue("event"))
		m.Headers.Set(":event-type", eventstream.StringValue(e[0]))
		if e[0] == "modelStreamErrorException" {
			m.Headers.Set(":message-type", eventstream.StringValue("exception"))
			m.Headers.Set(":exception-type", eventstream.StringValue(e[0]))
		}
		if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
			tb.Fatal(err)
		}
	}
	return b.Bytes()
}

// conversed is a stream of the Converse API.
func conversed(tb testing.TB) []byte {
	tb.Helper()
	return framed(tb, [2]string{"messageStart", `{"role":"assistant"}`}, [2]string{"contentBlockDelta", `{"delta":{"text":"hello"},"contentBlockIndex":0}`},
		[2]string{"messageStop", `{"stopReason":"end_turn"}`},
		[2]string{"metadata", `{"usage":{"inputTokens":5,"outputTokens":2,"cacheReadInputTokens":70,"cacheWriteInputTokens":25}}`})
}

func TestFrames(t *testing.T) {
	t.Parallel()
	chunk := func(event string) [2]string {
		return [2]string{"chunk", `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(event)) + `","p":"abc"}`}
	}
	invoked := framed(t, chunk(`{"type":"message_start","message":{"id":"m","usage":{"input_tokens":100,"output_tokens":1}}}`),
		chunk(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`), chunk(`{"type":"message_stop"}`))
	failed := framed(t, [2]string{"messageStart", `{"role":"assistant"}`}, [2]string{"modelStreamErrorException", `{"message":"Input is too long for requested model."}`})
	for _, tt := range []struct {
		name   string
		api    wire.API
		stream []byte
		want   wire.Answer
	}{
		{"converse", wire.Converse, conversed(t), wire.Answer{Stop: "end_turn", Input: 100, CacheRead: 70, CacheWrite: 25, Output: 2, Complete: true}},
		{"invoke", wire.Messages, invoked, wire.Answer{ID: "m", Stop: "end_turn", Input: 100, Output: 2, Complete: true}},
		{"cut", wire.Converse, conversed(t)[:200], wire.Answer{}},
		{"failed", wire.Converse, failed, wire.Answer{ErrorType: "modelStreamErrorException", ErrorText: "Input is too long for requested model.", Overflow: true}},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			w := wire.Watch(tt.api)
			for rest := tt.stream; len(rest) > 0; {
				n := min(size, len(rest))
				_, _ = w.Write(rest[:n])
				rest = rest[n:]
			}
			if got := w.Answer(); got != tt.want {
				t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
			}
		}
	}
}

// Whatever a server sends, in whatever pieces: nothing panics, and the pieces make no difference.
func FuzzFrames(f *testing.F) {
	whole := conversed(f)
	f.Add(whole, 1)
	f.Add(whole[:90], 5)
	f.Add(append([]byte{0, 0, 0, 3}, whole...), 3)
	f.Add([]byte{0, 255, 255, 255, 0}, 2)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		if size < 1 {
			return
		}
		for _, api := range []wire.API{wire.Messages, wire.Converse} {
			one, parts := wire.Watch(api), wire.Watch(api)
			_, _ = one.Write(stream)
			for rest := stream; len(rest) > 0; {
				n := min(size, len(rest))
				_, _ = parts.Write(rest[:n])
				rest = rest[n:]
			}
			if a, b := one.Answer(), parts.Answer(); a != b {
				t.Errorf("whole %+v, in pieces %+v", a, b)
			}
		}
	})
}
