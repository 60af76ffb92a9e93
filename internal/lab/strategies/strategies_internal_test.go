package strategies

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/condensehq/condense/config"
)

func TestSplitOutside(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"a", []string{"a"}},
		{"a,b,,c", []string{"a", "b", "c"}},
		{`smart{"passes":["a","b"]},slidingwindow`, []string{`smart{"passes":["a","b"]}`, "slidingwindow"}},
		{`a{"text":"}, \" {,"},b`, []string{`a{"text":"}, \" {,"}`, "b"}},
		{`peer=external["x","a]b"],c`, []string{`peer=external["x","a]b"]`, "c"}},
		{`a[1=b,c]d=e,f`, []string{`a[1=b`, `c]d=e`, "f"}}, // brackets in labels are as other characters
		{`a{,b`, []string{`a{,b`}}, // an open brace is reported when the settings are read
	} {
		if got := splitOutside(c.text, ','); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestWithSetting(t *testing.T) {
	for settings, want := range map[string]string{
		"":                               `{"preset":"tight"}`,
		`{}`:                             `{"preset":"tight"}`,
		`{"keep":3}`:                     `{"keep":3,"preset":"tight"}`,
		`{"keep":3,"preset":"balanced"}`: `{"keep":3,"preset":"tight"}`,
	} {
		var raw json.RawMessage
		if settings != "" {
			raw = json.RawMessage(settings)
		}
		if got, err := withSetting(raw, "preset", json.RawMessage(`"tight"`)); err != nil || string(got) != want {
			t.Errorf("%s: got %s (%v), want %s", settings, got, err, want)
		}
	}
	if _, err := withSetting(json.RawMessage(`[1]`), "preset", json.RawMessage(`"tight"`)); err == nil {
		t.Error("a list is taken for settings")
	}
}

func TestYAMLName(t *testing.T) {
	for name, want := range map[string]string{
		"code": "code", "smart/balanced": "smart/balanced", "no": `"no"`, "True": `"True"`, "a b": `"a b"`, "": `""`, "1": `"1"`, "a:": `"a:"`, "x\n": `"x\n"`, "\u202e": `"\u202e"`,
	} {
		if got := YAMLName(name); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

// TestKeyOfPlugin: another checksum of a plugin is another key, and a plugin without an approved one has none.
func TestKeyOfPlugin(t *testing.T) {
	chain := []config.Provider{{Name: "ours", Plugin: "/ours"}}
	key := func(pin string, err error) string {
		b := &Opener{Config: config.Default(), Pin: func(config.Provider) (string, error) { return pin, err }}
		return b.key(chain, []string{""}, false)
	}
	if a := key("a", nil); a == "" || a == key("b", nil) || a != key("a", nil) {
		t.Errorf("got the key %q", a)
	}
	if key("", nil) != "" || key("a", errors.New("not approved")) != "" || (&Opener{Config: config.Default()}).key(chain, []string{""}, false) != "" {
		t.Error("a plugin without a checksum has a key")
	}
}
