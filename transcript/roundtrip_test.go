package transcript_test

import (
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/transcript"
)

// odd are files that a careless program would change: white space, order and repetition of
// keys, numbers beyond float64, bytes that are not UTF-8, halves of surrogate pairs, unknown
// fields and blocks.
var odd = []struct{ name, format, data string }{
	{"empty array", "anthropic", "[]"},
	{"empty array with room", "anthropic", " [ \n ]\t\r\n\n"},
	{"no final newline", "anthropic", `[{"role":"user","content":"a"}]`},
	{"final newlines", "anthropic", "[{\"role\":\"user\",\"content\":\"a\"}]\n\n"},
	{"pretty", "anthropic", "[\n  {\n    \"role\": \"user\",\n    \"content\": \"a\"\n  },\n  {\n    \"role\": \"assistant\",\n    \"content\": \"b\"\n  }\n]\n"},
	{"CRLF", "anthropic", "[\r\n\t{\"role\":\"user\",\"content\":\"a\"},\r\n\t{\"role\":\"assistant\",\"content\":\"b\"},\r\n\t{\"role\":\"user\",\"content\":\"c\"}\r\n]\r\n"},
	{"uneven gaps", "anthropic", "[{\"role\":\"user\",\"content\":\"a\"} ,\n\n {\"role\":\"assistant\",\"content\":\"b\"},{\"role\":\"user\",\"content\":\"c\"}\t,\t{\"content\":\"d\",\"role\":\"assistant\"} ]"},
	{"byte order mark", "anthropic", "\xef\xbb\xbf[{\"role\":\"user\",\"content\":\"a\"}]"},
	{"unknown fields", "anthropic", `[{"zeta":1,"role":"user","content":"a","big":12345678901234567890123,"f":1.0e+30,"x":{"y":[null,{}]}}]`},
	{"repeated keys", "anthropic", `[{"role":"assistant","role":"user","content":"lost","content":"kept","content":[{"type":"text","text":"a","text":"b"}]}]`},
	{"not utf-8", "anthropic", "[{\"role\":\"user\",\"content\":\"a\xff\xfe\xc3(\"}]"},
	{"half a pair", "anthropic", `[{"role":"user","content":"\ud83d x \ude00 \ud83d\ude00 \u0000 \/ \u00e9"}]`},
	{"separators of lines", "anthropic", "[{\"role\":\"user\",\"content\":\"<a> & \u2028\u2029 \x7f\"}]"},
	{"unknown blocks", "anthropic", `[{"role":"user","content":[{"type":"hologram","x":1e400},{"type":"document","source":{"type":"base64","data":"JVBE"}}]}]`},
	{"all blocks", "anthropic", `[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aaaa"}},{"type":"image","source":{"type":"url","url":"https://x/y.png"}},{"type":"image","source":{"type":"file","file_id":"f"}}]},
{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"server_tool_use","id":"srv","name":"web_search","input":{}},{"type":"tool_use","id":"t1","name":"n","input":{"b":1,"a":[1,  2]}},{"type":"tool_use","id":"t2","name":"n","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"},{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aaaa"}}]}]}]`},
	{"request", "anthropic", `{"model": "m", "max_tokens": 9, "system": "s", "messages": [ {"role":"user","content":"a"} ], "tools": [ {"name":"n"} ], "temperature": 0.10}` + "\n"},
	{"request with blocks of system", "anthropic", `{"system":[{"type":"text","text":"one","cache_control":{"type":"ephemeral"}},{"type":"text","text":"two"}],"messages":[]}`},
	{"messages twice", "anthropic", `{"messages":[{"role":"user","content":"lost"}],"messages":[{"role":"user","content":"kept"}]}`},

	{"gemini request", "gemini-api", `{"systemInstruction":{"parts":[{"text":"s"}]}, "contents": [ {"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"aaaa"}},{"fileData":{"fileUri":"gs://x"}}]},
{"role":"model","parts":[{"text":"hm","thought":true},{"text":"","thoughtSignature":"c2ln"},{"functionCall":{"name":"n","args":{"b":1,"a":[1,  2]}},"thoughtSignature":"c2ln"},{"function_call":{"id":"own","name":"n","args":{}}}]},
{"parts":[{"functionResponse":{"name":"n","response":{"output":"x","exit":0}}},{"functionResponse":{"name":"n","response":{"name":"n","content":"y"}}},{"function_response":{"id":"own","name":"n","response":{"error":"no"}}},{"videoMetadata":{},"inline_data":{"mime_type":"video/mp4","data":"aaaa"}}]},{"role":"model","parts":[{"text":"b"}]} ],"tools":[{"functionDeclarations":[{"name":"n"}]}],"generationConfig":{"maxOutputTokens":9}}` + "\n"},
	{"gemini contents", "gemini-api", "[{\"role\":\"user\",\"parts\":[{\"text\":\"a\"}]},\n{\"role\":\"model\",\"parts\":[{\"text\":\"b\",\"x\":1e400}]}]"},
	{"converse request", "bedrock-converse", `{"system":[{"text":"s"},{"cachePoint":{"type":"default"}}], "messages": [ {"role":"user","content":[{"text":"a"},{"image":{"format":"png","source":{"bytes":"aaaa"}}},{"document":{"name":"d","source":{"text":"x"}}}]},
{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"c2ln"}}},{"reasoningContent":{"redactedContent":"aaaa"}},{"text":"t"},{"toolUse":{"toolUseId":"c-1","name":"n","input":{"b":1,"a":[1,  2]}}},{"toolUse":{"toolUseId":"c-2","name":"n","input":{}}}]},
{"role":"user","content":[{"toolResult":{"toolUseId":"c-1","content":[{"text":"x"},{"json":{"exit": 0}},{"image":{"format":"png","source":{"s3Location":{"uri":"s3://x"}}}}],"status":"success"}},{"toolResult":{"toolUseId":"c-2","content":[],"status":"error"}},{"cachePoint":{"type":"default","ttl":"1h"}}]},{"role":"assistant","content":[{"text":"b"}]} ],"toolConfig":{"tools":[{"toolSpec":{"name":"n","inputSchema":{"json":{}}}}]},"inferenceConfig":{"maxTokens":9}}` + "\n"},
	{"converse messages", "bedrock-converse", "[{\"role\":\"user\",\"content\":[{\"text\":\"a\"}]},\n{\"role\":\"assistant\",\"content\":[{\"text\":\"b\"}],\"x\":1e400}]"},

	{"chat", "openai", "[{\"role\":\"system\",\"content\":\"s\"},\n{\"role\":\"user\",\"content\":\"a\",\"name\":\"ann\"}]\n"},
	{"chat request", "openai", `{"model":"gpt-4o","messages":[{"role":"developer","content":[{"type":"text","text":"s"}]}],"tools":[{"type":"function","function":{"name":"n"}}],"n":1}`},
	{"calls", "openai", `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aaaa","detail":"low"}},{"type":"image_url","image_url":"https://x/y.png"},{"type":"input_audio","input_audio":{"data":"x","format":"wav"}}]},
{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":"not json"}},{"index":1,"id":"c2","type":"function","function":{"arguments":"{\"a\": 1}","name":"m"}},{"id":"c3","type":"custom","custom":{"name":"k","input":"free text"}}]},
{"role":"tool","tool_call_id":"c1","content":"x"},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"y"}]},{"role":"tool","tool_call_id":"c3","content":""}]`},
	{"before there were ids", "openai", `[{"role":"assistant","content":"","function_call":{"name":"n","arguments":"{}"}},{"role":"function","name":"n","content":"r"}]`},
	{"reasoning and refusal", "openai", `[{"role":"assistant","reasoning_content":"hm","content":"a"},{"role":"assistant","reasoning":"hm","content":null,"refusal":"no"},{"role":"assistant","content":[{"type":"refusal","refusal":"no"}],"audio":{"id":"x"}}]`},
	{"arguments that are an object", "openai", `[{"role":"assistant","content":"","tool_calls":[{"function":{"name":"n","arguments":{"a":1}}}]}]`},

	{"responses request", "responses", `{"model": "gpt-5.5", "instructions": "be brief", "input": [ {"type":"message","role":"developer","content":[{"type":"input_text","text":"s"}]},
 {"role":"user","content":"a"},{"type":"message","role":"user","content":[{"type":"input_text","text":"b"},{"type":"input_image","image_url":"data:image/png;base64,aaaa","detail":"low"},{"type":"input_file","file_id":"f"}]}
 ], "tools": [{"type":"function","name":"n"}], "store": false, "max_output_tokens": 9, "prompt_cache_key": "k"}` + "\n"},
	{"responses items", "responses", "[{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm\"}],\"encrypted_content\":\"e\"},\r\n" + `{"type":"function_call","id":"fc_1","call_id":"c1","name":"n","arguments":"{\"a\": 1}","status":"completed"},{"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"free text"},
{"type":"local_shell_call","id":"ls","call_id":"c3","status":"completed","action":{"type":"exec","command":["ls"]}},{"type":"apply_patch_call","call_id":"c4","status":"completed","operation":{"type":"delete_file","path":"x"}},
{"type":"shell_call","call_id":"c5","action":{"commands":["ls"]}},{"type":"computer_call","call_id":"c6","action":{"type":"screenshot"}},{"type":"future_tool_call","call_id":"c7","what":1},
{"type":"function_call_output","call_id":"c1","output":"x"},{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"y"},{"type":"input_image","image_url":"https://x/y.png"}]},
{"type":"local_shell_call_output","id":"c3","output":"{}"},{"type":"apply_patch_call_output","call_id":"c4","status":"completed"},{"type":"shell_call_output","call_id":"c5","output":[{"stdout":"o","stderr":"e","outcome":{"type":"exit","exit_code":0}}]},
{"type":"computer_call_output","call_id":"c6","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,aaaa"}},{"type":"future_tool_call_output","call_id":"c7","output":[1]},
{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"q"}},{"type":"message","id":"msg_1","role":"assistant","phase":"final","content":[{"type":"output_text","text":"t","annotations":[]},{"type":"refusal","refusal":"no"}]},{"type":"compaction_trigger"}]`},
	{"responses, what only the vendor understands", "responses", `{"input":[{"type":"compaction","encrypted_content":"e"},{"type":"additional_tools","tools":[]},{"type":"configuration_update","x":1e400},{"type":"mcp_approval_request","id":"a","name":"n","arguments":"{}","server_label":"s"},{"type":"mcp_approval_response","approval_request_id":"a","approve":true},{"type":"mcp_call","id":"c","approval_request_id":"a"},{"type":"hologram","x":1},{"type":"ghost_snapshot"}]}`},
	{"responses answer", "responses", `{"id":"resp_1","object":"response","model":"gpt-5.5","instructions":[{"type":"message","role":"system","content":"be brief"}],"output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"t","annotations":[]}]}],"usage":{}}`},
	{"responses, nothing said", "responses", `{"model":"gpt-5.5","input":[ ]}`},

	{"recorded", "trace", `{"id":"x","source":"s","messages":[{"role":"user","origin":"human","content":[{"type":"text","text":"a","origin":"injected"}]},{"role":"user","origin":"tool","content":[{"type":"tool_result","tool_use_id":"t","content":""}]}],"compactions":[{"at":1}],"stats":{}}`},
	{"recorded, empty", "trace", `{"source":"s","messages":[]}`},
}

