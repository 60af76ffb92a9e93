package live

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/live/internal/payload"
	"github.com/condensehq/condense/live/internal/telemetry"
	"github.com/condensehq/condense/live/internal/upstream"
)

// windows holds the windows that servers have reported or were asked for.
type windows struct {
	mu        sync.Mutex
	of        map[windowKey]*modelWindow
	truncated map[string]bool              // conversations with a truncated prompt
	listed    map[windowKey]map[string]int // by base and tenant, and by model, as vendors have listed them to clients
}

type windowKey struct{ base, model string } // or, of a list, the tenant

// A modelWindow is a model's window with the progress of asking the server. It is guarded by windows.mu.
type modelWindow struct {
	shown Window

	most        int  // the longest prompt that the server has taken, by its count
	truncations int  // prompts without media that it has truncated at that length, each of another size
	said        bool // the warning is in the log
	under       bool // a question to the server is under way
	times       int
	last        time.Time
}

// Limits of the models and conversations remembered, because clients can name any number of them.
const maxWindows, maxTruncated = 200, 1000

// The pause between two questions about a window doubles until the server answers. Then it is latestAgain, because a
// server can restart with another window.
const (
	soonestAgain = time.Second
	latestAgain  = 10 * time.Minute
)

// elsewhere matches models that only their vendors run, so that no server nearby needs to be asked.
var elsewhere = plain.Pattern(`^(?:.*/)?(?:claude|gpt-\d|chatgpt|o\d|gemini|grok)`)

// askedWindow returns the window of a request's model: as reported by a server nearby, else from the table of models, else
// assumed, the profile's window. It never waits; a question to the server runs in the background.
func askedWindow(r *request, assumed int) int {
	u := r.t.upstream
	if stated := r.g.windows.statedOf(r); stated > 0 && !r.tariff.declared {
		return min(cmp.Or(r.tariff.listed, stated), stated)
	}
	if u == nil || r.t.compress || r.tariff.declared || elsewhere().MatchString(strings.ToLower(r.parsed.Model)) && r.tariff.listed > 0 {
		return cmp.Or(r.tariff.listed, assumed)
	}
	ws := &r.g.windows
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.get(windowKey{u.Base.String(), r.parsed.Model}, u.Name)
	if w == nil { // too many models
		return cmp.Or(r.tariff.listed, assumed)
	}
	if !u.Nearby() {
		if r.tariff.listed == 0 {
			w.unknown(r.s.Reports.Logger, assumed)
		}
		return cmp.Or(r.tariff.listed, assumed)
	}
	wait := latestAgain
	if w.shown.From != WindowServer && w.times < 10 { //nolint:mnd // then it is longer
		wait = min(wait, soonestAgain<<w.times)
	}
	if now := r.s.Now(); !w.under && (w.last.IsZero() || now.Sub(w.last) >= wait) {
		w.under, w.last = true, now
		w.times++
		known, model, log := r.tariff.listed, r.parsed.Model, r.s.Reports.Logger
		r.g.background.Go(func() { r.g.askWindow(u, w, model, known, assumed, log) })
	}
	// A usual window counts from the second answer on: a server that has loaded the model may know better.
	if w.shown.From == WindowServer || w.shown.From == WindowUsual && w.times > 1 && !w.under {
		return w.shown.Tokens
	}
	return cmp.Or(r.tariff.listed, assumed)
}

// stated matches the window in a refusal of a prompt as too long. Elsewhere than after "tokens >" a short number is none, as in "32k".
var stated = plain.Pattern(`(?i)tokens (?:>|\\u003e) (\d+)|(?:> ?|(?:context|prompt) length is |tokens allowed \(|n_ctx"?: ?|model with )(\d{4,})`)

// named returns the window that a refusal of a prompt as too long names; 0 if it names none. It is absurd if no model has that window, or our
// count of the prompt is far below it: but vendors count images and files in their own ways. Known is the window that was to be kept.
func named(refusal string, counted, media, known int) (n int, absurd bool) {
	found := stated().FindStringSubmatch(refusal)
	if found == nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.Join(found[1:], ""))
	return n, err != nil || n < min(minWindow, known) || media == 0 && n/truncatedRatio > counted
}

// remember keeps the window that a refusal of the plan names, or logs that it is absurd.
func remember(p *plan, n int, absurd bool, refusal string) {
	r := p.req
	if n > 0 && !absurd {
		r.g.windows.state(r, n)
	} else if absurd && r.g.causes.First("window "+r.t.upstream.Name, r.parsed.Model, r.s.Now()) {
		r.s.Reports.Logger.Warn("a vendor refuses prompts as too long that are far shorter than any window: nothing is condensed for that", "model",
			r.parsed.Model, "upstream", r.t.upstream.Name, "counted", p.tokens, "window", r.limits.policy.Window, "refusal", plain.Clip(refusal))
	}
}

