package live

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/wire"
)

// A Window describes the window of a model that neither the configuration nor the table of models has, or whose server
// cuts longer prompts.
type Window struct {
	Upstream string `json:"upstream"`
	Model    string `json:"model"`
	Tokens   int    `json:"window"` // tokens that conversations are condensed to fit
	From     string `json:"from"`   // one of the constants below; empty: the table or the configuration
	// Truncated counts the answers whose prompt the server has cut. Of the last such prompt the server took Taken
	// tokens by its count, and the gateway sent Counted by its own.
	Truncated int `json:"truncated,omitempty"`
	Taken     int `json:"taken,omitempty"`
	Counted   int `json:"counted,omitempty"`
}

// The values of Window.From.
const (
	WindowServer   = "server"    // reported by the server
	WindowUsual    = "usual"     // the default of a server that does not report its configuration
	WindowNotKnown = "not known" // no source has it: the profile's window is assumed
)

// Remedy returns a line for the configuration that corrects the window, or an empty string if none is needed.
func (w *Window) Remedy() string {
	tokens := "TOKENS"
	switch {
	case w.Truncated > 0:
		tokens = strconv.Itoa(w.Taken)
	case w.From != WindowNotKnown:
		return ""
	}
	return fmt.Sprintf("models: {%q: {window: %s}} in condense.yaml", w.Model, tokens)
}

// windows holds the windows that servers have reported or were asked for.
type windows struct {
	mu  sync.Mutex
	of  map[windowKey]*modelWindow
	cut map[string]bool // conversations with a prompt that was cut
}

type windowKey struct{ base, model string }

// A modelWindow is a model's window with the progress of asking the server. It is guarded by windows.mu.
type modelWindow struct {
	Window

	holds int  // tokens that the server holds, learned from a prompt that it cut; 0 if it has cut none
	said  bool // the warning is in the log
	under bool // a question to the server is under way
	times int
	last  time.Time
}

// Limits of the models and conversations remembered, because clients can name any number of them.
const (
	mostWindows = 200
	mostCut     = 1000
)

// The pause between two questions about a window doubles until the server answers. Then it is latestAgain, because a
// server can restart with another window.
const (
	soonestAgain = time.Second
	latestAgain  = 10 * time.Minute
)

// elsewhere matches models that only their vendors run, so that no server nearby needs to be asked.
var elsewhere = regexp.MustCompile(`^(?:.*/)?(?:claude|gpt-\d|chatgpt|o\d|gemini|grok)`)

// windowOf returns the window, in tokens, of a request's model if the user has not set one, which is assumed. Ollama
// gives a model the window that the request asks for, and less if it has cut a prompt that should have fitted.
func (x *exchange) windowOf(assumed int, usersOwn bool) int {
	n := assumed
	switch {
	case x.r.Window > 0 && usersOwn:
		n = min(n, x.r.Window)
	case x.r.Window > 0:
		n = x.r.Window
	case !usersOwn:
		n = x.modelWindow(assumed)
	}
	if x.r.API == wire.Generate && x.t.upstream != nil {
		x.windows.mu.Lock()
		defer x.windows.mu.Unlock()
		if w := x.windows.of[windowKey{x.t.upstream.base.String(), x.r.Model}]; w != nil && w.holds > 0 {
			n = min(n, w.holds)
		}
	}
	return n
}

// modelWindow returns the window of a request's model: the one reported by a server nearby, else the one in the table
// of models, else assumed, the profile's. It never waits; a question to the server runs in the background.
func (x *exchange) modelWindow(assumed int) int {
	u := x.t.upstream
	if u == nil || x.t.compress || x.declared || elsewhere.MatchString(strings.ToLower(x.r.Model)) && x.known > 0 {
		return cmp.Or(x.known, assumed)
	}
	ws := &x.windows
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.get(windowKey{u.base.String(), x.r.Model}, u.name)
	if w == nil { // too many models
		return cmp.Or(x.known, assumed)
	}
	if !u.nearby() {
		if x.known == 0 {
			w.unknown(x.s.Logger, assumed)
		}
		return cmp.Or(x.known, assumed)
	}
	wait := latestAgain
	if w.From != WindowServer && w.times < 10 { //nolint:mnd // then it is longer
		wait = min(wait, soonestAgain<<w.times)
	}
	if now := x.s.Now(); !w.under && (w.last.IsZero() || now.Sub(w.last) >= wait) {
		w.under, w.last = true, now
		w.times++
		known, model, log := x.known, x.r.Model, x.s.Logger
		x.background.Go(func() { x.askWindow(u, w, model, known, assumed, log) })
	}
	// A usual window counts from the second answer on: a server that has loaded the model may know better.
	if w.From == WindowServer || w.From == WindowUsual && w.times > 1 && !w.under {
		return w.Tokens
	}
	return cmp.Or(x.known, assumed)
}

// get returns the entry of a model, new if there is none; nil if there are too many. The caller holds ws.mu.
func (ws *windows) get(k windowKey, upstream string) *modelWindow {
	w := ws.of[k]
	if w == nil && len(ws.of) < mostWindows {
		if ws.of == nil {
			ws.of = map[windowKey]*modelWindow{}
		}
		w = &modelWindow{Window: Window{Upstream: upstream, Model: k.model}}
		ws.of[k] = w
	}
	return w
}

