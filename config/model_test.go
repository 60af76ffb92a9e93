package config_test

import "testing"

// A price of zero is a known price; an absent one is not.
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

func TestModelImages(t *testing.T) {
	c := load(t, `
models:
  claude:  {api: anthropic, model: claude-haiku-4-5}
  blind:   {api: anthropic, model: claude-haiku-4-5, images: false}
  gateway: {api: anthropic, model: claude-haiku-4-5, base_url: "http://localhost:1"}
  gpt:     {api: openai, model: gpt-4.1}
  seeing:  {api: openai, model: gpt-4.1, images: true}
`)
	for name, want := range map[string]bool{
		"claude": true, "blind": false, "gateway": false, "gpt": false, "seeing": true, "anthropic/claude-haiku-4-5": true, "openai/gpt-4.1": false,
	} {
		m, err := c.Model(name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Images != want {
			t.Errorf("%s: reads images: got %v, want %v", name, m.Images, want)
		}
	}
}
