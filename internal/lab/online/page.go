package online

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"time"

	decide "github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/lab/report"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/live"
)

//go:embed pages
var files embed.FS

// root is the path of the pages. Their links may have a folder before it.
const root = "/condense/"

// policy allows the pages only their own style, script and requests.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const script = "text/javascript; charset=utf-8"

// kinds are the types of the files of the pages, by name.
var kinds = map[string]string{
	"style.css": "text/css; charset=utf-8", "live.js": script, "view.js": script, "dom.js": script, "icon.svg": "image/svg+xml",
}

// Pages returns the pages below /condense/: files that the browser fills with data and with the answers of /condense/live. Folder is
// the beginning of the paths in links, for a server that strips it. Stats returns the gateway's statistics.
func (w *Watch) Pages(folder string, stats func() live.Stats) http.Handler {
	m := http.NewServeMux()
	serve := func(path, name, kind string) {
		text, err := files.ReadFile("pages/" + name)
		if err != nil {
			panic(err) // it is a file of this package
		}
		switch name {
		case "style.css": // after the style that it shares with reports
			text = append([]byte(report.Style()+"\n"), text...)
		case "page.html":
			text = bytes.ReplaceAll(text, []byte("{root}"), []byte(folder+root))
		}
		m.HandleFunc("GET "+root+path, func(out http.ResponseWriter, r *http.Request) {
			if id := r.PathValue("id"); id != "" && !w.has(id) {
				http.Error(out, "there is no such conversation in memory", http.StatusNotFound)
				return
			}
			header(out, kind)
			_, _ = out.Write(text)
		})
	}
	serve("{$}", "page.html", "text/html; charset=utf-8")
	serve("conversations/{id}", "page.html", "text/html; charset=utf-8")
	for name, kind := range kinds {
		serve(name, name, kind)
	}
	m.HandleFunc("GET "+root+"data", func(out http.ResponseWriter, r *http.Request) {
		text, err := json.Marshal(w.data(stats(), r.FormValue("conversation")))
		if err != nil {
			w.log.ErrorContext(r.Context(), "page", "err", err)
			http.Error(out, "the data could not be written", http.StatusInternalServerError)
			return
		}
		sum := fnv.New64a()
		_, _ = sum.Write(text)
		version := strconv.FormatUint(sum.Sum64(), 36) //nolint:mnd // short
		if r.Header.Get("X-Version") == version {
			out.WriteHeader(http.StatusNoContent)
			return
		}
		header(out, "application/json")
		out.Header().Set("X-Version", version)
		_, _ = out.Write(text)
	})
	return m
}

func header(out http.ResponseWriter, kind string) {
	h := out.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// has reports whether a conversation is known.
func (w *Watch) has(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.find(id) != nil
}

// A pageData is what the pages show, without any text of conversations.
type pageData struct {
	Sentence      string                   `json:"sentence"` // the verdict
	Stats         live.Stats               `json:"stats"`
	Advice        []string                 `json:"advice"`   // what to do about each of Stats.Failures; empty if only the reason says it
	Remedies      []string                 `json:"remedies"` // how to set each of Stats.Windows
	Reasons       map[decide.Reason]string `json:"reasons"`  // for epochs, in words
	Modes         []Mode                   `json:"modes"`
	Conversations []measured               `json:"conversations"`
}

// A measured conversation has the faults of each epoch's view in words.
type measured struct {
	Of     *Evidence  `json:"of"`
	Faults [][]string `json:"faults"`
}

// maxCurves is how many conversations the overview shows with their curves.
const maxCurves = 12

// data returns what the pages show: curves of the latest conversations, or only of one.
func (w *Watch) data(stats live.Stats, only string) *pageData {
	stats.AsOf = time.Time{} // it is no change
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all()
	p := &pageData{Stats: stats, Modes: Modes(all), Reasons: decide.Reasons, Conversations: []measured{}}
	p.Sentence = sentence(&stats, len(all), p.Modes)
	p.Advice = append(p.Advice, plain.Each(stats.Failures, func(f live.Failure) string { return control.Advice(f.Status) })...)
	p.Remedies = append(p.Remedies, plain.Each(stats.Windows, func(x live.Window) string { return x.Remedy() })...)
	for i, c := range all {
		if c.ID != only && (only != "" || i >= maxCurves) {
			c.Curve = nil
		}
		c.Curve = slices.Clone(c.Curve) // it changes while it is written
		one := measured{Of: c}
		one.Faults = append(one.Faults, plain.Each(c.Epochs, func(e *Epoch) []string { return e.Truth.Faults() })...)
		p.Conversations = append(p.Conversations, one)
	}
	return p
}

// sentence is the verdict of the overview: what epochs saved.
func sentence(stats *live.Stats, conversations int, modes []Mode) string {
	var all Mode
	for _, m := range modes {
		if m.Mode == "" && !m.Observed {
			all = m
		}
	}
	switch {
	case stats.Requests == 0:
		return "No request has come yet."
	case stats.Observe:
		return fmt.Sprintf("%s of %s only observed.", size.Plural(stats.Requests, "request"), size.Plural(conversations, "conversation"))
	case all.Epochs == 0:
		return fmt.Sprintf("%s so far, and none was long enough to be condensed.", size.Plural(conversations, "conversation"))
	}
	text := size.Plural(all.Epochs, "epoch") + " in " + size.Plural(all.Conversations, "conversation")
	if all.Unpriced == all.Epochs {
		return text + fmt.Sprintf(" made %s tokens of %s.", size.Group(all.After), size.Group(all.Before))
	}
	text += ". Since this gateway started, condensing has " // like the numbers below it
	if stats.Saved < 0 {
		return text + fmt.Sprintf("cost %s more than it saved.", usd(-stats.Saved))
	}
	return text + fmt.Sprintf("saved %s of %s.", usd(stats.Saved), usd(stats.Cost+stats.Saved))
}

func usd(v float64) string {
	digits := 2
	if v != 0 && v > -1 && v < 1 {
		digits = 4
	}
	return size.Dollars(v, digits)
}
