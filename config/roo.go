package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// An Import is what could be taken over from another tool's settings.
type Import struct {
	Values Values `json:"values"`
	// Took and Ignored name every setting of the source and what became of it.
	Took    []ImportNote `json:"took"`
	Ignored []ImportNote `json:"ignored,omitempty"`
	// Check are values that the source does not hold and that were assumed.
	Check []ImportNote `json:"check,omitempty"`
	// Variables are the environment variables that the result refers to; they hold the API
	// keys from now on.
	Variables []string `json:"variables,omitempty"`
	// Secrets are the settings of the source that hold secrets. None was copied; the source
	// should be deleted.
	Secrets []string `json:"secrets,omitempty"`

	config *Config
}

// An ImportNote is one setting: where it stood, what it became, and why.
type ImportNote struct {
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	Note string `json:"note,omitempty"`
}

func (n ImportNote) String() string {
	s := n.From
	if n.To != "" {
		s += " → " + n.To
	}
	if n.Note != "" {
		s += " (" + n.Note + ")"
	}
	return s
}

// rooExport is the settings export of Roo Code, and of Zoo Code and Kilo Code, which carry
// its format on. Only what is looked at is named.
type rooExport struct {
	ProviderProfiles struct {
		CurrentAPIConfigName string
		APIConfigs           map[string]map[string]any
		ModeAPIConfigs       map[string]string
	}
	GlobalSettings map[string]any
}

// rooAPI says how a provider of Roo's is reached here. Addresses and variables are those
// that the vendors document.
type rooAPI struct {
	table    string // its name in the table of models
	modelKey string // where a profile keeps the model's id
	api      string // empty: no client of ours speaks to it
	baseURL  string
	urlKey   string // where a profile keeps another address
	urlTail  string // what such an address lacks
	variable string // for the API key; empty: none is needed
}

var rooAPIs = map[string]rooAPI{
	"anthropic":     {"anthropic", "apiModelId", "anthropic", "", "anthropicBaseUrl", "", "ANTHROPIC_API_KEY"},
	"bedrock":       {table: "aws", modelKey: "apiModelId"},
	"cerebras":      {"cerebras", "apiModelId", "openai", "https://api.cerebras.ai/v1", "", "", "CEREBRAS_API_KEY"},
	"deepseek":      {"deepseek", "apiModelId", "openai", "https://api.deepseek.com", "deepSeekBaseUrl", "", "DEEPSEEK_API_KEY"},
	"fireworks":     {"fireworks", "apiModelId", "openai", "https://api.fireworks.ai/inference/v1", "", "", "FIREWORKS_API_KEY"},
	"gemini":        {"google", "apiModelId", "openai", "https://generativelanguage.googleapis.com/v1beta/openai", "", "", "GEMINI_API_KEY"},
	"groq":          {"groq", "apiModelId", "openai", "https://api.groq.com/openai/v1", "", "", "GROQ_API_KEY"},
	"litellm":       {"", "litellmModelId", "openai", "", "litellmBaseUrl", "", "LITELLM_API_KEY"},
	"lmstudio":      {"", "lmStudioModelId", "openai", "http://localhost:1234/v1", "lmStudioBaseUrl", "/v1", ""},
	"mistral":       {"mistral", "apiModelId", "openai", "https://api.mistral.ai/v1", "", "", "MISTRAL_API_KEY"},
	"moonshot":      {"moonshotai", "apiModelId", "openai", "https://api.moonshot.ai/v1", "moonshotBaseUrl", "", "MOONSHOT_API_KEY"},
	"ollama":        {"", "ollamaModelId", "openai", "http://localhost:11434/v1", "ollamaBaseUrl", "/v1", ""},
	"openai":        {"", "openAiModelId", "openai", "", "openAiBaseUrl", "", "OPENAI_API_KEY"},
	"openai-native": {"openai", "apiModelId", "openai", "", "openAiNativeBaseUrl", "/v1", "OPENAI_API_KEY"},
	"openrouter":    {"openrouter", "openRouterModelId", "openai", "https://openrouter.ai/api/v1", "openRouterBaseUrl", "", "OPENROUTER_API_KEY"},
	"requesty":      {"", "requestyModelId", "openai", "https://router.requesty.ai/v1", "requestyBaseUrl", "", "REQUESTY_API_KEY"},
	"vertex":        {table: "google", modelKey: "apiModelId"},
	"xai":           {"x-ai", "apiModelId", "openai", "https://api.x.ai/v1", "", "", "XAI_API_KEY"},
}

