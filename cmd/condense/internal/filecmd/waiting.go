package filecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// A wait shows on a terminal for which provider and model a command waits, and since when, in one line that is
// overwritten. Elsewhere it prints nothing.
type wait struct {
	w     io.Writer // nil: no terminal
	model func(provider string) string
	every time.Duration

	mu       sync.Mutex
	costly   map[string]bool // providers that ask a language model
	provider string          // that is asked now; empty for none
	began    time.Time
	doing    string // as the provider says
	width    int    // of the line
	stop     chan struct{}
}

// watch has the host's events shown, and the estimated costs of the conversation printed.
func (s *selection) watch(a *cli.App, conversation string) *wait {
	w := &wait{every: time.Second, costly: map[string]bool{}, model: func(provider string) string { return s.modelOf(provider, a.Model) }}
	if term.IsTerminal(a.Stderr) && os.Getenv("TERM") != "dumb" {
		w.w = a.Stderr
	}
	s.observe = func(e condense.Event) {
		if e.Kind == condense.EventEstimated {
			term.Printf(a.Stderr, "%s: %s\n", conversation, estimateText(e.Estimate))
		}
		w.see(&e)
	}
	return w
}

// modelOf returns the name of the language model that a provider is configured to ask; empty if its settings name none.
func (s *selection) modelOf(provider, given string) string {
	for i := range s.chain {
		p := &s.chain[i]
		var settings struct{ Model string }
		if p.Name == provider && json.Unmarshal(p.Settings, &settings) == nil {
			return cmp.Or(settings.Model, given)
		}
	}
	return given
}

// listen returns a context in which providers say how far they are.
func (w *wait) listen(ctx context.Context) context.Context {
	if w == nil || w.w == nil {
		return ctx
	}
	return core.WithProgress(ctx, func(fraction float64, text string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.doing = text; fraction >= 0 {
			w.doing = fmt.Sprintf("%.0f %% %s", 100*fraction, text)
		}
	})
}

// see takes an event of the host.
func (w *wait) see(e *condense.Event) {
	if w.w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind { //nolint:exhaustive // of the others there is nothing to show
	case condense.EventEstimated:
		w.costly[e.Provider] = e.Estimate.Usage.Calls > 0
	case condense.EventAsking:
		w.end()
		w.provider, w.began, w.doing, w.stop = e.Provider, time.Now(), "", make(chan struct{})
		if w.costly[e.Provider] {
			w.show()
		}
		go w.tick(w.stop)
	case condense.EventAttempt, condense.EventFinished:
		w.end()
	}
}

// tick brings the line up to date until it is stopped.
func (w *wait) tick(stop <-chan struct{}) {
	t := time.NewTicker(w.every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			w.mu.Lock()
			if w.stop == stop {
				w.show()
			}
			w.mu.Unlock()
		case <-stop:
			return
		}
	}
}

// show writes the line. The caller holds w.mu.
func (w *wait) show() {
	line := "waiting for " + w.provider
	if model := w.model(w.provider); model != "" && w.costly[w.provider] {
		line += ", which asks the model " + model
	}
	if s := time.Since(w.began).Round(time.Second); s > 0 {
		line += fmt.Sprintf(": %v", s)
	}
	if w.doing != "" {
		line += ", " + w.doing
	}
	line = plain.First(line, 77) // a longer line could not be overwritten
	term.Printf(w.w, "\r%-*s", w.width, line)
	w.width = utf8.RuneCountInString(line)
}

// end clears the line. The caller holds w.mu.
func (w *wait) end() {
	if w.stop == nil {
		return
	}
	close(w.stop)
	w.stop, w.provider = nil, ""
	if w.width > 0 {
		term.Printf(w.w, "\r%*s\r", w.width, "")
		w.width = 0
	}
}
