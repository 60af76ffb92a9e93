package catalog_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/model"
)

func TestLookup(t *testing.T) {
	tests := []struct {
		name, want string
		window     int
	}{
		{"anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5", 200_000},
		{"claude-sonnet-4-5", "anthropic/claude-sonnet-4-5", 200_000},
		{"claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5", 200_000},
		{"anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4-5", 200_000},
		{"Anthropic/Claude-Haiku-4-5", "anthropic/claude-haiku-4-5", 200_000},
		{"claude-opus-5-20260101", "anthropic/claude-opus-5", 1_000_000},
		{"openai/gpt-5", "openai/gpt-5", 400_000},
		{"gpt-5-2025-08-07", "openai/gpt-5", 400_000},
		{"openrouter/anthropic/claude-sonnet-4.5", "openrouter/anthropic/claude-sonnet-4.5", 0},
		{"xai/grok-4", "x-ai/grok-4-0709", 256_000},
		{" gpt-4o ", "openai/gpt-4o", 128_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := catalog.Lookup(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Name(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if tt.window != 0 && m.Window != tt.window {
				t.Errorf("window: got %d, want %d", m.Window, tt.window)
			}
		})
	}
}

// Agents and gateways name models with prefixes and variants. Without a window a request would
// be judged by that of another model.
func TestWindowIsKnownUnderTheNamesThatAgentsUse(t *testing.T) {
	for name, want := range map[string]int{
		"gemini-2.5-pro":                                         1_048_576,
		"google/gemini-2.5-pro":                                  1_048_576,
		"gemini/gemini-2.5-pro":                                  1_048_576,
		"gemini-3-pro-preview":                                   1_048_576,
		"gemini-3.1-pro-preview":                                 1_048_576,
		"gemini-3-flash-preview":                                 1_000_000,
		"mistral-large-latest":                                   262_144,
		"mistral/mistral-large-latest":                           262_144,
		"groq/llama-3.3-70b-versatile":                           131_072,
		"groq/openai/gpt-oss-120b":                               131_072,
		"openrouter/anthropic/claude-sonnet-4.5":                 1_000_000,
		"openrouter/anthropic/claude-sonnet-4":                   200_000,
		"openrouter/google/gemini-2.5-pro":                       1_048_576,
		"openrouter/google/gemini-3-pro-preview":                 1_048_576,
		"openrouter/openai/gpt-4.1":                              1_047_576,
		"openrouter/x-ai/grok-4":                                 256_000,
		"openrouter/openai/gpt-4.1:free":                         1_000_000,
		"azure/gpt-4.1":                                          1_000_000,
		"azure/gpt-5":                                            400_000,
		"azure-openai/gpt-4o":                                    128_000,
		"anthropic.claude-sonnet-4-20250514-v1:0":                200_000,
		"us.anthropic.claude-sonnet-4-20250514-v1:0":             200_000,
		"bedrock/eu.anthropic.claude-haiku-4-5-20251001-v1:0":    200_000,
		"bedrock/global.anthropic.claude-opus-4-5-20251101-v1:0": 200_000,
		"vertex_ai/claude-haiku-4-5@20251001":                    200_000,
		"github-copilot/claude-haiku-4.5":                        200_000,
		"openai-codex/gpt-5":                                     400_000,
		"my-gateway/gpt-4.1":                                     1_000_000,
		"my-gateway/openai/gpt-4.1":                              1_000_000,
	} {
		m, err := catalog.Lookup(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if m.Window != want {
			t.Errorf("%s: window %d (%s), want %d", name, m.Window, m.Name(), want)
		}
	}
}

// What a model of others costs at a gateway that the table does not list is not known: the
// vendor's price would be a guess.
func TestPriceOfAGatewayIsNotGuessed(t *testing.T) {
	m, err := catalog.Lookup("my-gateway/gpt-4.1")
	if err != nil || m.Price != (model.Price{}) || m.Name() != "my-gateway/gpt-4.1" {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestLookupUnknown(t *testing.T) {
	for _, name := range []string{"", "/", "anthropic/", "anthropic/gpt-5", "my-finetune", "ollama/gpt-oss:20b", "nobody/nothing"} {
		m, err := catalog.Lookup(name)
		if err == nil {
			t.Errorf("%q: got %s, want an error", name, m.Name())
			continue
		}
		if unknown, ok := errors.AsType[*catalog.UnknownError](err); !ok || unknown.Name != name {
			t.Errorf("%q: got %v, want an UnknownError of that name", name, err)
		}
		if !strings.Contains(err.Error(), "set its window") {
			t.Errorf("%q: %q does not say what to do", name, err)
		}
	}
}

func TestPriceFor(t *testing.T) {
	m, err := catalog.Lookup("anthropic/claude-sonnet-4-5")
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[int]float64{0: 3, 200_000: 3, 200_001: 6} {
		if got := (model.Info{Price: m.Price, Tiers: m.Tiers}).PriceFor(input).Input; got != want {
			t.Errorf("input price of %d tokens: got %v, want %v", input, got, want)
		}
	}
}

// Every model must be found by its own name, or an entry shadows it.
func TestEveryModelIsFoundByItsName(t *testing.T) {
	n, windows := 0, 0
	for m := range catalog.All() {
		n++
		if m.Window > 0 {
			windows++
		}
		got, err := catalog.Lookup(m.Name())
		if err != nil {
			t.Errorf("%s: %v", m.Name(), err)
		} else if got.Name() != m.Name() {
			t.Errorf("%s: found %s", m.Name(), got.Name())
		}
		if m.Window < 0 || m.Output < 0 || m.Price.Input < 0 || m.Price.Output < 0 {
			t.Errorf("%s: a negative number: %+v", m.Name(), m)
		}
		for i, tier := range m.Tiers {
			if i > 0 && tier.Above <= m.Tiers[i-1].Above {
				t.Errorf("%s: tiers do not ascend", m.Name())
			}
		}
	}
	if n < 1000 || windows < 500 {
		t.Errorf("got %d models, %d with a window: the table is incomplete", n, windows)
	}
}

func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		if _, err := catalog.Lookup("openrouter/z-ai/glm-4.6"); err != nil {
			b.Fatal(err)
		}
	}
}
