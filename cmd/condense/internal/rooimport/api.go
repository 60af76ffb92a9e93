package rooimport

import (
	"cmp"
	_ "embed"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/tree"
)

// export has the parts that are read of a settings export of Roo Code, and of Zoo Code and Kilo
// Code, which use the same format.
type export struct {
	ProviderProfiles struct {
		CurrentAPIConfigName string
		APIConfigs           map[string]map[string]any
		ModeAPIConfigs       map[string]string
	}
	GlobalSettings map[string]any
}

// api is the way to reach one of Roo's providers. Addresses and variables are from the vendors' documentation.
type api struct {
	table    string // its name in the table of models
	modelKey string // the key of a profile with the model's id
	api      string // empty if there is no client for it
	baseURL  string
	urlKey   string // the key of a profile with another address
	urlTail  string // the part of the path that such an address lacks
	variable string // with the API key; empty if none is needed
}

//go:embed apis.txt
var apisText string

// apis are the ways by name, in the order of the fields; - is an empty one.
var apis = func() map[string]api {
	all := map[string]api{}
	for line := range strings.Lines(apisText) {
		f := strings.Fields(line)
		for i := range f {
			f[i] = strings.TrimSuffix(f[i], "-")
		}
		all[f[0]] = api{f[1], f[2], f[3], f[4], f[5], f[6], f[7]}
	}
	return all
}()

// secretKey reports whether a key of Roo's holds a secret: apiKey, openRouterApiKey, awsSecretKey,
// awsSessionToken, vertexJsonCredentials.
func secretKey(key string) bool {
	k := suggest.Fold(key)
	return strings.HasSuffix(k, "key") && !strings.HasSuffix(k, "publickey") || strings.HasSuffix(k, "token") ||
		strings.HasSuffix(k, "secret") || strings.HasSuffix(k, "password") || strings.HasSuffix(k, "credentials")
}

// model sets the model and the window of a profile, and returns the keys that it used.
func (r *importer) model(p *config.ProfileValues, from, name string, settings map[string]any) []string {
	provider, _ := settings["apiProvider"].(string)
	how, known := apis[provider]
	if !known {
		how = api{table: cmp.Or(provider, "unknown"), modelKey: "apiModelId"} // never another vendor's model of that name
	}
	used := []string{how.modelKey}
	id, _ := settings[how.modelKey].(string)
	if id != "" && !secret.Shown(id) && badName(id) == "" {
		p.Model = id
		if how.table != "" {
			p.Model = how.table + "/" + id
		}
		if how.api != "" {
			used = append(used, how.urlKey)
			p.Model = r.declare(p.Model, id, name, how, settings, from)
		}
	}
	if n, key, ok := windowOf(settings); ok {
		p.Window = &n
		used = append(used, key)
	} else if r.window(p.Model) == 0 {
		p.Window = new(assumedWindow)
		r.check(
			from, tree.Path{"profiles", name, "window"}.String(),
			fmt.Sprintf("not in the export; %d is what Roo assumes", assumedWindow),
		)
	}
	return used
}

// declare adds a model to the section models, so that it can write summaries, and returns its name: one of its own if another profile
// reaches a model of that name elsewhere. It is empty if the model cannot be reached: its vendor's own address would be another.
func (r *importer) declare(name, id, profile string, how api, settings map[string]any, from string) string {
	m := config.ModelValues{API: how.api, Model: id, BaseURL: how.baseURL, APIKeyEnv: how.variable}
	if own, _ := settings[how.urlKey].(string); own != "" {
		to := tree.Path{"models", name, "base_url"}.String()
		u, err := url.Parse(own)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			r.check(from+"."+how.urlKey, to, "not an http or https address: without it the model is not asked")
			return ""
		}
		if u.User != nil || u.RawQuery != "" {
			r.Secrets = append(r.Secrets, from+"."+how.urlKey)
			r.check(from+"."+how.urlKey, to, "without the user, password or parameters in it")
		}
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		m.BaseURL = strings.TrimSuffix(u.String(), "/")
		if !strings.HasSuffix(m.BaseURL, how.urlTail) {
			m.BaseURL += how.urlTail
		}
		if u.Scheme == "http" && m.APIKeyEnv != "" && !local(u.Hostname()) {
			r.check(from+"."+how.urlKey, to, "the key is not sent there: it goes to an https address or this machine only; use https, or remove api_key_env")
		}
	}
	if other, taken := r.Values.Models[name]; taken && other != m {
		name = profile + "/" + id
	}
	r.Values.Models[name] = m
	if m.APIKeyEnv != "" && !slices.Contains(r.Variables, m.APIKeyEnv) {
		r.Variables = append(r.Variables, m.APIKeyEnv)
		slices.Sort(r.Variables)
	}
	return name
}

// local reports whether a host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// windowOf returns the window that a profile sets.
func windowOf(settings map[string]any) (int, string, bool) {
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
	n, ok := v.(float64)
	return int(n), ok && n >= 1 && n <= 1e12 && n == float64(int(n))
}
