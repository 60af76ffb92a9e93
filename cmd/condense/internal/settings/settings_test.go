package settings_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/cmd/condense/internal/settings"
)

func TestSet(t *testing.T) {
	for name, tt := range map[string]struct{ format, in, path, out string }{
		"no file":        {"json", "", "env.URL", "{\n  \"env\": {\n    \"URL\": \"new\"\n  }\n}\n"},
		"empty object":   {"json", "{}\n", "env.URL", "{\n  \"env\": {\n    \"URL\": \"new\"\n  }\n}\n"},
		"first of many":  {"json", "{\n\t\"a\": 1, // one\n\t\"b\": [2]\n}\n", "env.URL", "{\n\t\"env\": {\n\t\t\"URL\": \"new\"\n\t},\n\t\"a\": 1, // one\n\t\"b\": [2]\n}\n"},
		"into an object": {"json", "{\n    \"env\": {\n        \"A\": \"1\"\n    },\n}\n", "env.URL", "{\n    \"env\": {\n        \"URL\": \"new\",\n        \"A\": \"1\"\n    },\n}\n"},
		"one line":       {"json", `{"a":1}`, "env.URL", `{"env":{"URL":"new"},"a":1}`},
		"replaced":       {"json", "{\"env\": {\"URL\": \"old\" /* ours */}}", "env.URL", "{\"env\": {\"URL\": \"new\" /* ours */}}"},
		"line ends":      {"json", "{\r\n  \"a\": 1\r\n}\r\n", "b", "{\r\n  \"b\": \"new\",\r\n  \"a\": 1\r\n}\r\n"},
		"toml, no file":  {"toml", "", "url", "url = \"new\"\n"},
		"toml":           {"toml", "# mine\nmodel = 'x'\n\n[a]\nurl = 'theirs'\n", "url", "url = \"new\"\n# mine\nmodel = 'x'\n\n[a]\nurl = 'theirs'\n"},
		"toml, replaced": {"toml", "a = 1\nurl = 'old' # note\n[t]\nx = 1\n", "url", "a = 1\nurl = \"new\" # note\n[t]\nx = 1\n"},
		"toml, quoted":   {"toml", "\"url\" = \"\"\"old\"\"\"\n", "url", "\"url\" = \"new\"\n"},
	} {
		out, change, err := settings.Set(tt.format, []byte(tt.in), "new", strings.Split(tt.path, ".")...)
		if err != nil || string(out) != tt.out {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, out, tt.out)
			continue
		}
		back, done, err := settings.Undo(tt.format, out, change)
		if in := tt.in; err != nil || !done || string(back) != in && strings.TrimSpace(in) != "" && in != "{}\n" {
			t.Errorf("%s: undone %v, %v:\n%q\nwant\n%q", name, done, err, back, in)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct{ format, in, path, says string }{
		"array":     {"json", `[1]`, "a", "not a JSON object"},
		"broken":    {"json", `{"a":`, "a", "not valid JSON"},
		"a text":    {"json", `{"env":"x"}`, "env.URL", "env is not an object"},
		"an object": {"json", `{"env":{}}`, "env", "env is not a text"},
		"toml":      {"toml", "a = \n", "url", "not valid TOML"},
		"huge":      {"json", strings.Repeat(" ", 2<<20), "a", "more than"},
	} {
		if _, _, err := settings.Set(tt.format, []byte(tt.in), "new", strings.Split(tt.path, ".")...); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", name, err, tt.says)
		}
	}
}

// extras are what people write between values of JSON with comments.
var extras = rapid.SampledFrom([]string{"", " ", "\n", "\n  ", "\t", " // note, \"x\": {\n", "/* { */", "\n    // two\n  ", "\r\n  "})

func drawObject(t *rapid.T, depth int) string {
	var b strings.Builder
	b.WriteString("{" + extras.Draw(t, "extra"))
	n := rapid.IntRange(0, 3).Draw(t, "members")
	for i := range n {
		key := rapid.SampledFrom([]string{"a", "b", "env", "provider", "URL", "x\\ny"}).Draw(t, "key")
		value := rapid.SampledFrom([]string{`1`, `"old"`, `null`, `[1, {"URL": 2},]`, `""`, `"}"`}).Draw(t, "value")
		if depth < 3 && rapid.Bool().Draw(t, "object") {
			value = drawObject(t, depth+1)
		}
		b.WriteString(`"` + key + `"` + extras.Draw(t, "e") + ":" + extras.Draw(t, "e") + value + extras.Draw(t, "e"))
		if i < n-1 || rapid.Bool().Draw(t, "comma") {
			b.WriteString("," + extras.Draw(t, "e"))
		}
	}
	return b.String() + "}"
}