const (
	// rooWindow is what Roo assumes of a model that it does not know.
	rooWindow = 128_000
	// rooSummary is the provider that condenses as Roo does.
	rooSummary = "summary"
)

// ImportRoo reads the settings export of Roo Code, Zoo Code or Kilo Code. Profiles keep
// their names and get the preset roo, so that they condense when they did before. Secrets
// are counted, never copied. The result is checked as any configuration is.
func ImportRoo(text []byte) (*Import, error) {
	root, syntax := parseJSON(text)
	if syntax != nil {
		return nil, fmt.Errorf("line %d: %s", syntax.at.line, syntax.problem)
	}
	var export rooExport
	plain, err := json.Marshal(root.plain())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(plain, &export); err != nil {
		return nil, fmt.Errorf("not a settings export: %w", err)
	}
	if export.GlobalSettings == nil && export.ProviderProfiles.APIConfigs == nil {
		return nil, errors.New("not a settings export: it has neither providerProfiles nor globalSettings")
	}
	r := rooImport{export: &export, global: export.GlobalSettings, ids: map[string]string{}, seen: map[string]bool{}}
	r.findSecrets(root, nil)
	r.globals()
	r.profiles()
	r.modes()
	r.condensingModel()
	r.rest()
	return r.finish()
}

// A rooImport is an import at work.
type rooImport struct {
	Import
	export *rooExport
	global map[string]any
	ids    map[string]string // names of profiles by id
	seen   map[string]bool   // global settings that were looked at
}

func (r *rooImport) took(from, to, note string) {
	r.Took = append(r.Took, ImportNote{from, to, note})
}

func (r *rooImport) ignored(from, note string) {
	r.Ignored = append(r.Ignored, ImportNote{From: from, Note: note})
}

func (r *rooImport) findSecrets(n *node, p path) {
	for _, pair := range n.pairs {
		sub := p.with(pair.key)
		if s, ok := pair.value.value.(string); ok && s != "" && (rooSecretKey(pair.key) || looksSecret(s)) {
			r.Secrets = append(r.Secrets, sub.String())
		}
		r.findSecrets(pair.value, sub)
	}
	for _, item := range n.items {
		r.findSecrets(item, p)
	}
}

// rooSecretKey tells the keys of Roo that hold secrets: apiKey, openRouterApiKey,
// awsSecretKey, awsSessionToken, vertexJsonCredentials.
func rooSecretKey(key string) bool {
	k := fold(key)
	return strings.HasSuffix(k, "key") && !strings.HasSuffix(k, "publickey") || strings.HasSuffix(k, "token") ||
		strings.HasSuffix(k, "secret") || strings.HasSuffix(k, "password") || strings.HasSuffix(k, "credentials")
}

// setting returns a global setting and marks it as looked at.
func (r *rooImport) setting(key string) (any, string, bool) {
	r.seen[key] = true
	v, ok := r.global[key]
	return v, "globalSettings." + key, ok && v != nil
}

func (r *rooImport) globals() {
	v := &r.Values
	if auto, from, ok := r.setting("autoCondenseContext"); ok {
		if b, isBool := auto.(bool); isBool {
			v.Auto = &b
			r.took(from, "auto", "")
		}
	}
	v.Threshold = new(100.0) // Roo's default; ours is another
	if t, from, ok := r.setting("autoCondenseContextPercent"); ok {
		p, isNumber := number(t)
		switch clamped := min(max(p, 5), 100); {
		case !isNumber:
			r.ignored(from, "not a number")
		case clamped != p:
			v.Threshold = &clamped
			r.took(from, "threshold", fmt.Sprintf("%v is outside 5 to 100 and became %v", p, clamped))
		default:
			v.Threshold = &p
			r.took(from, "threshold", "")
		}
	} else {
		r.took("Roo's default of 100 %", "threshold", "")
	}
	r.prompt()
}

