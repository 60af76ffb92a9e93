package wire_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

const ours = "condense_recall"

// played are what the scripted vendor sends: one that calls the tool, alone or not, and one that does not.
func played(t *testing.T) map[wire.API]map[bool][][]byte {
	t.Helper()
	all := map[wire.API]map[bool][][]byte{}
	for api, request := range map[wire.API]string{
		wire.Messages:  `{"model":"claude-opus-5-5","max_tokens":1000,"stream":%t,"thinking":{"type":"adaptive"},"tools":[{"name":"Bash","input_schema":{}},{"name":"condense_recall","input_schema":{}}],"messages":[{"role":"user","content":"Go."}]}`,
		wire.Chat:      `{"model":"gpt-5.4","stream":%t,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"Bash"}},{"type":"function","function":{"name":"condense_recall"}}],"messages":[{"role":"user","content":"Go."}]}`,
		wire.Gemini:    `{"tools":[{"functionDeclarations":[{"name":"Bash"},{"name":"condense_recall"}]}],"contents":[{"role":"user","parts":[{"text":"Go."}]}]}`,
		wire.Converse:  `{"toolConfig":{"tools":[{"toolSpec":{"name":"Bash","inputSchema":{"json":{}}}},{"toolSpec":{"name":"condense_recall","inputSchema":{"json":{}}}}]},"messages":[{"role":"user","content":[{"text":"Go."}]}],"additionalModelRequestFields":{"thinking":{"type":"adaptive"}}}`,
		wire.Responses: `{"model":"gpt-5.6","store":false,"stream":%t,"reasoning":{"effort":"medium"},"include":["reasoning.encrypted_content"],"tools":[{"type":"function","name":"Bash"},{"type":"function","name":"condense_recall"}],"input":"Go."}`,
	} {
		all[api] = map[bool][][]byte{}
		for _, stream := range []bool{false, true} {
			for _, calls := range [][]string{{ours}, {"Bash", ours}, {ours, "Bash", ours, "Bash"}, {"Bash"}, nil} {
				step := upstream.Step{Text: "It is “here”: 世界."}
				for i, name := range calls {
					step.Calls = append(step.Calls, upstream.Call{Tool: name, Input: map[string]any{"command": fmt.Sprint(`a "quoted" é `, i), "grep": "x"}})
				}
				w := httptest.NewRecorder()
				body := strings.ReplaceAll(request, "%t", strconv.FormatBool(stream))
				r := httptest.NewRequest(http.MethodPost, pathOf(api, stream), strings.NewReader(body))
				r.Header.Set("X-Goog-Api-Key", "dummy")
				if api == wire.Converse {
					r.Header.Set("Authorization", "Bearer dummy")
				}
				upstream.New(upstream.Options{Script: []upstream.Step{step}}).ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					t.Fatalf("%s: %s", api, w.Body)
				}
				answer, err := io.ReadAll(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				all[api][stream] = append(all[api][stream], answer)
			}
		}
	}
	if len(all) != len(wire.APIs) {
		t.Errorf("%d of %d APIs are played", len(all), len(wire.APIs))
	}
	return all
}

func pathOf(api wire.API, stream bool) string {
	if api == wire.Gemini && stream {
		return "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
	}
	if api == wire.Converse && stream {
		return "/model/anthropic.claude-opus-5-5-v1:0/converse-stream"
	}
	return map[wire.API]string{
		wire.Converse: "/model/anthropic.claude-opus-5-5-v1:0/converse", wire.Messages: "/v1/messages", wire.Chat: "/v1/chat/completions", wire.Responses: "/v1/responses",
		wire.Gemini: "/v1beta/models/gemini-3-pro-preview:generateContent",
	}[api]
}

// array returns a stream of Google's as clients without "alt=sse" get it.
func array(stream []byte) []byte {
	var all []string
	for line := range strings.Lines(string(stream)) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			all = append(all, data)
		}
	}
	return []byte("[" + strings.Join(all, "\n,\r\n") + "\n]")
}

