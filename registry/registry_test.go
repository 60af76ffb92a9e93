package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

type settings struct {
	Keep  int               `json:"keep" doc:"how many messages stay"`
	Mode  string            `json:"mode" enum:"a|b" doc:"which way"`
	Extra map[string]string `json:"extra"`
}

func (s *settings) Validate() error {
	if s.Keep < 0 {
		return fmt.Errorf("keep: %d is negative", s.Keep)
	}
	return nil
}

func defaults() settings { return settings{Keep: 3, Mode: "a", Extra: map[string]string{"x": "y"}} }

// opened is a provider that remembers the settings it was opened with.
type opened struct{ settings }

func (opened) Condense(_ context.Context, req *core.Request) (*core.Result, error) {
	return &core.Result{Messages: req.Messages}, nil
}

func define(name string) registry.Strategy {
	return registry.Define(name, "Keeps some.", defaults,
		func(ctx context.Context, s settings, env registry.Env) (core.CondensationProvider, error) {
			env.Logger.DebugContext(ctx, "opened") // a provider may rely on having a logger
			return opened{s}, nil
		})
}

func TestOpenMergesSettingsOverDefaults(t *testing.T) {
	s := define("some")
	open := func(raw string) settings {
		t.Helper()
		p, err := s.Open(t.Context(), json.RawMessage(raw), registry.Env{})
		if err != nil {
			t.Fatal(err)
		}
		return p.(opened).settings
	}
	if got := open(`{"extra":{"p":"q"}}`); got.Keep != 3 || got.Extra["p"] != "q" {
		t.Errorf("got %+v, want keep 3 and p:q", got)
	}
	// The map of one provider must not reach the next.
	if got := open(``); got.Extra["p"] != "" || got.Extra["x"] != "y" {
		t.Errorf("got %+v, want the defaults alone", got)
	}
}