// edit hides, rewrites and inserts what it can.
func someEdit(d *transcript.Document) core.Edit {
	edit := core.Edit{Insert: []core.Insert{{Message: core.Message{
		ID: "new", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("Earlier: \"a\" <b>")},
	}}}}
	view := d.Journal.View()
	for i := range view {
		switch i % 3 {
		case 1:
			edit.Hide = append(edit.Hide, view[i].ID)
		case 2:
			edit.Rewrite = append(edit.Rewrite, core.Rewrite{ID: view[i].ID, Parts: []core.Part{core.Text("cut")}})
		}
	}
	return edit
}

func TestUnchangedFileIsWrittenByteForByte(t *testing.T) {
	for _, test := range odd {
		t.Run(test.name, func(t *testing.T) {
			d := read(t, test.data, "")
			if d.Format != test.format {
				t.Errorf("detected %s, want %s", d.Format, test.format)
			}
			if got, warnings := write(t, d, ""); got != test.data || len(warnings) > 0 {
				t.Errorf("got  %q\nwant %q\nwarnings %v", got, test.data, warnings)
			}

			condense(t, d, someEdit(d))
			short, _ := write(t, d, "")
			if short == test.data {
				t.Error("the condensation left no trace")
			}
			read(t, short, test.format)

			journal, _ := write(t, d, "condense")
			undo(t, d)
			if got, _ := write(t, d, ""); got != test.data {
				t.Errorf("after undo\ngot  %q\nwant %q", got, test.data)
			}

			j := read(t, journal, "")
			if j.Format != "condense" || j.Origin != test.format || j.System != d.System || j.Model != d.Model || !bytes.Equal(j.Tools, d.Tools) {
				t.Errorf("journal is %s of %s with system %q, model %q, tools %s", j.Format, j.Origin, j.System, j.Model, j.Tools)
			}
			if again, _ := write(t, j, ""); again != journal {
				t.Errorf("journal changed\ngot  %s\nwant %s", again, journal)
			}
			if got, _ := write(t, j, test.format); got != short {
				t.Errorf("condensed, from the journal\ngot  %q\nwant %q", got, short)
			}
			undo(t, j)
			if got, _ := write(t, j, test.format); got != test.data {
				t.Errorf("undone, from the journal\ngot  %q\nwant %q", got, test.data)
			}
		})
	}
}