// state remembers the window that a refusal of a request names. Then the model of a server has it, whatever was assumed.
func (ws *windows) state(r *request, n int) {
	if r.t.upstream == nil || r.tariff.listed > 0 && n > r.tariff.listed {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.get(windowKey{r.t.upstream.Base.String(), r.parsed.Model}, r.t.upstream.Name); w != nil && (w.shown.From != WindowServer || n < w.shown.Tokens) {
		w.shown.Tokens, w.shown.From = n, WindowRefusal
	}
}

// statedOf returns the window that a refusal has named; 0 if none has.
func (ws *windows) statedOf(r *request) int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if u := r.t.upstream; u != nil {
		if w := ws.of[windowKey{u.Base.String(), r.parsed.Model}]; w != nil && w.shown.From == WindowRefusal {
			return w.shown.Tokens
		}
	}
	return 0
}

// get returns the entry of a model, new if there is none; nil if there are too many. The caller holds ws.mu.
func (ws *windows) get(k windowKey, upstream string) *modelWindow {
	w := ws.of[k]
	if w == nil && len(ws.of) < maxWindows {
		w = &modelWindow{shown: Window{Upstream: upstream, Model: k.model}}
		ws.of[k] = w
	}
	return w
}

// listening returns a transport that learns the windows from the list of models that a client asks its vendor for, while the list
// passes by. The account of a tenant can have other windows.
func listening(g *Gateway, to *upstream.Upstream, tenant string) http.RoundTripper {
	return &unheard{to, func(res *http.Response) {
		var text bytes.Buffer
		encoding := res.Header.Get("Content-Encoding")
		res.Body = payload.Tap(res.Body, func(read []byte, err error) {
			if text.Len() <= maxPacked {
				text.Write(read)
			}
			if errors.Is(err, io.EOF) {
				of := windowKey{to.Base.String(), tenant}
				_ = g.safely("models", func() error { return g.windows.learn(of, text.Bytes(), encoding) }) // of another form: it is no list
				text.Reset()
			}
		})
	}}
}

// learn remembers the windows of a list.
func (ws *windows) learn(of windowKey, text []byte, encoding string) error {
	list, err := payload.Decode(text, encoding, maxPacked)
	if err != nil || !json.Valid(list) {
		return err
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.listed[of] = upstream.Windows(list, ws.listed[of])
	maps.DeleteFunc(ws.listed[of], func(_ string, n int) bool { return n < minWindow })
	return nil
}

// listedFor returns the window of a request's model that its vendor has listed; 0 if it has not.
func (ws *windows) listedFor(r *request) int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if r.t.upstream == nil {
		return 0
	}
	return ws.listed[windowKey{r.t.upstream.Base.String(), r.t.who.Tenant}][r.parsed.Model]
}

// unknown notes that no source has the window, and logs that once. The caller holds windows.mu.
func (w *modelWindow) unknown(log *slog.Logger, assumed int) {
	w.shown.Tokens, w.shown.From = assumed, WindowNotKnown
	if w.said {
		return
	}
	w.said = true
	log.Warn("the window of a model is not known: conversations are condensed for the window of the profile, which may be too large",
		"model", w.shown.Model, "upstream", w.shown.Upstream, "assumed", assumed, "remedy", w.shown.Remedy())
}

// askWindow asks a server for the window of a model, and stores the answer in w.
func (g *Gateway) askWindow(u *upstream.Upstream, w *modelWindow, model string, known, assumed int, log *slog.Logger) {
	tokens, usual := 0, false
	err := g.safely("window", func() error {
		ctx, cancel := context.WithTimeout(g.life, patienceWithServer)
		defer cancel()
		if u.Private(ctx) {
			tokens, usual = u.AskWindow(ctx, model)
		}
		return nil
	})
	g.windows.mu.Lock()
	defer g.windows.mu.Unlock()
	w.under = false
	switch {
	case err != nil || g.life.Err() != nil:
	case tokens > 0:
		from := WindowServer
		if usual {
			from = WindowUsual
		}
		if w.shown.Tokens != tokens || w.shown.From != from {
			if usual {
				log.Warn("the server does not tell the window of a model: Ollama's usual one is assumed; set num_ctx, or the window",
					"model", model, "upstream", u.Name, "window", tokens, "remedy", (&Window{Model: model, From: WindowNotKnown}).Remedy())
			} else {
				log.Info("the server tells the window of a model", "model", model, "upstream", u.Name, "window", tokens, "from", from)
			}
		}
		w.shown.Tokens, w.shown.From = tokens, from
	case w.shown.From == WindowServer, w.shown.From == WindowRefusal: // the server does not answer now
	case known > 0:
		w.shown.Tokens, w.shown.From = known, ""
	default:
		w.unknown(log, assumed)
	}
}

// patienceWithServer limits all questions about a window together. No request waits for them.
const patienceWithServer = 3 * time.Second

// Thresholds for a truncated prompt: our count of text is never that much larger than the server's.
const (
	truncatedRatio  = 3
	truncatedTokens = 2000
	stillRatio      = 1.5 // lower ones, for when the conversation grows and the server's count does not
	stillTokens     = 1000
	minWindow       = 2048 // the smallest that servers give a model unless they are told
)