// prompt takes the user's own condensing prompt, of the current or the older setting.
func (r *rooImport) prompt() {
	var texts []ImportNote
	if prompts, from, ok := r.setting("customSupportPrompts"); ok {
		if m, isMap := prompts.(map[string]any); isMap {
			if s, isText := m["CONDENSE"].(string); isText {
				texts = append(texts, ImportNote{From: from + ".CONDENSE", Note: s})
			}
		}
	}
	if old, from, ok := r.setting("customCondensingPrompt"); ok {
		if s, isText := old.(string); isText {
			texts = append(texts, ImportNote{From: from, Note: s})
		}
	}
	for _, t := range texts {
		switch {
		case strings.TrimSpace(t.Note) == "":
		case looksSecret(t.Note):
			r.ignored(t.From, "holds what looks like a secret")
		case r.Values.Prompt != nil:
			r.ignored(t.From, "customSupportPrompts.CONDENSE replaced it")
		default:
			r.Values.Prompt = &t.Note
			r.took(t.From, "prompt", "")
		}
	}
}

func (r *rooImport) profiles() {
	v := &r.Values
	configs := r.export.ProviderProfiles.APIConfigs
	v.Profiles, v.Models = map[string]ProfileValues{}, map[string]ModelValues{}
	for _, name := range sortedKeys(configs) {
		from := "providerProfiles.apiConfigs." + path{name}.String()
		if wrong := badName(name); wrong != "" {
			r.ignored(from, "its name "+wrong)
			continue
		}
		settings := configs[name]
		if id, ok := settings["id"].(string); ok {
			r.ids[id] = name
		}
		p := ProfileValues{Preset: "roo"}
		used := []string{"id", "apiProvider"}
		used = append(used, r.model(&p, from, name, settings)...)
		if n, ok := wholeTokens(settings["modelMaxTokens"]); ok {
			p.MaxOutput = &n
			used = append(used, "modelMaxTokens")
		}
		r.Values.Profiles[name] = p
		r.took(from, path{"profiles", name}.String(), "")
		var rest []string
		for _, key := range sortedKeys(settings) {
			if !slices.Contains(used, key) && !rooSecretKey(key) {
				rest = append(rest, key)
			}
		}
		if len(rest) > 0 {
			r.ignored(from, strings.Join(rest, ", "))
		}
	}
	if len(v.Profiles) > 0 {
		v.Providers = map[string]ProviderValues{
			rooSummary: {Strategy: "native", Settings: json.RawMessage(`{"preset":"fresh_start"}`)},
		}
		for name, p := range v.Profiles {
			p.Chain = []string{rooSummary, "roo_half"} // not at the top level: the preset has one of its own
			v.Profiles[name] = p
		}
	}
	r.defaultProfile()
	r.thresholds()
}

func (r *rooImport) defaultProfile() {
	current := r.export.ProviderProfiles.CurrentAPIConfigName
	if _, ok := r.Values.Profiles[current]; ok {
		r.Values.DefaultProfile = current
		r.took("providerProfiles.currentApiConfigName", "default_profile", "")
		return
	}
	if current != "" {
		r.ignored("providerProfiles.currentApiConfigName", "there is no such profile")
	}
	if names := sortedKeys(r.Values.Profiles); len(names) > 0 {
		r.Values.DefaultProfile = names[0]
		r.Check = append(r.Check, ImportNote{"providerProfiles.currentApiConfigName", "default_profile", "not in the export; the first profile was taken"})
	}
}

// model fills in model, window and how to reach it; it returns the keys that it used.
func (r *rooImport) model(p *ProfileValues, from, name string, settings map[string]any) []string {
	provider, _ := settings["apiProvider"].(string)
	how, known := rooAPIs[provider]
	if !known {
		how = rooAPI{table: provider, modelKey: "apiModelId"}
	}
	used := []string{how.modelKey}
	id, _ := settings[how.modelKey].(string)
	if id != "" && !looksSecret(id) && badName(id) == "" {
		p.Model = id
		if how.table != "" {
			p.Model = how.table + "/" + id
		}
		if how.api != "" {
			used = append(used, how.urlKey)
			r.declare(p.Model, id, how, settings, from)
		}
	}
	if n, key, ok := rooWindowOf(settings); ok {
		p.Window = &n
		used = append(used, key)
	} else if m, err := (&Config{values: r.Values}).Model(p.Model); err != nil || m.Window == 0 {
		p.Window = new(rooWindow)
		r.Check = append(r.Check, ImportNote{
			from, path{"profiles", name, "window"}.String(),
			fmt.Sprintf("the export does not say how large it is; %d is what Roo assumes", rooWindow),
		})
	}
	return used
}

