package rooimport_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/cmd/condense/internal/rooimport"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/resolver"
)

// vendors are Roo's, with the settings of a profile and where its own model may be asked; empty if there is no client for it.
var vendors = map[string]struct{ settings, at string }{
	"anthropic":      {`"apiModelId": "claude-sonnet-4-5"`, "Anthropic"},
	"bedrock":        {`"apiModelId": "anthropic.claude-sonnet-4-20250514-v1:0"`, ""},
	"cerebras":       {`"apiModelId": "gpt-oss-120b"`, "api.cerebras.ai"},
	"claude-code":    {`"apiModelId": "claude-sonnet-4-5"`, ""},
	"deepseek":       {`"apiModelId": "deepseek-chat"`, "api.deepseek.com"},
	"fireworks":      {`"apiModelId": "kimi"`, "api.fireworks.ai"},
	"gemini":         {`"apiModelId": "gemini-2.5-pro"`, "generativelanguage.googleapis.com"},
	"gemini-cli":     {`"apiModelId": "gemini-2.5-pro"`, ""},
	"groq":           {`"apiModelId": "llama"`, "api.groq.com"},
	"litellm":        {`"litellmModelId": "gpt-5.1"`, "localhost:4000"},
	"lmstudio":       {`"lmStudioModelId": "qwen"`, "localhost:1234"},
	"mistral":        {`"apiModelId": "codestral"`, "api.mistral.ai"},
	"ollama":         {`"ollamaModelId": "qwen"`, "localhost:11434"},
	"openai":         {`"openAiModelId": "gpt-5.1", "openAiBaseUrl": "https://gw.example.com/v1"`, "gw.example.com"},
	"openai bad url": {`"openAiModelId": "gpt-5.1", "openAiBaseUrl": "gw.example.com"`, ""},
	"openai-codex":   {`"apiModelId": "gpt-5.1"`, ""},
	"openai-native":  {`"apiModelId": "gpt-5.1"`, "OpenAI"},
	"openrouter":     {`"openRouterModelId": "openai/gpt-5.1"`, "openrouter.ai"},
	"qwen-code":      {`"apiModelId": "qwen3-coder-plus"`, ""},
	"requesty":       {`"requestyModelId": "openai/gpt-5.1"`, "router.requesty.ai"},
	"roo":            {`"apiModelId": "xai/grok-code-fast-1"`, ""},
	"vertex":         {`"apiModelId": "claude-sonnet-4-5@20250929"`, ""},
	"vscode-lm":      {`"vsCodeLmModelSelector": {"vendor": "copilot", "family": "gpt-5"}`, ""},
	"xai":            {`"apiModelId": "grok-4"`, "api.x.ai"},
	"zai":            {`"apiModelId": "glm-4.6"`, ""},
	"(none)":         {`"apiModelId": "gpt-5.1"`, ""},
	"new one":        {`"apiModelId": "claude-sonnet-4-5"`, ""},
}

// Every vendor's profile, alone and next to all others: the result is valid, a profile's conversation is read by its own model at its
// own address or by none, and the profiles without a summary are named.
func TestNoImportSendsAConversationToAnotherVendor(t *testing.T) {
	names := slices.Sorted(maps.Keys(vendors))
	sets := [][]string{names}
	for _, name := range names {
		sets = append(sets, []string{name}, []string{name, "openai-native"}, []string{name, "anthropic", "openai"})
	}
	reg, err := resolver.Strategies()
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		imported, err := rooimport.Read([]byte(exported(set)), true)
		if err != nil {
			t.Errorf("%q: %v", set, err)
			continue
		}
		checker := &resolver.Checker{Registry: reg}
		c, err := config.New(imported.Values, resolver.Names(reg, config.Options{Env: []string{}, CheckProvider: checker.Declared}))
		if err != nil {
			t.Errorf("%q: %v", set, err)
			continue
		}
		if faults, err := checker.Chains(c); err != nil || len(faults) > 0 {
			t.Errorf("%q: %v, %v", set, faults, err)
		}
		for _, name := range set {
			r := resolve(t, c, "of "+name, "")
			var at []string
			for _, reader := range checker.Readers(c, r) {
				at = append(at, reader.At)
			}
			if got, want := strings.Join(at, " "), vendors[name].at; got != want {
				t.Errorf("%q: the conversations of %q are read at %q, want %q", set, name, got, want)
			}
			named := slices.ContainsFunc(imported.Check, func(n rooimport.Note) bool {
				return strings.Contains(n.To, "of "+name+`".chain`) && strings.HasPrefix(n.Note, "no summary")
			})
			if named != (vendors[name].at == "") {
				t.Errorf("%q: %q is named as one without summary: %v, %v", set, name, named, imported.Check)
			}
		}
	}
}

// exported returns an export with a profile for each of the vendors.
func exported(names []string) string {
	configs := map[string]json.RawMessage{}
	for _, name := range names {
		provider := strings.TrimSuffix(strings.TrimPrefix(name, "(none)"), " bad url")
		configs["of "+name] = json.RawMessage(`{"id": "` + name + `", "apiProvider": "` + provider + `", ` + vendors[name].settings + `}`)
	}
	text, _ := json.Marshal(map[string]any{"providerProfiles": map[string]any{"currentApiConfigName": "of " + names[0], "apiConfigs": configs}})
	return string(text)
}