// A value that is set can be read, everything else is as it was, and undoing gives the file back:
// byte for byte if the value was put into an object with members or replaced one.
func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := extras.Draw(t, "before") + drawObject(t, 0) + extras.Draw(t, "after")
		path := []string{rapid.SampledFrom([]string{"env", "a", "new"}).Draw(t, "p"), rapid.SampledFrom([]string{"URL", "b"}).Draw(t, "p")}
		out, change, err := settings.Set(settings.JSON, []byte(in), "new", path...)
		if err != nil {
			return // an object where a text should be, or the reverse
		}
		if got, ok, err := settings.Get(settings.JSON, out, path...); got != "new" || !ok || err != nil {
			t.Fatalf("%q is read as %q, %v, %v", out, got, ok, err)
		}
		// Edited since: a comment at the end, and another member.
		edited, other, err := settings.Set(settings.JSON, append(bytes.Clone(out), "// later\n"...), "mine", "later")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{out, edited} {
			back, done, err := settings.Undo(settings.JSON, text, change)
			if err != nil || !done {
				t.Fatalf("undo in %q: %v, %v", text, done, err)
			}
			want := in
			if &text[0] == &edited[0] {
				if back, done, err = settings.Undo(settings.JSON, back, other); err != nil || !done {
					t.Fatalf("undo the other in %q: %v, %v", text, done, err)
				}
			} else if exact := change.Old != "" || change.Made == 0 && !emptied(in, path[0]); exact && string(back) != in {
				t.Fatalf("not the same bytes:\n%q\n%q\n%q", in, out, back)
			}
			if values(t, back) != values(t, []byte(want)) {
				t.Fatalf("other values:\n%q\n%q\n%q", in, out, back)
			}
			if strings.Count(string(back), "note,") != strings.Count(in, "note,") {
				t.Fatalf("a comment is gone:\n%q\n%q\n%q", in, out, back)
			}
		}
		// The user's own value since then is kept.
		own, _, err := settings.Set(settings.JSON, out, "own", path...)
		if err != nil {
			t.Fatal(err)
		}
		if back, done, err := settings.Undo(settings.JSON, own, change); done || err != nil || !bytes.Equal(back, own) {
			t.Fatalf("the user's value: %q, %v, %v", back, done, err)
		}
	})
}

// emptied reports whether the object that the value was put into had no members.
func emptied(in, name string) bool {
	v, err := hujson.Parse([]byte(in))
	if err != nil {
		return true
	}
	for _, m := range v.Value.(*hujson.Object).Members {
		if o, ok := m.Value.Value.(*hujson.Object); ok && m.Name.Value.(hujson.Literal).String() == name && len(o.Members) == 0 {
			return true
		}
	}
	return false
}

func values(t *rapid.T, text []byte) string {
	plain, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var v any
	if err := json.Unmarshal(plain, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestTOMLRoundTrip(t *testing.T) {
	lines := rapid.SampledFrom([]string{
		"# note", "", "model = \"m\"", "n = 1 # one", "url = 'old' # ours", "\"url\" = \"x\"", "a.b = true", "[table]", "[[list]]", "url = 2", "text = \"\"\"\nurl = 'no'\n\"\"\"", "other.url = 'theirs'", "list = [\n  1,\n]",
	})
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(lines, 0, 8).Draw(t, "lines"), rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end"))
		out, change, err := settings.Set(settings.TOML, []byte(in), "new", "url")
		if err != nil {
			return // not valid
		}
		if got, ok, err := settings.Get(settings.TOML, out, "url"); got != "new" || !ok || err != nil {
			t.Fatalf("%q is read as %q, %v, %v", out, got, ok, err)
		}
		back, done, err := settings.Undo(settings.TOML, out, change)
		if err != nil || !done || string(back) != in {
			t.Fatalf("undone %v, %v:\n%q\n%q\n%q", done, err, in, out, back)
		}
	})
}

func FuzzSet(f *testing.F) {
	f.Add("json", "{\"env\": {}, // x\n}")
	f.Add("toml", "url = 'x'\n[t]")
	f.Fuzz(func(t *testing.T, format, in string) {
		out, change, err := settings.Set(format, []byte(in), "new", "url")
		if err != nil {
			return
		}
		if got, ok, err := settings.Get(format, out, "url"); got != "new" || !ok || err != nil {
			t.Fatalf("%q is read as %q, %v, %v", out, got, ok, err)
		}
		if _, done, err := settings.Undo(format, out, change); !done || err != nil {
			t.Fatalf("undo in %q: %v, %v", out, done, err)
		}
	})
}

// Lines of variables: the last one counts, and undoing gives the bytes back.
func TestEnv(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "URL=new\n",
		"A=1\r\n":                           "URL=new\r\nA=1\r\n",
		"# URL=x\nexport URL = \"a b\" \n":  "# URL=x\nexport URL = new \n",
		"URL=1\nURL='2'":                    "URL=1\nURL=new",
		"\ufeffB=2\n":                       "\ufeffURL=new\nB=2\n",
		"not a variable\nMY_URL=a=b\nURL2=": "URL=new\nnot a variable\nMY_URL=a=b\nURL2=",
	} {
		out, change, err := settings.Set(settings.Env, []byte(in), "new", "URL")
		if err != nil || string(out) != want {
			t.Errorf("%q: %q, %v; want %q", in, out, err, want)
		}
		if got, ok, err := settings.Get(settings.Env, out, "URL"); got != "new" || !ok || err != nil {
			t.Errorf("%q: %q, %v, %v", out, got, ok, err)
		}
		if back, done, err := settings.Undo(settings.Env, out, change); !done || err != nil || string(back) != in {
			t.Errorf("%q: undone %q, %v, %v", in, back, done, err)
		}
	}
}