// declare adds a model to the section models, so that it can be asked for summaries.
func (r *rooImport) declare(name, id string, how rooAPI, settings map[string]any, from string) {
	m := ModelValues{API: how.api, Model: id, BaseURL: how.baseURL, APIKeyEnv: how.variable}
	if own, _ := settings[how.urlKey].(string); own != "" {
		to := path{"models", name, "base_url"}.String()
		u, err := url.Parse(own)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			r.Check = append(r.Check, ImportNote{from + "." + how.urlKey, to, "no http or https address"})
		} else {
			if u.User != nil || u.RawQuery != "" {
				r.Secrets = append(r.Secrets, from+"."+how.urlKey)
				r.Check = append(r.Check, ImportNote{from + "." + how.urlKey, to, "without the user, password or parameters in it"})
			}
			u.User, u.RawQuery, u.Fragment = nil, "", ""
			m.BaseURL = strings.TrimSuffix(u.String(), "/")
			if !strings.HasSuffix(m.BaseURL, how.urlTail) {
				m.BaseURL += how.urlTail
			}
		}
	}
	r.Values.Models[name] = m
	if m.APIKeyEnv != "" && !slices.Contains(r.Variables, m.APIKeyEnv) {
		r.Variables = append(r.Variables, m.APIKeyEnv)
		slices.Sort(r.Variables)
	}
}

// rooWindowOf returns the window that a profile states itself.
func rooWindowOf(settings map[string]any) (int, string, bool) {
	if info, ok := settings["openAiCustomModelInfo"].(map[string]any); ok && settings["apiProvider"] == "openai" {
		if n, ok := wholeTokens(info["contextWindow"]); ok {
			return n, "openAiCustomModelInfo", true
		}
	}
	for provider, key := range map[string]string{"ollama": "ollamaNumCtx", "bedrock": "awsModelContextWindow"} {
		if n, ok := wholeTokens(settings[key]); ok && settings["apiProvider"] == provider {
			return n, key, true
		}
	}
	return 0, "", false
}

func wholeTokens(v any) (int, bool) {
	n, ok := number(v)
	return int(n), ok && n >= 1 && n <= maxTokens && n == float64(int(n))
}

// thresholds takes the thresholds of profiles, which are kept by the profile's id.
func (r *rooImport) thresholds() {
	own, from, _ := r.setting("profileThresholds")
	byID, _ := own.(map[string]any)
	for _, id := range sortedKeys(byID) {
		at := from + "." + path{id}.String()
		name, known := r.ids[id]
		t, isNumber := number(byID[id])
		switch {
		case !known:
			r.ignored(at, "no profile has this id")
		case isNumber && t == inherit:
			r.ignored(at, "-1 inherits, as here")
		case !isNumber || t < 5 || t > 100:
			r.ignored(at, "outside 5 to 100, which Roo ignores too")
		default:
			p := r.Values.Profiles[name]
			p.Threshold = &t
			r.Values.Profiles[name] = p
			r.took(at, path{"profiles", name, "threshold"}.String(), "")
		}
	}
	own, from, _ = r.setting("profileCondenseOverrides") // of Kilo Code
	byID, _ = own.(map[string]any)
	for _, id := range sortedKeys(byID) {
		r.override(from+"."+path{id}.String(), id, byID[id])
	}
}

