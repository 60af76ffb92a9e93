package tree //nolint:testpackage // next to the other test of the package

import "testing"

func TestPathString(t *testing.T) {
	for want, p := range map[string]Path{
		"threshold":                          {"threshold"},
		`profiles."gpt-4.1".threshold`:       {"profiles", "gpt-4.1", "threshold"},
		"profiles.code.chain[2]":             {"profiles", "code", "chain", "2"},
		`modes."architect/mode".profile`:     {"modes", "architect/mode", "profile"},
		"":                                   nil,
		`profiles."a\"b"`:                    {"profiles", `a"b`},
		"providers.tidy.settings.keep_first": {"providers", "tidy", "settings", "keep_first"},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
