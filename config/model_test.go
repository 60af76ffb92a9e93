package config_test

import "testing"

// A price that is nothing is known, which no price at all is not.
func TestModelFree(t *testing.T) {
	c := load(t, `
models:
  local:   {api: openai, base_url: "http://localhost:11434/v1", price: {input: 0, output: 0}}
  unknown: {api: openai, base_url: "http://localhost:11434/v1"}
  paid:    {api: openai, base_url: "http://localhost:11434/v1", price: {input: 0, output: 1}}
`)
	for name, want := range map[string]bool{"local": true, "unknown": false, "paid": false, "anthropic/claude-haiku-4-5": false} {
		m, err := c.Model(name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Free != want {
			t.Errorf("%s: got free %v, want %v", name, m.Free, want)
		}
	}
}