// override takes a threshold of Kilo Code, a percentage or a number of tokens.
func (r *rooImport) override(from, id string, v any) {
	o, _ := v.(map[string]any)
	name, known := r.ids[id]
	p := r.Values.Profiles[name]
	switch {
	case !known:
		r.ignored(from, "no profile has this id")
		return
	case o["enabled"] != true:
		r.ignored(from, "not enabled")
		return
	case o["mode"] == "tokens":
		n, ok := wholeTokens(o["tokens"])
		if !ok {
			r.ignored(from, "not a number of tokens")
			return
		}
		p.MaxContextTokens, p.Threshold = &Amount{Tokens: n}, new(100.0)
		r.took(from, path{"profiles", name, "max_context_tokens"}.String(), "")
	default:
		t, ok := number(o["percent"])
		if !ok || t < 5 || t > 100 {
			r.ignored(from, "outside 5 to 100")
			return
		}
		p.Threshold = &t
		r.took(from, path{"profiles", name, "threshold"}.String(), "")
	}
	r.Values.Profiles[name] = p
}

func (r *rooImport) modes() {
	byMode := maps.Clone(r.export.ProviderProfiles.ModeAPIConfigs)
	from := "providerProfiles.modeApiConfigs."
	if len(byMode) == 0 {
		own, at, _ := r.setting("modeApiConfigs") // where older versions kept them
		byMode = map[string]string{}
		m, _ := own.(map[string]any)
		for mode, id := range m {
			if s, ok := id.(string); ok {
				byMode[mode] = s
			}
		}
		from = at + "."
	}
	for _, mode := range sortedKeys(byMode) {
		at := from + path{mode}.String()
		name, known := r.ids[byMode[mode]]
		switch wrong := badName(mode); {
		case !known:
			r.ignored(at, "no profile has this id")
		case wrong != "":
			r.ignored(at, "its name "+wrong)
		default:
			if r.Values.Modes == nil {
				r.Values.Modes = map[string]ModeValues{}
			}
			r.Values.Modes[mode] = ModeValues{Profile: name}
			r.took(at, path{"modes", mode}.String(), "")
		}
	}
}

// condensingModel takes the profile that condenses for all, which Roo had and Zoo has.
func (r *rooImport) condensingModel() {
	v, from, ok := r.setting("condensingApiConfigId")
	id, _ := v.(string)
	if !ok || id == "" {
		return
	}
	name, known := r.ids[id]
	model := r.Values.Profiles[name].Model
	if _, declared := r.Values.Models[model]; !known || !declared {
		r.ignored(from, "no profile with a model that can be asked has this id")
		return
	}
	settings, err := json.Marshal(map[string]string{"preset": "fresh_start", "model": model})
	if err != nil {
		r.ignored(from, err.Error())
		return
	}
	r.Values.Providers[rooSummary] = ProviderValues{Strategy: "native", Settings: settings}
	r.took(from, "providers."+rooSummary+".settings.model", "Roo dropped this setting in January 2026; here it holds")
}

// rest names the global settings that nobody looked at.
func (r *rooImport) rest() {
	var rest []string
	for _, key := range sortedKeys(r.global) {
		if !r.seen[key] && !rooSecretKey(key) {
			rest = append(rest, key)
		}
	}
	if len(rest) > 0 {
		r.ignored("globalSettings", strings.Join(rest, ", "))
	}
}

func (r *rooImport) finish() (*Import, error) {
	c, err := New(r.Values, Options{})
	if err != nil {
		return nil, fmt.Errorf("the settings make no configuration: %w", err)
	}
	r.config = c
	return &r.Import, nil
}

// YAML returns the configuration as a file, with a reference to its schema in the first
// line unless that is empty.
func (i *Import) YAML(schema string) (string, error) {
	values := map[string]any{}
	for key, v := range i.config.raw {
		if i.config.origins[key].Kind == FromProgram {
			values[key] = v
		}
	}
	for section := range sections {
		names, _ := values[section].(map[string]any)
		own := map[string]any{}
		for name, v := range names {
			if i.config.origins[path{section, name}.id()].Kind == FromProgram {
				own[name] = v
			}
		}
		delete(values, section)
		if len(own) > 0 {
			values[section] = own
		}
	}
	text, err := writeYAML((&Config{}).showObject(values, atTop, nil))
	if err != nil {
		return "", err
	}
	return schemaLine(schema) + "# Imported from the settings of Roo Code.\n" + text, nil
}
