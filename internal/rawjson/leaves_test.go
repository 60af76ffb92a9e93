package rawjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/rawjson"
)

func leaves(text string) string {
	var all []string
	for key, leaf := range rawjson.Leaves([]byte(text)) {
		if key == nil {
			key = []byte("-")
		}
		all = append(all, string(key)+" "+string(leaf))
	}
	return strings.Join(all, "|")
}

func TestLeaves(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1,"b":{"c":"x","d":[true,{"e":null},"y"]},"\u0066":-2}`: `- {|a 1|b {|c "x"|d [|- true|- {|e null|- "y"|f -2`,
		` [ "a" , [] , {"":"b"} ] `:                                   `- [|- "a"|- [|- {| "b"`,
		`"only"`:                                                      `- "only"`,
		`{"a":"x","b":"un`:                                            `- {|a "x"`,
		`{"a" "b"}]}`:                                                 `- {|a "b"`,
		``:                                                            ``,
	} {
		if got := leaves(text); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestLeavesAreAll: a valid text has as many leaves as encoding/json finds.
func TestLeavesAreAll(t *testing.T) {
	t.Parallel()
	var value *rapid.Generator[any]
	value = rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return map[string]any{rapid.String().Draw(t, "key"): value.Draw(t, "member"), "x": value.Draw(t, "x")}
		case 1:
			return []any{value.Draw(t, "first"), "s", value.Draw(t, "last")}
		case 2:
			return rapid.Float64Range(-9, 9).Draw(t, "number")
		case 3:
			return nil
		}
		return rapid.String().Draw(t, "string")
	})
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(value.Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, leaf := range rawjson.Leaves(text) {
			if !rawjson.IsObject(leaf) && !rawjson.IsArray(leaf) {
				n++
			}
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		if want := count(v); n != want {
			t.Errorf("%s has %d leaves, want %d", text, n, want)
		}
	})
}

func count(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += count(e)
		}
	case []any:
		for _, e := range v {
			n += count(e)
		}
	default:
		n = 1
	}
	return n
}