// unknown notes that no source has the window, and logs that once. The caller holds windows.mu.
func (w *modelWindow) unknown(log *slog.Logger, assumed int) {
	w.Tokens, w.From = assumed, WindowNotKnown
	if w.said {
		return
	}
	w.said = true
	log.Warn("the window of a model is not known: conversations are condensed for the window of the profile, which may be too large",
		"model", w.Model, "upstream", w.Upstream, "assumed", assumed, "remedy", w.Remedy())
}

// askWindow asks a server for the window of a model, and stores the answer in w.
func (g *Gateway) askWindow(u *upstream, w *modelWindow, model string, known, assumed int, log *slog.Logger) {
	tokens, from := 0, ""
	err := g.safely("window", func() error {
		ctx, cancel := context.WithTimeout(g.life, patienceWithServer)
		defer cancel()
		if u.private(ctx) {
			tokens, from = u.askWindow(ctx, model)
		}
		return nil
	})
	g.windows.mu.Lock()
	defer g.windows.mu.Unlock()
	w.under = false
	switch {
	case err != nil || g.life.Err() != nil:
	case tokens > 0:
		if w.Tokens != tokens || w.From != from {
			if from == WindowUsual {
				log.Warn("the server does not tell the window of a model: Ollama's usual one is assumed; set num_ctx, or the window",
					"model", model, "upstream", u.name, "window", tokens, "remedy", (&Window{Model: model, From: WindowNotKnown}).Remedy())
			} else {
				log.Info("the server tells the window of a model", "model", model, "upstream", u.name, "window", tokens, "from", from)
			}
		}
		w.Tokens, w.From = tokens, from
	case w.From == WindowServer: // the server does not answer now
	case known > 0:
		w.Tokens, w.From = known, ""
	default:
		w.unknown(log, assumed)
	}
}

// patienceWithServer limits all questions about a window together. No request waits for them.
const patienceWithServer = 3 * time.Second

// nearby reports whether an upstream can be a model server on this machine or its network. A host name can resolve to
// any address, so private checks it before anything is sent.
func (u *upstream) nearby() bool {
	if u.vendors || u.host.Of != "" {
		return false
	}
	ip := net.ParseIP(strings.Trim(u.base.Hostname(), "[]"))
	return ip == nil || inReach(ip)
}

func inReach(ip net.IP) bool { return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() }

// private reports whether all addresses of an upstream are on this machine or its network.
func (u *upstream) private(ctx context.Context) bool {
	all, err := net.DefaultResolver.LookupIP(ctx, "ip", u.base.Hostname())
	return err == nil && len(all) > 0 && !slices.ContainsFunc(all, func(ip net.IP) bool { return !inReach(ip) })
}

// usualContext is the window, in tokens, that Ollama gives a model on small machines unless the model or the server is
// configured otherwise. Older versions do not report it.
const usualContext = 4096

// askWindow asks the server for the window of a model, with the endpoints of llama.cpp, Ollama, LM Studio, vLLM and
// SGLang in turn. It sends no credentials. It returns 0 if none of them answers.
func (u *upstream) askWindow(ctx context.Context, model string) (tokens int, from string) {
	var props struct {
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if u.asks(ctx, http.MethodGet, "/props", nil, &props); props.Settings.Context > 0 {
		return props.Settings.Context, WindowServer
	}
	if tokens, from = u.askOllama(ctx, model); tokens > 0 {
		return tokens, from
	}
	var listed struct {
		Data []struct {
			ID     string
			Loaded int `json:"loaded_context_length"` // LM Studio
			Most   int `json:"max_model_len"`         // vLLM, SGLang
		}
	}
	for _, path := range []string{"/api/v0/models", "/v1/models"} {
		listed.Data = nil
		u.asks(ctx, http.MethodGet, path, nil, &listed)
		for _, m := range listed.Data {
			if n := max(m.Loaded, m.Most); m.ID == model && n > 0 {
				return n, WindowServer
			}
		}
	}
	return 0, ""
}

// askOllama returns the window with which Ollama has loaded the model, else the configured one, else the usual one; 0
// if the server is not Ollama or does not have the model.
func (u *upstream) askOllama(ctx context.Context, model string) (tokens int, from string) {
	ask, err := json.Marshal(map[string]string{"model": model})
	if err != nil {
		return 0, ""
	}
	var shown struct {
		Parameters string
		Info       map[string]any `json:"model_info"`
	}
	u.asks(ctx, http.MethodPost, "/api/show", ask, &shown)
	trained := 0
	for name, value := range shown.Info {
		if n, ok := value.(float64); ok && strings.HasSuffix(name, ".context_length") && n > 0 && n < mostTokens {
			trained = int(n)
		}
	}
	if trained == 0 && shown.Parameters == "" {
		return 0, ""
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
			return m.Context, WindowServer
		}
	}
	for lines := bufio.NewScanner(strings.NewReader(shown.Parameters)); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 2 && words[0] == "num_ctx" {
			if n, err := strconv.Atoi(words[1]); err == nil && n > 0 {
				return least(n, trained), WindowServer
			}
		}
	}
	return least(usualContext, trained), WindowUsual
}

