package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// A memory reads and writes what encoding/json does, at the first time and later.
func TestMemory(t *testing.T) {
	m := newMemory()
	texts := rapid.SampledFrom([]string{"", "a", `\`, `"`, "\\\"", "[{", "}]", "\x00element 0", "é\u2028<&>", "\xff", "messages", "input"})
	values := rapid.Custom(func(t *rapid.T) any {
		var draw func(depth int) any
		draw = func(depth int) any {
			switch n := rapid.IntRange(0, 9).Draw(t, "kind"); {
			case n < 3 || depth > 4 && n < 7:
				return texts.Draw(t, "text")
			case n < 5 && depth <= 4:
				o := object{}
				for range rapid.IntRange(0, 3).Draw(t, "members") {
					o[texts.Draw(t, "name")] = draw(depth + 1)
				}
				return o
			case n < 7:
				list := []any{}
				for range rapid.IntRange(0, 3).Draw(t, "length") {
					list = append(list, draw(depth+1))
				}
				return list
			case n == 7:
				return json.Number(strconv.Itoa(rapid.IntRange(-9, 1<<40).Draw(t, "number")))
			case n == 8:
				return rapid.Bool().Draw(t, "bool")
			}
			return nil
		}
		o := object{}
		for _, name := range []string{"messages", "input", "model"} {
			o[name] = draw(0)
		}
		return o
	})
	rapid.Check(t, func(t *rapid.T) {
		v := values.Draw(t, "value")
		want := encode(v)
		if got := m.encode(nil, v); !bytes.Equal(got, want) {
			t.Fatalf("wrote %s, want %s", got, want)
		}
		body := want
		if n := len(body); rapid.IntRange(0, 3).Draw(t, "spoil") == 0 { // no JSON, mostly
			at := rapid.IntRange(0, n-1).Draw(t, "at")
			body = append(append(bytes.Clone(body[:at]), rapid.SampledFrom([]string{"", "{", "}", "[", "]", `"`, ",", "1", `\`, `"messages":[{}],`}).Draw(t, "put")...), body[at+rapid.IntRange(0, 1).Draw(t, "drop"):]...)
		}
		var plain object
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		wantErr := d.Decode(&plain)
		got, err := m.decode(body)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && !reflect.DeepEqual(got, plain) {
			t.Fatalf("%s\nread %#v, %v\nwant %#v, %v", body, got, err, plain, wantErr)
		}
	})
}
