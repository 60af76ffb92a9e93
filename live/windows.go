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

// A Window is what is known of the window of a model that neither the configuration nor the table of models tells, or whose server cuts what is
// longer than its window.
type Window struct {
	Upstream string `json:"upstream"`
	Model    string `json:"model"`
	Tokens   int    `json:"window"` // that conversations are condensed for
	From     string `json:"from"`   // [WindowServer], [WindowUsual], [WindowNotKnown] or empty: the table or the configuration
	// Truncated counts answers whose prompt the server has cut, and Taken is how many tokens it took of the last one, about Counted of ours.
	Truncated int `json:"truncated,omitempty"`
	Taken     int `json:"taken,omitempty"`
	Counted   int `json:"counted,omitempty"`
}

// Where the window of a [Window] is from.
const (
	WindowServer   = "server"    // the server says it
	WindowUsual    = "usual"     // the server gives its models so much unless it is configured otherwise, which it does not say
	WindowNotKnown = "not known" // nothing says it: the window of the profile is assumed
)

// Remedy says what to do, where something has to be done; else it is empty.
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

// windows are those that servers have told, or were asked for.
type windows struct {
	mu  sync.Mutex
	of  map[windowKey]*modelWindow
	cut map[string]bool // conversations of which a prompt was cut
}

type windowKey struct{ base, model string }

// A modelWindow is what is known of a window, and what was asked. Guarded by windows.mu.
type modelWindow struct {
	Window

	said  bool // in the log
	under bool // the server is being asked
	times int
	last  time.Time
}

// Limits of what is remembered of models and conversations, which clients name.
const (
	mostWindows = 200
	mostCut     = 1000
)

// Between two questions about a window the time doubles until the server answers; then it is the longest, because a server can restart with another one.
const (
	soonestAgain = time.Second
	latestAgain  = 10 * time.Minute
)

// elsewhere are models that only their vendors run: no server in reach has to be asked.
var elsewhere = regexp.MustCompile(`^(?:.*/)?(?:claude|gpt-\d|chatgpt|o\d|gemini|grok)`)

// windowOf returns the window of the model of a request whose profile has one of no user: what the server says if it is nearby, what the table
// says, or the window of the profile. It never waits.
func (x *exchange) windowOf(assumed int) int {
	u := x.t.upstream
	if u == nil || x.t.compress || x.declared || elsewhere.MatchString(strings.ToLower(x.r.Model)) && x.known > 0 {
		return cmp.Or(x.known, assumed)
	}
	ws := &x.windows
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.get(windowKey{u.base.String(), x.r.Model}, u.name)
	if w == nil { // too many
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
	if w.From == WindowServer || w.From == WindowUsual && w.times > 1 && !w.under { // a server that has loaded the model may know better
		return w.Tokens
	}
	return cmp.Or(x.known, assumed)
}

// get returns what is known of a model; nil if there are too many. The caller holds ws.mu.
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

// unknown says once that nothing tells the window. The caller holds windows.mu.
func (w *modelWindow) unknown(log *slog.Logger, assumed int) {
	w.Tokens, w.From = assumed, WindowNotKnown
	if w.said {
		return
	}
	w.said = true
	log.Warn("the window of a model is not known: conversations are condensed for the window of the profile, which may be too large",
		"model", w.Model, "upstream", w.Upstream, "assumed", assumed, "remedy", w.Remedy())
}

// askWindow asks a server for the window of a model.
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
			log.Info("the server tells the window of a model", "model", model, "upstream", u.name, "window", tokens, "from", from)
		}
		w.Tokens, w.From = tokens, from
	case w.From == WindowServer: // it does not answer now
	case known > 0:
		w.Tokens, w.From = known, ""
	default:
		w.unknown(log, assumed)
	}
}

// patienceWithServer is how long all questions about a window may take. No request waits for them.
const patienceWithServer = 3 * time.Second

// nearby reports whether an upstream can be a server of models on this machine or in its network. A name other than localhost may lead anywhere.
func (u *upstream) nearby() bool {
	if u.vendors || u.host.Of != "" {
		return false
	}
	ip := net.ParseIP(strings.Trim(u.base.Hostname(), "[]"))
	return ip == nil || inReach(ip)
}

func inReach(ip net.IP) bool { return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() }

// private reports whether all addresses of an upstream are of this machine or its network.
func (u *upstream) private(ctx context.Context) bool {
	all, err := net.DefaultResolver.LookupIP(ctx, "ip", u.base.Hostname())
	return err == nil && len(all) > 0 && !slices.ContainsFunc(all, func(ip net.IP) bool { return !inReach(ip) })
}

// usualContext is what Ollama gives a model on small machines if neither the model nor the server is configured otherwise, and what older versions
// do not report.
const usualContext = 4096

// askWindow asks the server for the window of a model, in the words of llama.cpp, Ollama, LM Studio, and of vLLM and SGLang. No credentials are
// sent. It returns 0 if none of them answers.
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

// askOllama asks what Ollama has loaded, and else what the model is configured for.
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

// least is the smaller one, of those that are known.
func least(n, known int) int {
	if known > 0 {
		return min(n, known)
	}
	return n
}

// asks sends a question to the server of an upstream and reads the answer, if there is one, into to.
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
	res, err := u.transport.RoundTrip(r) // which follows no redirect
	if err != nil {
		return
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, largest))
	if err != nil || json.Unmarshal(text, to) != nil {
		return // another server
	}
}

// A prompt was cut if the server counts this much less of it than we do: our count of text is never so far off.
const (
	cutRatio    = 3
	cutTokens   = 2000
	stillRatio  = 1.5 // while the conversation grows and the server's count does not
	stillTokens = 1000
)

// mediaTokens is an estimate of images and files that is part of our count, in a request.
func mediaTokens(body []byte) int { return mediaSize * bytes.Count(body, []byte("base64")) }

// truncated reports whether the server has cut the prompt of a turn, as servers of models on one's own machine do without a word. Vendors refuse it.
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
	w.Truncated++
	w.Taken, w.Counted, w.Tokens = a.Input, ours, cmp.Or(w.Tokens, x.policy.Window)
	x.measure(&mTruncated, 1, aTenant.String(x.t.who.tenant), aModel.String(x.modelName()))
	if first {
		x.s.Logger.Warn("the server has cut a prompt: it counts far fewer tokens than were sent, and the model does not see the rest",
			"model", w.Model, "upstream", w.Upstream, "taken", a.Input, "counted", ours, "window", x.policy.Window, "remedy", w.Remedy())
	}
	return true
}

// counted is the size of a prompt as we and the server count it.
type counted struct{ ours, theirs int }

// known returns what status shows of windows.
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

// addWindow adds what another gateway, or an earlier one, knew of a window.
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

// usersOwn reports whether the window of a profile is the user's own number.
func usersOwn(r *resolved) bool {
	k := r.Origin("window").Kind
	return k != config.FromDefault && k != config.FromComputed && k != config.FromModel
}
