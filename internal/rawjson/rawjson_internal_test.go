package rawjson

import (
	"bytes"
	"encoding/json"
	"testing"
)

var strange = []string{
	`""`, `"plain"`, `"\u0000\u001f\/\b\f\n\r\t\"\\"`, `"\ud83d\ude00 \ud83d \ude00\ud83d"`, `"\ud83d\ud83d\ude00"`, "\"\xff\xc3(\xe2\x82\"",
	`"\uD83D\u0041"`, `"é😀\u00e9"`, "\"\u2028<>&\"", `"\\\\"`, `"\\\""`, `"\\u0041"`, "\"\xff\\n\xfe\"", `"\ud83d\n"`, `"ends in \ud83d"`,
}

// Strings decode exactly as encoding/json decodes them, and are written so that it
// reads the same.
func FuzzStrings(f *testing.F) {
	for _, s := range strange {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want string
		if raw = bytes.TrimSpace(raw); json.Unmarshal(raw, &want) != nil || !IsString(raw) {
			return
		}
		if got := Unquote(raw); got != want {
			t.Fatalf("unquote %s: got %q, want %q", raw, got, want)
		}
		var back string
		if err := json.Unmarshal(AppendQuote(nil, want), &back); err != nil || back != want {
			t.Fatalf("quote %q: got %q (%v)", want, back, err)
		}
		if clean := Clean(string(raw)); !json.Valid([]byte(clean)) || Text([]byte(clean)) != want {
			t.Fatalf("clean %s: got %s", raw, clean)
		}
	})
}

// The walk over objects and arrays finds what encoding/json finds, and where.
func FuzzWalk(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, ` { "a" : [ 1 , {"b":"}"} ] , "c" :"\"" , "a":null } `, `[1.5e3,true,"]",[],{}]`, `{"a\u0062":1,"":2}`, `[[[[]]]]`, `7`, `{"a":`, `[1,`, `["`, `{"a" 1}`, `{"a":"\\","b":["\\\"",1]}`, `{,}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		keys, values := 0, 0
		var object map[string]json.RawMessage
		valid := json.Unmarshal(raw, &object) == nil && object != nil
		for k, v := range Fields(raw) {
			keys++
			if at := Offset(raw, v); !bytes.Equal(raw[at:at+len(v)], v) {
				t.Fatalf("offset of %s in %s: %d", v, raw, at)
			}
			if valid && !json.Valid(v) {
				t.Fatalf("value of %q in %s: %s", k, raw, v)
			}
		}
		for k, want := range object {
			if got := Field(raw, k); valid && !bytes.Equal(got, want) {
				t.Fatalf("%q in %s: got %s, want %s", k, raw, got, want)
			}
			if changed := SetField(raw, k, []byte(`[0]`)); valid && !bytes.Equal(Field(changed, k), []byte(`[0]`)) {
				t.Fatalf("%q in %s set: %s", k, raw, changed)
			}
			if cut := CutField(bytes.TrimSpace(raw), k); valid && (!json.Valid(cut) || Field(cut, k) != nil) {
				t.Fatalf("%q in %s cut: %s", k, raw, cut)
			}
			if dropped := DropField(raw, k); valid && (!json.Valid(dropped) || Field(dropped, k) != nil) {
				t.Fatalf("%q in %s dropped: %s", k, raw, dropped)
			}
		}
		if valid && keys < len(object) {
			t.Fatalf("%s: found %d of %d members", raw, keys, len(object))
		}
		var array []json.RawMessage
		valid = json.Unmarshal(raw, &array) == nil
		for v := range Elements(raw) {
			if valid && !bytes.Equal(v, array[values]) {
				t.Fatalf("element %d of %s: got %s, want %s", values, raw, v, array[values])
			}
			values++
		}
		if valid && values != len(array) {
			t.Fatalf("%s: found %d of %d elements", raw, values, len(array))
		}
	})
}