func TestOpenRejectsWrongSettings(t *testing.T) {
	for raw, want := range map[string]string{
		`{"kepe":1}`:        `open some: settings: unknown setting "kepe"; did you mean "keep"?; there are keep, mode, extra`,
		`{"keep":"three"}`:  `open some: settings: keep: got a JSON string; want integer`,
		`{"mode":"c"}`:      `open some: settings: mode: "c" is none of a, b`,
		`[1]`:               `open some: settings: got a JSON array; want an object`,
		`{"keep":-1}`:       `open some: settings: keep: -1 is negative`,
		`{"keep":1} {}`:     `open some: settings: more than one JSON value`,
		`{"keep":`:          `open some: settings: unexpected EOF`,
		`{"keep":1e400}`:    `open some: settings: keep: got a JSON number 1e400; want integer`,
		`{"keep":1,"keep"}`: `open some: settings: invalid character '}' after object key`,
	} {
		_, err := define("some").Open(t.Context(), json.RawMessage(raw), registry.Env{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: got error %v, want %s", raw, err, want)
		}
	}
}

// TestUnknownKeysAreFound: a key that is wrong inside another setting is said to be there,
// with the keys that there are.
func TestUnknownKeysAreFound(t *testing.T) {
	type limits struct {
		Most int `json:"most"`
	}
	type nested struct {
		Limits limits            `json:"limits"`
		Steps  []limits          `json:"steps"`
		Of     map[string]limits `json:"of"`
		Empty  *struct{}         `json:"empty"`
	}
	s := registry.Define("some", "Keeps some.", func() nested { return nested{} },
		func(context.Context, nested, registry.Env) (core.CondensationProvider, error) { return opened{}, nil })
	for raw, want := range map[string]string{
		`{"limits":{"msot":1}}`:              `limits: unknown setting "msot"; did you mean "most"?; there are most`,
		`{"steps":[{"most":1},{"x":1}]}`:     `steps: 2: unknown setting "x"; there are most`,
		`{"of":{"a":{"most":1},"b":{"":1}}}`: `of: b: unknown setting ""; there are most`,
		`{"empty":{"most":1}}`:               `empty: unknown setting "most"; there are none`,
		`{"limits":{"most":1},"most":1}`:     `unknown setting "most"; there are limits, steps, of, empty`,
		`{"limits":{"x":1},"limits":{}}`:     `unknown setting "x"; there are limits, steps, of, empty`,
	} {
		_, err := s.Open(t.Context(), json.RawMessage(raw), registry.Env{})
		if want = "open some: settings: " + want; err == nil || err.Error() != want {
			t.Errorf("%s: got error %v, want %s", raw, err, want)
		}
	}
}

func TestSettingsAreDocumented(t *testing.T) {
	got, err := json.Marshal(define("some").Settings())
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"name":"keep","type":"integer","default":3,"doc":"how many messages stay"},` +
		`{"name":"mode","type":"string","default":"a","doc":"which way","enum":["a","b"]},` +
		`{"name":"extra","type":"object","default":{"x":"y"},"doc":""}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The settings of an embedded struct are settings of the struct around it, as in its JSON; a pointer to a struct is an object
// with settings too.
func TestSharedSettingsAreDocumented(t *testing.T) {
	type Shared struct {
		Most int `json:"most" doc:"the most" unit:"tokens"`
	}
	type config struct {
		Shared

		Own *Shared `json:"own" doc:"its own"`
	}
	_, err := registry.Settings[config](func() config { return config{} }).Decode(json.RawMessage(`{"most": 1, "own": {"most": 2}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	registry.Nested(registry.Settings[config](func() config { return config{} }).List(), func(s registry.Setting, _ int) {
		got = append(got, s.Name+" "+s.Tag.Get("unit"))
	})
	if want := []string{"most tokens", "own ", "own.most tokens"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The settings in a struct are documented like the others: what a user sees is not just an object.
func TestNestedSettingsAreDocumented(t *testing.T) {
	type mark struct {
		Style string `json:"style" doc:"how it looks" enum:"dots|dashes"`
	}
	type config struct {
		Mark mark `json:"mark" doc:"the mark"`
	}
	s := registry.Settings[config](func() config { return config{mark{"dots"}} }).List()
	var got []string
	registry.Nested(s, func(s registry.Setting, depth int) {
		got = append(got, fmt.Sprintf("%d %s %s %s %s %q", depth, s.Name, s.Type, s.Default, s.Doc, s.Enum))
	})
	wavy := registry.Settings[config](func() config { return config{mark{"wavy"}} })
	for _, raw := range []string{``, `{"mark":{"style":"dot"}}`} {
		if _, err := wavy.Decode(json.RawMessage(raw)); err == nil || !strings.Contains(err.Error(), "settings: mark.style: ") {
			t.Errorf("%s: got error %v, want that mark.style is none of dots, dashes", raw, err)
		}
	}
	type odd struct {
		Marks []string `json:"marks" enum:"a&b|<z>"`
		Text  string   `json:"text" enum:"a&b|null"`
		More  *struct {
			N int `json:"n" enum:"1|2"`
		} `json:"more"`
	}
	odds := registry.Settings[odd](func() odd { return odd{} })
	for raw, wrong := range map[string]string{
		``: "", `{"marks":["a&b","<z>"],"text":"a&b"}`: "", `{"text":"null","more":{"n":2}}`: "", `{"more":null}`: "",
		`{"marks":["a&b","x"]}`: `settings: marks: "x" is none of a&b, <z>`, `{"more":{"n":3}}`: `settings: more.n: "3" is none of 1, 2`,
	} {
		if _, err := odds.Decode(json.RawMessage(raw)); wrong == "" && err != nil || wrong != "" && (err == nil || err.Error() != wrong) {
			t.Errorf("%s: got error %v, want %q", raw, err, wrong)
		}
	}
	want := []string{`0 mark object {"style":"dots"} the mark []`, `1 mark.style string "dots" how it looks ["dots" "dashes"]`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNewReportsEveryFault(t *testing.T) {
	_, err := registry.New(define("one"), define("one"), define("Two"), registry.Strategy{Name: "three"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"one": registered twice`, `"Two": a name has lower-case`, `"three": not made by`, `"three": no documentation`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %s:\n%v", want, err)
		}
	}
}

func TestGetNamesWhatThereIs(t *testing.T) {
	r, err := registry.New(define("slidingwindow"), define("smart"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Get("smrt")
	const want = `no strategy "smrt"; did you mean "smart"?; there are slidingwindow, smart`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestOpenKeepsTheCause(t *testing.T) {
	cause := errors.New("no")
	s := registry.Define("bad", "Fails.", defaults,
		func(context.Context, settings, registry.Env) (core.CondensationProvider, error) { return nil, cause })
	if _, err := s.Open(t.Context(), nil, registry.Env{}); !errors.Is(err, cause) {
		t.Errorf("got %v, want it to wrap %v", err, cause)
	}
}

// A strategy that declares that it asks no model gets none.
func TestUndeclaredModelsAreRefused(t *testing.T) {
	asks := registry.Define("asks", "Asks.", defaults, func(_ context.Context, s settings, env registry.Env) (core.CondensationProvider, error) {
		_, err := env.Model("")
		return opened{s}, err
	})
	env := registry.Env{Model: func(string) (model.Generator, error) { return nil, nil }}
	for may, want := range map[core.Abilities]string{
		0:               "",
		core.AsksModels: "",
		core.Hides:      `open asks: declared-abilities: asks a language model, but the provider declares "hides only: cannot put a word into the conversation"`,
	} {
		_, err := asks.Only(may).Open(t.Context(), nil, env)
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("%v: got %v; want %q", may, err, want)
		}
	}
}

// A setting that was renamed is read under its former names too, at any depth. Both names at once are a mistake.
func TestRenamedSettings(t *testing.T) {
	type inner struct {
		Style string `json:"style" was:"look"`
	}
	type config struct {
		Recent int   `json:"recent" was:"keep|last"`
		Mark   inner `json:"mark" was:"sign"`
	}
	decode := registry.Settings[config](func() config { return config{Recent: 4} }).Decode
	for raw, want := range map[string]config{
		`{"recent": 1}`:              {Recent: 1},
		`{"keep": 2}`:                {Recent: 2},
		`{"last": 3}`:                {Recent: 3},
		`{"sign": {"look": "dots"}}`: {4, inner{"dots"}},
		`{"mark": {"look": "dots"}}`: {4, inner{"dots"}},
	} {
		if got, err := decode(json.RawMessage(raw)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", raw, got, err, want)
		}
	}
	for raw, want := range map[string]string{
		`{"recent": 1, "last": 2}`:              "settings: last: is the former name of recent, which is set as well",
		`{"keep": 1, "last": 2}`:                "settings: last: is the former name of recent, which is set as well",
		`{"mark": {"style": "a", "look": "b"}}`: "settings: mark.look: is the former name of style, which is set as well",
		`{"kept": 2}`:                           `settings: unknown setting "kept"; there are recent, mark`,
	} {
		if _, err := decode(json.RawMessage(raw)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", raw, err, want)
		}
	}
}