// invoked returns a stream of Anthropic's as InvokeModel sends it.
func invoked(t *testing.T, stream []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for line := range strings.Lines(string(stream)) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		m := eventstream.Message{Payload: []byte(`{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `","p":"abc"}`)}
		m.Headers.Set(":event-type", eventstream.StringValue("chunk"))
		m.Headers.Set(":message-type", eventstream.StringValue("event"))
		if err := eventstream.NewEncoder().Encode(&out, m); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// plain returns an answer with the events of binary frames as lines.
func plain(t *testing.T, api wire.API, answer []byte) []byte {
	t.Helper()
	if len(answer) == 0 || answer[0] != 0 {
		return answer
	}
	var out []byte
	for r := bytes.NewReader(answer); r.Len() > 0; {
		m, err := eventstream.NewDecoder().Decode(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		data := m.Payload
		if api == wire.Messages {
			var o struct{ Bytes []byte }
			if err := json.Unmarshal(data, &o); err != nil {
				t.Fatal(err)
			}
			data = o.Bytes
		}
		out = append(append(append(out, "data: "...), data...), "\n\n"...)
	}
	return out
}

// splice writes answers in pieces; all but the last are answered.
func splice(api wire.API, size func() int, bodies ...[]byte) []byte {
	s := wire.NewSplice(api, ours, 1<<30)
	var out []byte
	for i, body := range bodies {
		for len(body) > 0 {
			n := min(max(1, size()), len(body))
			out = append(out, s.Write(body[:n])...)
			body = body[n:]
		}
		if i < len(bodies)-1 && s.Over() {
			s.Next()
			continue
		}
		out = append(out, s.Close()...)
		if s.Over() {
			if i < len(bodies)-1 {
				s.Next()
				continue
			}
			out = append(out, s.End()...)
		}
	}
	return out
}

// An answer without a call of the tool passes as it came; what is made of others does not depend on the pieces in
// which they arrive, and has nothing of the tool.
func TestSplice(t *testing.T) {
	for api, byStream := range played(t) {
		for stream, all := range byStream {
			testSplice(t, api, stream, !stream, all)
		}
		if api == wire.Gemini {
			var arrays [][]byte
			for _, body := range byStream[true] {
				arrays = append(arrays, array(body))
			}
			testSplice(t, api, true, true, arrays)
		}
		if api == wire.Messages {
			var streams [][]byte
			for _, body := range byStream[true] {
				streams = append(streams, invoked(t, body))
			}
			testSplice(t, api, true, false, streams)
		}
	}
}

func testSplice(t *testing.T, api wire.API, stream, isJSON bool, all [][]byte) {
	t.Helper()
	whole := func() int { return 1 << 30 }
	for i, body := range all {
		out := splice(api, whole, body)
		if bytes.Contains(plain(t, api, body), []byte(ours)) == bytes.Equal(out, body) {
			t.Errorf("%s/%v/%d: unexpected\n%s", api, stream, i, out)
		}
		two := splice(api, whole, all[0], body)
		for _, got := range [][]byte{plain(t, api, out), plain(t, api, two)} {
			if bytes.Contains(got, []byte(ours)) {
				t.Errorf("%s/%v/%d: the client sees the tool\n%s", api, stream, i, got)
			}
		}
		if n := bytes.Count(plain(t, api, two), []byte("世界")); n < 1 || isJSON && !json.Valid(two) {
			t.Errorf("%s/%v/%d: %s", api, stream, i, two)
		}
		rapid.Check(t, func(t *rapid.T) {
			most := rapid.IntRange(1, 300).Draw(t, "most")
			some := func() int { return rapid.IntRange(1, most).Draw(t, "n") }
			if got := splice(api, some, body); !bytes.Equal(got, out) {
				t.Errorf("in pieces: %s", got)
			}
			if got := splice(api, some, all[0], body); !bytes.Equal(got, two) {
				t.Errorf("in pieces: %s", got)
			}
		})
	}
}

// An answer that is too large passes as it came. If something of it was held back already, the client gets an error,
// and nothing of the tool.
func TestSpliceGivesUp(t *testing.T) {
	const piece = 50
	broken := 0
	for api, byStream := range played(t) {
		for stream, all := range byStream {
			for i, body := range all {
				for most := 0; most < len(body); most += 7 {
					s := wire.NewSplice(api, ours, int64(most))
					var out []byte
					for at := 0; at < len(body) && !s.Over() && !s.Broken(); at += piece {
						out = append(out, s.Write(body[at:min(at+piece, len(body))])...)
					}
					if out = append(out, s.Close()...); s.Over() {
						continue // it was whole, and only empty lines were too many
					}
					switch {
					case !s.Broken() && !bytes.Equal(out, body):
						t.Errorf("%s/%v/%d: other bytes with a limit of %d:\n%s", api, stream, i, most, out)
					case s.Broken() && (bytes.Contains(out, []byte(ours)) || !bytes.Contains(out, []byte("max_body"))):
						t.Errorf("%s/%v/%d: with a limit of %d:\n%s", api, stream, i, most, out)
					case s.Broken():
						broken++
					}
				}
			}
		}
	}
	if broken == 0 {
		t.Error("nothing was held back")
	}
}

// Indexes are those of one answer, and usage is the sum.
func TestSpliceNumbers(t *testing.T) {
	whole := func() int { return 1 << 30 }
	for api, byStream := range played(t) {
		out := splice(api, whole, byStream[true][0], byStream[true][0], byStream[true][2])
		next, calls, tokens := 0, 0, 0.0
		if api == wire.Converse {
			blocks := regexp.MustCompile(`"contentBlockIndex":(\d+),"p":"abcd","start"`).FindAllSubmatch(plain(t, api, out), -1)
			if len(blocks) != 2 {
				t.Errorf("%d calls begin", len(blocks))
			}
			for i, m := range blocks {
				if string(m[1]) != strconv.Itoa(6+i) { // three times thinking and a text before them
					t.Errorf("call %d is block %s", i, m[1])
				}
			}
		}
		if api == wire.Gemini || api == wire.Converse { // without numbers, but for blocks
			sum := wire.Watch(api)
			_, _ = sum.Write(out)
			calls, tokens = bytes.Count(out, []byte(`"Bash"`)), float64(sum.Answer().Output)
		}
		for line := range strings.Lines(string(out)) {
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok || strings.HasPrefix(data, "[DONE]") || api == wire.Gemini || api == wire.Converse {
				continue
			}
			var e struct {
				Type     string
				Index    int
				Sequence *int `json:"sequence_number"`
				Block    any  `json:"content_block"`
				Item     struct{ Type string }
				Output   int `json:"output_index"`
				Response struct {
					Output []any
					Usage  map[string]any
				}
				Usage   map[string]any
				Choices []struct {
					Delta struct {
						Calls []struct {
							Index int
							ID    string
						} `json:"tool_calls"`
					}
				}
			}
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatalf("%s: %v in %s", api, err, data)
			}
			switch {
			case api == wire.Messages && e.Type == "content_block_start":
				if e.Index != next {
					t.Errorf("block %d, want %d", e.Index, next)
				}
				next++
				if strings.Contains(data, `"tool_use"`) {
					calls++
				}
			case api == wire.Messages && e.Type == "message_delta":
				tokens, _ = e.Usage["output_tokens"].(float64)
			case api == wire.Responses && e.Sequence != nil:
				if *e.Sequence != next {
					t.Errorf("event %d, want %d", *e.Sequence, next)
				}
				next++
				if e.Type == "response.output_item.done" && e.Item.Type == "function_call" {
					calls++
				}
				if e.Type == "response.completed" {
					tokens, _ = e.Response.Usage["output_tokens"].(float64)
					if n := len(e.Response.Output); n != 8 {
						t.Errorf("%d items at the end", n)
					}
				}
			case api == wire.Chat:
				for _, c := range e.Choices {
					for _, call := range c.Delta.Calls {
						if call.ID != "" {
							if call.Index != calls {
								t.Errorf("call %d, want %d", call.Index, calls)
							}
							calls++
						}
					}
				}
				if n, ok := e.Usage["completion_tokens"].(float64); ok {
					tokens = n
				}
			}
		}
		if calls != 2 {
			t.Errorf("%s: %d calls for the client", api, calls)
		}
		one := wire.Watch(api)
		_, _ = one.Write(byStream[true][0])
		three := wire.Watch(api)
		_, _ = three.Write(byStream[true][2])
		if want := 2*one.Answer().Output + three.Answer().Output; int(tokens) != want {
			t.Errorf("%s: %v tokens of output, want %d", api, tokens, want)
		}
	}
}

// Whatever arrives, nothing panics, and without a call of the tool it passes.
func FuzzSplice(f *testing.F) {
	f.Add("data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"name\":\"condense_recall\"}}\r\n\r\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n", 7)
	f.Add("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"condense_recall\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n", 9)
	f.Add("event: x\rdata: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"name\":\"condense_recall\"}}\r\rdata: {\"type\":\"response.completed\"}\n", 1)
	f.Add(`{"content":[{"type":"tool_use","name":"condense_recall"}],"choices":[{"message":{"tool_calls":[{"function":{"name":"condense_recall"}}]}}],"output":[{"type":"function_call","name":"condense_recall"}],"stop_reason":"tool_use"}`, 5)
	f.Add("[{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"condense_recall\"}}]},\"finishReason\":\"STOP\"}]}\n,\r\n{\"usageMetadata\":{}}]", 2)
	f.Fuzz(func(t *testing.T, text string, size int) {
		for _, api := range wire.APIs {
			out := splice(api, func() int { return size }, []byte(text))
			if !strings.Contains(text, "cond") && !strings.Contains(text, `\`) && string(out) != text {
				t.Errorf("%s: %q became %q", api, text, out)
			}
			splice(api, func() int { return size }, []byte(text), []byte(text))
			s := wire.NewSplice(api, ours, 1<<30)
			s.Write([]byte(text))
			s.Close()
			if m := s.Message(); len(m) > 0 {
				_, _ = wire.NewRound(api, m, nil, s.Calls())
			}
		}
	})
}