// truncated reports whether the server has silently truncated the prompt of a turn, as local model servers do. Vendors refuse
// such prompts instead. It also counts and logs the event.
func (e *exchange) truncated(a wire.Answer) bool {
	r := e.req
	if r.t.upstream == nil || r.t.upstream.IsVendors || r.t.upstream.Host.Of != "" || r.t.compress || !a.Complete {
		return false
	}
	ours := e.plan.ours
	if r.s.Observe {
		ours = e.plan.original
	}
	ours -= r.media
	was := r.lease.SwapCounted(session.Counted{Ours: ours, Theirs: a.Input})
	still := was.Theirs > 0 && ours-was.Ours >= stillTokens && a.Input <= was.Theirs+stillTokens/10 &&
		float64(ours) >= stillRatio*float64(a.Input)
	truncated := still || ours >= truncatedRatio*a.Input && ours-a.Input >= truncatedTokens
	ws := &r.g.windows
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.get(windowKey{r.t.upstream.Base.String(), r.parsed.Model}, r.t.upstream.Name)
	w = cmp.Or(w, &modelWindow{shown: Window{Upstream: r.t.upstream.Name, Model: r.parsed.Model}})
	if a.Input > w.most+w.most/10 { // it holds more than was known
		w.most, w.truncations, w.shown.Holds = a.Input, 0, 0
	}
	if !truncated {
		return false
	}
	first := !ws.truncated[r.lease.Conversation]
	if len(ws.truncated) >= maxTruncated || ws.truncated == nil {
		ws.truncated = map[string]bool{}
	}
	ws.truncated[r.lease.Conversation] = true
	if grown := ours - w.shown.Counted; r.media == 0 && max(grown, -grown) >= stillTokens {
		w.truncations++
	}
	w.shown.Truncated++
	w.shown.Taken, w.shown.Counted, w.shown.Tokens = a.Input, ours, cmp.Or(w.shown.Tokens, r.limits.policy.Window)
	r.g.measure(&telemetry.Truncated, 1, telemetry.TenantKey.String(r.t.who.Tenant), telemetry.ModelKey.String(r.modelName()))
	log := r.s.Reports.Logger.With("model", w.shown.Model, "upstream", w.shown.Upstream, "taken", a.Input, "counted", ours, "window", r.limits.policy.Window)
	if first {
		log.Warn("the server has cut a prompt: it counts far fewer tokens than were sent, and the model does not see the rest")
	}
	// One count proves no window: ours or the server's may be wrong.
	if w.shown.Holds == 0 && w.truncations > 1 && w.most >= minWindow {
		w.shown.Holds = w.most
		log.Warn("a server takes no more of prompts, however long they are: that is the window of its model", "remedy", w.shown.Remedy())
	}
	return true
}

// known returns the windows to show in the status, sorted by upstream and model.
func (ws *windows) known() []Window {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var all []Window
	for _, w := range ws.of {
		if w.shown.From != "" || w.shown.Truncated > 0 {
			all = append(all, w.shown)
		}
	}
	slices.SortFunc(all, func(a, b Window) int {
		return cmp.Or(cmp.Compare(a.Upstream, b.Upstream), cmp.Compare(a.Model, b.Model))
	})
	return all
}

// usersOwn reports whether the user has set the window of a profile.
func usersOwn(r *resolved) bool {
	k := r.Origin("window").Kind
	return k != config.FromDefault && k != config.FromComputed && k != config.FromModel
}

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
	// Holds is the window, if several such prompts show it: the server took no more of each. Otherwise 0.
	Holds int `json:"holds,omitempty"`
}

// The values of Window.From.
const (
	WindowServer   = "server"    // reported by the server
	WindowRefusal  = "refusal"   // named in a refusal of a prompt as too long
	WindowUsual    = "usual"     // the default of a server that does not report its configuration
	WindowNotKnown = "not known" // no source has it: the profile's window is assumed
)

// Remedy returns a line for the configuration that corrects the window, or an empty string if none is needed or the
// window is not sure.
func (w *Window) Remedy() string {
	tokens := "TOKENS"
	switch {
	case w.Holds > 0:
		tokens = strconv.Itoa(w.Holds)
	case w.Truncated > 0, w.From != WindowNotKnown:
		return ""
	}
	return fmt.Sprintf("models: {%q: {window: %s}} in condense.yaml", w.Model, tokens)
}

// addWindow merges a window known to another gateway, or to an earlier one, into all.
func addWindow(all []Window, w Window) []Window {
	same := func(k *Window) bool { return k.Upstream == w.Upstream && k.Model == w.Model }
	return addTo(all, w, maxWindows, same, func(k *Window) {
		k.Truncated += w.Truncated
		if w.Truncated > 0 {
			k.Taken, k.Counted, k.Holds = w.Taken, w.Counted, w.Holds
		}
		if k.From == WindowNotKnown {
			k.From, k.Tokens = w.From, w.Tokens
		}
	})
}