// least returns the smaller of n and known, or n if known is 0.
func least(n, known int) int {
	if known > 0 {
		return min(n, known)
	}
	return n
}

// asks sends a request to an upstream's server and decodes the JSON answer into to. If there is no valid answer, to may
// be unchanged.
func (u *upstream) asks(ctx context.Context, method, path string, body []byte, to any) {
	const largest = 4 << 20
	at := *u.base
	at.Path = strings.TrimSuffix(u.base.Path, "/v1") + path
	r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := u.transport.RoundTrip(r) // follows no redirect
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

// Thresholds for a prompt that was cut: our count of text is never that much larger than the server's.
const (
	cutRatio    = 3
	cutTokens   = 2000
	stillRatio  = 1.5 // lower ones, for when the conversation grows and the server's count does not
	stillTokens = 1000
)

// mediaTokens estimates how many tokens of our count of a request are images and files.
func mediaTokens(body []byte) int {
	n := bytes.Count(body, []byte(imagesMark)) + bytes.Count(body, []byte("inlineData")) + bytes.Count(body, []byte("inline_data"))
	return mediaSize * (n + bytes.Count(body, []byte("base64")))
}

// truncated reports whether the server has silently cut the prompt of a turn, as local model servers do. Vendors refuse
// such prompts instead. It also counts and logs the event.
func (x *exchange) truncated(a wire.Answer) bool {
	if x.t.upstream == nil || x.t.upstream.vendors || x.t.upstream.host.Of != "" || x.t.compress || !a.Complete {
		return false
	}
	ours := x.ours
	if x.s.Observe {
		ours = x.original
	}
	ours -= x.media
	e := x.claim.entry
	x.claim.session.mu.Lock()
	was := e.counted
	e.counted = counted{ours, a.Input}
	x.claim.session.mu.Unlock()
	still := was.theirs > 0 && ours-was.ours >= stillTokens && a.Input <= was.theirs+stillTokens/10 && float64(ours) >= stillRatio*float64(a.Input)
	if !still && (ours < cutRatio*a.Input || ours-a.Input < cutTokens) {
		return false
	}
	ws := &x.windows
	ws.mu.Lock()
	defer ws.mu.Unlock()
	first := !ws.cut[x.claim.conversation]
	if len(ws.cut) >= mostCut || ws.cut == nil {
		ws.cut = map[string]bool{}
	}
	ws.cut[x.claim.conversation] = true
	w := ws.get(windowKey{x.t.upstream.base.String(), x.r.Model}, x.t.upstream.name)
	if w == nil {
		w = &modelWindow{Window: Window{Upstream: x.t.upstream.name, Model: x.r.Model}}
	}
	const step = 1024 // windows are multiples of it
	if x.r.API == wire.Generate && ours < x.policy.Window-x.policy.Window/10 {
		w.holds = (a.Input + step - 1) / step * step
	}
	w.Truncated++
	w.Taken, w.Counted, w.Tokens = a.Input, ours, cmp.Or(w.Tokens, x.policy.Window)
	x.measure(&mTruncated, 1, aTenant.String(x.t.who.tenant), aModel.String(x.modelName()))
	if first {
		x.s.Logger.Warn("the server has cut a prompt: it counts far fewer tokens than were sent, and the model does not see the rest",
			"model", w.Model, "upstream", w.Upstream, "taken", a.Input, "counted", ours, "window", x.policy.Window, "remedy", w.Remedy())
	}
	return true
}

// counted is the size of a prompt in tokens, by our count and by the server's.
type counted struct{ ours, theirs int }

// known returns the windows to show in the status, sorted by upstream and model.
func (ws *windows) known() []Window {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var all []Window
	for _, w := range ws.of {
		if w.From != "" || w.Truncated > 0 {
			all = append(all, w.Window)
		}
	}
	slices.SortFunc(all, func(a, b Window) int {
		return cmp.Or(cmp.Compare(a.Upstream, b.Upstream), cmp.Compare(a.Model, b.Model))
	})
	return all
}

// addWindow merges a window known to another gateway, or to an earlier one, into all.
func addWindow(all []Window, w Window) []Window {
	i := slices.IndexFunc(all, func(k Window) bool { return k.Upstream == w.Upstream && k.Model == w.Model })
	switch {
	case i >= 0:
		all[i].Truncated += w.Truncated
		if w.Truncated > 0 {
			all[i].Taken, all[i].Counted = w.Taken, w.Counted
		}
		if all[i].From == WindowNotKnown {
			all[i].From, all[i].Tokens = w.From, w.Tokens
		}
	case len(all) < mostWindows:
		all = append(all, w)
	}
	return all
}

// usersOwn reports whether the user has set the window of a profile.
func usersOwn(r *resolved) bool {
	k := r.Origin("window").Kind
	return k != config.FromDefault && k != config.FromComputed && k != config.FromModel
}
