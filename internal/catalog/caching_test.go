package catalog_test

import (
	"testing"
	"time"

	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/model"
)

func TestThinkingOfNewClaudeModelsIsBound(t *testing.T) {
	for name, want := range map[string]bool{
		"claude-opus-5-5":                              true,
		"claude-opus-5-5-20261001":                     true,
		"claude-opus-5.5":                              true,
		"claude-fable-5-1":                             true,
		"claude-mythos-5-1":                            true,
		"claude-sonnet-5-5":                            true,
		"anthropic/claude-opus-5.5":                    true,
		"openrouter/anthropic/claude-opus-5.5:beta":    true,
		"global.anthropic.claude-opus-5-5-v1:0":        true,
		"us.anthropic.claude-sonnet-5-5-20261001-v1:0": true,
		"claude-opus-6":                                true, // unknown and newer
		"claude-opus-5-6":                              true,
		"claude-haiku-5-5":                             true,
		"claude-next":                                  true,
		"claude-opus-5":                                false,
		"claude-opus-5-20260101":                       false,
		"claude-opus-5[1m]":                            false,
		"claude-sonnet-5":                              false,
		"claude-fable-5":                               false,
		"claude-sonnet-4-5-20250929":                   false,
		"claude-haiku-4-5":                             false,
		"claude-opus-4-1":                              false,
		"claude-opus-4-20250514":                       false,
		"claude-3-7-sonnet-latest":                     false,
		"us.anthropic.claude-haiku-4-5-20251001-v1:0":  false,
		"vertex/claude-sonnet-4-5@20250929":            false,
		"gpt-5.6-sol":                                  false,
		"gpt-6-sol":                                    false,
		"gemini-3-pro-preview":                         false,
		"some-local-model":                             false,
		"deepseek/deepseek-chat":                       false,
		"claude-opus-4-6-fast":                         false,
		"bedrock/eu.anthropic.claude-opus-4-8":         false,
		"regional.anthropic.claude-fable-5-1-v1:0":     true,
		"anthropic/claude-fable-5.1:beta":              true,
		"claude-mythos-5":                              false,
		"claude-opus-5-latest":                         false,
		"claude-sonnet-5-latest":                       false,
		"openrouter/anthropic/claude-sonnet-5":         false,
		"anthropic.claude-3-5-sonnet-20241022-v2:0":    false,
		"anthropic.claude-v2:1":                        false,
		"claude-instant-1.2":                           false,
	} {
		if got := catalog.CachingOf(name, model.Price{}).Bound; got != want {
			t.Errorf("%s: bound: got %t, want %t", name, got, want)
		}
	}
}

// Every Claude model in the price table that is older than the rule is known not to be bound, and the
// others are: a model that is added to the table later has to be looked at.
func TestEveryClaudeModelOfTheTableHasAShortestPrefix(t *testing.T) {
	for m := range catalog.All() {
		if m.Provider != "anthropic" {
			continue
		}
		c := catalog.CachingOf(m.ID, model.Price{})
		if c.MinPrefix == 0 {
			t.Errorf("%s: no row of caching.json knows it", m.Name())
		}
	}
}

func TestPricesOfCaching(t *testing.T) {
	tests := []struct {
		name        string
		ttl         time.Duration
		write, read float64
	}{
		{"claude-sonnet-4-5", 5 * time.Minute, 1.25, 0.1},
		{"claude-sonnet-4-5", time.Hour, 2, 0.1},
		{"claude-sonnet-4-5", 0, 1, 1}, // nothing is marked, nothing is cached
		{"claude-opus-5-5", 5 * time.Minute, 1.25, 0.05},
		{"claude-opus-5-5", time.Hour, 2, 0.05},
		{"claude-fable-5-1", 5 * time.Minute, 1.25, 0.025},
		{"gpt-5.6-sol", 0, 1.25, 0.1},
		{"gpt-5", 0, 1, 0.1},
		{"some-local-model", 0, 0, 0},
	}
	for _, tt := range tests {
		write, read := catalog.CachingOf(tt.name, model.Price{}).Prices(tt.ttl)
		if !near(write, tt.write) || !near(read, tt.read) {
			t.Errorf("%s for %v: got write %g, read %g, want %g, %g", tt.name, tt.ttl, write, read, tt.write, tt.read)
		}
	}
	own := catalog.CachingOf("claude-sonnet-4-5", model.Price{Input: 2, CacheRead: 1, CacheWrite: 3})
	if write, read := own.Prices(5 * time.Minute); !near(write, 1.5) || !near(read, 0.5) {
		t.Errorf("a price of one's own: got write %g, read %g, want 1.5, 0.5", write, read)
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestLifetimesOfCaches(t *testing.T) {
	for name, want := range map[string]time.Duration{
		"gpt-5": 24 * time.Hour, "gpt-4.1": 24 * time.Hour, "gpt-5.6-sol": 0, "claude-opus-5-5": 0, "some-local-model": 0,
	} {
		if got := catalog.CachingOf(name, model.Price{}).Lifetime; got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// Windows and bills of Claude are in Claude's tokens: a replay that counted ours found sessions half as long and half
// as dear as they are.
func TestClaudeCountsMoreTokensThanWe(t *testing.T) {
	for name, want := range map[string]float64{
		"claude-opus-4-6":                             1.25,
		"anthropic/claude-sonnet-4.5:beta":            1.25,
		"us.anthropic.claude-haiku-4-5-20251001-v1:0": 1.25,
		"claude-opus-4-8":                             1.7,
		"claude-opus-5":                               1.7,
		"anthropic/claude-opus-5.5":                   1.7,
		"claude-next":                                 1.7,
		"gpt-5.6-sol":                                 1,
		"gemini-3.1-pro-preview":                      1,
		"":                                            1,
	} {
		if got := catalog.TokenFactor(name); got != want {
			t.Errorf("%s: got %g tokens for one of ours, want %g", name, got, want)
		}
	}
}
