package upstream

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// Nearby reports whether an upstream can be a model server on this machine or its network. A host name can resolve to
// any address, so private checks it before anything is sent.
func (u *Upstream) Nearby() bool {
	if u.IsVendors || u.Host.Of != "" {
		return false
	}
	ip := net.ParseIP(strings.Trim(u.Base.Hostname(), "[]"))
	return ip == nil || inReach(ip)
}

func inReach(ip net.IP) bool { return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() }

// Private reports whether all addresses of an upstream are on this machine or its network.
func (u *Upstream) Private(ctx context.Context) bool {
	all, err := net.DefaultResolver.LookupIP(ctx, "ip", u.Base.Hostname())
	return err == nil && len(all) > 0 && !slices.ContainsFunc(all, func(ip net.IP) bool { return !inReach(ip) })
}

const mostTokensOfModel = 100_000_000 // more than any model takes

// usualContext is the window, in tokens, that Ollama gives a model on small machines unless the model or the server is
// configured otherwise. Older versions do not report it.
const usualContext = 4096

// AskWindow asks the server for the window of a model, with the endpoints of llama.cpp, Ollama, LM Studio, vLLM and
// SGLang in turn. It sends no credentials. It returns 0 if none of them answers; usual says that the server told none, and
// has the one that its kind usually has.
func (u *Upstream) AskWindow(ctx context.Context, model string) (tokens int, usual bool) {
	var props struct {
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if u.asks(ctx, http.MethodGet, "/props", nil, &props); props.Settings.Context > 0 {
		return props.Settings.Context, false
	}
	if tokens, usual = u.askOllama(ctx, model); tokens > 0 {
		return tokens, usual
	}
	for _, path := range []string{"/api/v0/models", "/v1/models"} {
		var list json.RawMessage
		u.asks(ctx, http.MethodGet, path, nil, &list)
		if tokens = Windows(list, nil)[model]; tokens > 0 {
			return tokens, false
		}
	}
	return 0, false
}

type listed struct {
	ID, Name  string
	Loaded    int `json:"loaded_context_length"` // LM Studio
	Most      int `json:"max_model_len"`         // vLLM, SGLang
	Context   int `json:"context_length"`        // OpenRouter
	Groq      int `json:"context_window"`
	Anthropic int `json:"max_input_tokens"`
	Gemini    int `json:"inputTokenLimit"`
}

// Windows returns the windows that a list of models of a vendor or server tells, by model, and those of other models in old: lists come in pages.
func Windows(list []byte, old map[string]int) map[string]int {
	all, seen := map[string]int{}, 0
	for _, array := range []string{"data", "models"} {
		for raw := range rawjson.Elements(rawjson.Field(list, array)) {
			if seen++; seen > maxListed {
				break
			}
			var m listed
			_ = json.Unmarshal(raw, &m) // what has another form is not known
			n, name := cmp.Or(m.Loaded, m.Most, m.Context, m.Groq, m.Anthropic, m.Gemini), cmp.Or(m.ID, strings.TrimPrefix(m.Name, "models/"))
			if n > 0 && n < mostTokensOfModel && all[name] == 0 && len(name) < longestName {
				all[name] = n
			}
		}
	}
	for name, n := range old {
		if len(all) < maxListed {
			all[name] = cmp.Or(all[name], n)
		}
	}
	return all
}

// Limits of a list, which a vendor can make as long as it likes.
const (
	maxListed   = 2000
	longestName = 300
)

// askOllama returns the window with which Ollama has loaded the model, else the configured one, else the usual one; 0
// if the server is not Ollama or does not have the model.
func (u *Upstream) askOllama(ctx context.Context, model string) (tokens int, usual bool) {
	ask, err := json.Marshal(map[string]string{"model": model})
	if err != nil {
		return 0, false
	}
	var shown struct {
		Parameters string
		Info       map[string]any `json:"model_info"`
	}
	u.asks(ctx, http.MethodPost, "/api/show", ask, &shown)
	trained := 0
	for name, value := range shown.Info {
		if n, ok := value.(float64); ok && strings.HasSuffix(name, ".context_length") && n > 0 && n < mostTokensOfModel {
			trained = int(n)
		}
	}
	if trained == 0 && shown.Parameters == "" {
		return 0, false
	}
	var running struct {
		Models []struct {
			Name, Model string
			Context     int `json:"context_length"`
		}
	}
	u.asks(ctx, http.MethodGet, "/api/ps", nil, &running)
	tagged := model
	if !strings.Contains(model, ":") {
		tagged += ":latest"
	}
	for _, m := range running.Models {
		if (m.Name == tagged || m.Model == tagged) && m.Context > 0 {
			return m.Context, false
		}
	}
	for lines := bufio.NewScanner(strings.NewReader(shown.Parameters)); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 2 && words[0] == "num_ctx" {
			if n, err := strconv.Atoi(words[1]); err == nil && n > 0 {
				return min(n, cmp.Or(trained, n)), false
			}
		}
	}
	return min(usualContext, cmp.Or(trained, usualContext)), true
}

// asks sends a request to an upstream's server and decodes the JSON answer into to. If there is no valid answer, to may
// be unchanged.
func (u *Upstream) asks(ctx context.Context, method, path string, body []byte, to any) {
	const largest = 4 << 20
	at := *u.Base
	at.Path = strings.TrimSuffix(u.Base.Path, "/v1") + path
	r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := u.Transport.RoundTrip(r) // follows no redirect
	if err != nil {
		return
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, largest))
	if err != nil || json.Unmarshal(text, to) != nil {
		return // not the expected server
	}
}