func TestGzipIsRead(t *testing.T) {
	const want = `[{"role":"user","content":"a"}]`
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write([]byte(want)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := write(t, read(t, z.String(), ""), ""); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if format, err := transcript.Detect(z.Bytes()); format != "anthropic" || err != nil {
		t.Errorf("detected %s (%v), want anthropic", format, err)
	}
	_, err := transcript.Read(bytes.NewReader(z.Bytes()[:z.Len()-9]), &transcript.ReadOptions{Name: "s.gz"})
	if err == nil || !strings.HasPrefix(err.Error(), "s.gz: gzip: after ") {
		t.Errorf("cut off: got %v", err)
	}
}

func isResult(p core.Part) bool { _, ok := p.(core.ToolResult); return ok }

// What the source of a message says is what its parts say.
func TestSourceSaysTheParts(t *testing.T) {
	for _, test := range odd {
		for _, m := range read(t, test.data, "").Journal.View() {
			if slices.ContainsFunc(m.Parts, isResult) && test.format == "gemini-api" {
				continue // whose it is, the calls before it say
			}
			again := read(t, "["+string(m.Source)+"]", strings.Replace(test.format, "trace", "anthropic", 1)).Journal.View()[0]
			if again.Role != m.Role || !core.EqualParts(again.Parts, m.Parts) {
				t.Errorf("%s: source of %s says %v %v, message %v %v", test.name, m.ID, again.Role, again.Parts, m.Role, m.Parts)
			}
		}
	}
}
