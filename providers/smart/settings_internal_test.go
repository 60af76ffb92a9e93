package smart

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/condensehq/condense/registry"
)

func openError(settings string) string {
	_, err := Strategy().Open(context.Background(), json.RawMessage(settings), registry.Env{})
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestWrongSettings: an error says where the fault is and what is allowed there.
func TestWrongSettings(t *testing.T) {
	all := strings.Join(passNames(), ", ")
	const either = "want the name of a pass, or an object with the key pass"
	for settings, want := range map[string]string{
		// the list of passes
		`{"passes":[]}`:                            "passes: the list is empty, nothing would be done; name at least one pass, or leave the key out to have those of a preset",
		`{"passes":[],"preset":"balanced"}`:        "passes: the list is empty, nothing would be done; name at least one pass, or leave the key out to have those of a preset",
		`{"passes":["value"],"preset":"lossless"}`: `passes: the preset "lossless" has passes of its own; leave one of the two out`,
		`{"passes":null}`:                          "",
		`{"passes":"value"}`:                       "passes: got a JSON string; want array",
		`{"passes":{"pass":"value"}}`:              "passes: got a JSON object; want array",
		// its content
		`{"passes":["layout",null]}`:                   "passes: 2: got null; " + either,
		`{"passes":[5]}`:                               "passes: 1: got 5; " + either,
		`{"passes":[["value"]]}`:                       "passes: 1: got a list; " + either,
		`{"passes":["layout",{}]}`:                     "passes: 2: an object without the key pass, the name of the pass; there are " + all,
		`{"passes":[{"pas":"value"}]}`:                 "passes: 1: an object without the key pass, the name of the pass; there are " + all,
		`{"passes":[{"pass":5}]}`:                      "passes: 1: pass: got 5; want the name of a pass",
		`{"passes":[{"pass":"value","always":"yes"}]}`: `passes: 1: always: got "yes"; want true or false`,
		`{"passes":[{"pass":"value","always":null}]}`:  "",
		`{"passes":["valu"]}`:                          `passes: 1: no pass "valu"; did you mean "value"?; there are ` + all,
		`{"passes":[5,{"pass":"mask","keep":-1}]}`:     "passes: 1: got 5; " + either + "\npasses: 2: mask: settings: keep: -1 is negative",
		// conditions
		`{"accept":{}}`:                         "",
		`{"accept":null}`:                       "",
		`{"accept":{"messages":null}}`:          "",
		`{"accept":[]}`:                         "accept: got a JSON array; want object",
		`{"accept":{"mesages":3}}`:              `accept: unknown setting "mesages"; did you mean "messages"?; there are messages, users, first`,
		`{"accept":{"preset":3}}`:               `accept: unknown setting "preset"; there are messages, users, first`,
		`{"accept":{"messages":"x"}}`:           "accept.messages: got a JSON string; want integer",
		`{"accept":{"first":1}}`:                "accept.first: got a JSON number; want boolean",
		`{"accept":{"messages":-1,"users":-2}}`: "accept: messages: -1 is negative\naccept: users: -2 is negative",
		// the rest
		`{"land":1.5}`:      "land: 1.5 is not between 0 and 1",
		`{"min_gain":-1}`:   "min_gain: -1 is negative",
		`{"min_share":1}`:   "min_share: 1 is not at least 0 and below 1",
		`{"preset":"tidy"}`: `preset: no preset "tidy"; there are ` + strings.Join(presetNames(), ", "),
		`{"preset":""}`:     "",
		// of former versions
		`{"preset":"conservative"}`: `preset: there is no preset "conservative" any more: "balanced" keeps more of the text that is needed later, at every size`,
		`{"preset":"headtail"}`:     `preset: there is no preset "headtail" any more: use passes: [{pass: headtail, fit: true, tokens: 40, keep: 0}], which is the same, or "balanced", which keeps more of the text that is needed later`,
		`null`:                      "",
	} {
		if want != "" {
			want = "open smart: settings: " + want
		}
		if got := openError(settings); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", settings, got, want)
		}
	}
}

// TestWrongSettingsOfPasses gives every setting of every pass what it cannot be.
func TestWrongSettingsOfPasses(t *testing.T) {
	points := map[string]bool{"error": true, "calls": true, "files": true, "user": true, "short": true, "thinking": true} // of score: any number
	for _, p := range passes {
		in := func(key, value string) string {
			return openError(`{"passes":["layout",{"pass":"` + p.name + `","` + key + `":` + value + `}]}`)
		}
		where := "open smart: settings: passes: 2: " + p.name + ": settings: "
		var keys []string
		for _, s := range p.settings() {
			keys = append(keys, s.Name)
			wrong := map[string]string{"integer": `"x"`, "number": `[]`, "boolean": `3`, "string": `{}`, "array": `{}`}[s.Type]
			if got := in(s.Name, wrong); !strings.HasPrefix(got, where+s.Name+": got a JSON ") || !strings.HasSuffix(got, "want "+s.Type) {
				t.Errorf("%s: %s: %s: got %q", p.name, s.Name, wrong, got)
			}
			if got := in(s.Name, "null"); got != "" {
				t.Errorf("%s: %s: null is not the default: %s", p.name, s.Name, got)
			}
			if (s.Type == "integer" || s.Type == "number") && (p.name != scorePass.name || !points[s.Name]) {
				if got := in(s.Name, "-1"); !strings.HasPrefix(got, where) || !strings.Contains(got, s.Name) {
					t.Errorf("%s: %s: -1: got %q", p.name, s.Name, got)
				}
			}
		}
		if got, want := in("zzzzzzz", "1"), where+`unknown setting "zzzzzzz"; there are `; len(keys) > 0 && got != want+strings.Join(keys, ", ") {
			t.Errorf("%s: got %q, want %q", p.name, got, want)
		}
	}
}
