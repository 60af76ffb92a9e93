package online

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"sync"

	decide "github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/lab/report"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/live"
)

//go:embed pages
var files embed.FS

var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"visible": report.Visible, "group": size.Group, "usd": usd, "advice": control.Advice,
		"reasons": func() map[decide.Reason]string { return decide.Reasons },
	}).ParseFS(files, "pages/*.html"))
})

// root is the path of the pages. Their links may have a folder before it.
const root = "/condense/"

// policy allows the pages only their own style, script and requests.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Pages returns the pages below /condense/. Folder is the beginning of the paths in links, for a server that strips it; it must
// always be the same. Stats returns the gateway's statistics.
func (w *Watch) Pages(folder string, stats func() live.Stats) http.Handler {
	w.mu.Lock()
	w.links = folder + root
	w.mu.Unlock()
	m := http.NewServeMux()
	m.HandleFunc("GET "+root+"{$}", func(out http.ResponseWriter, r *http.Request) {
		w.show(out, r, "overview.html", func() any { return w.overview(stats()) })
	})
	m.HandleFunc("GET "+root+"conversations/{id}", func(out http.ResponseWriter, r *http.Request) {
		w.show(out, r, "conversation.html", func() any { return w.conversation(r.PathValue("id")) })
	})
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		text, err := files.ReadFile("pages/" + name)
		if err != nil {
			panic(err) // it is a file of this package
		}
		if name == "style.css" { // the style of the explanations below tables, and of elements that only these pages have
			text = append([]byte(report.Style()+"\n"), text...)
		}
		m.HandleFunc("GET "+root+name, func(out http.ResponseWriter, _ *http.Request) {
			header(out, kind)
			_, _ = out.Write(text)
		})
	}
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

// show answers with a page, or with "not changed" if the reader has the current version.
func (w *Watch) show(out http.ResponseWriter, r *http.Request, name string, data func() any) {
	w.mu.Lock()
	version := strconv.Itoa(w.changes)
	w.mu.Unlock()
	if r.Header.Get("X-Version") == version {
		out.WriteHeader(http.StatusNoContent)
		return
	}
	d := data()
	if d == nil {
		http.Error(out, "there is no such conversation in memory", http.StatusNotFound)
		return
	}
	var page bytes.Buffer
	if err := pages().ExecuteTemplate(&page, name, d); err != nil {
		w.log.ErrorContext(r.Context(), "page", "err", err)
		http.Error(out, "the page could not be made", http.StatusInternalServerError)
		return
	}
	header(out, "text/html; charset=utf-8")
	_, _ = out.Write(page.Bytes())
}

type section struct{ ID, Title string }

// A base is the data that all pages have.
type base struct {
	Title, Root string
	Version     int
	Sections    []section
}

type overviewPage struct {
	base
	Stats         live.Stats
	Sentence      string // the verdict
	Cards         []card // the latest conversations
	Modes         []modeRow
	Failed        bool // a provider did not condense
	Tenants       bool
	Conversations []conversationRow
	Epochs        []epochRow
}

type conversationPage struct {
	base
	C      *Evidence
	Curve  template.HTML
	Money  template.HTML
	Rows   []epochRow
	Epochs []epochDetail
}

// A card shows a conversation with its curve.
type card struct {
	*Evidence

	Link, Size, Worth string
	Curve             template.HTML
}

// A modeRow has the results of the epochs of a mode.
type modeRow struct {
	Mode
	Title, Expected, Measured, Share, Worth string
}

type conversationRow struct {
	*Evidence
	Link       string
	Epochs     int
	Truth      *live.Truth // of the last epoch, which stands for the whole history
	CacheShare string
	Worth      string
}

type epochRow struct {
	*Epoch
	Link, Mode, By, Expected, Paid, Saved string
}

type epochDetail struct {
	epochRow

	N  int
	ID string
}

// How many conversations and epochs the tables of the overview have, and how many conversations it shows with their curves.
const (
	maxRows  = 50
	maxCards = 4
)

func (w *Watch) overview(stats live.Stats) any {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all()
	p := &overviewPage{
		base:  w.base("condense serve", "running", "Latest", "worth", "Worth", "conversations", "Conversations", "epochs", "Epochs", "providers", "Providers", "recalls", "Recalls"),
		Stats: stats, Failed: slices.ContainsFunc(stats.Attempts, func(a live.Attempt) bool { return a.Failed() }),
	}
	modes := Modes(all)
	p.Sentence = sentence(&stats, len(all), modes)
	for _, m := range modes {
		if m.Epochs > 0 {
			p.Modes = append(p.Modes, m.row())
		}
	}
	var epochs []epochRow
	for _, c := range all {
		if len(p.Cards) < maxCards {
			link := w.links + "conversations/" + c.ID
			p.Cards = append(p.Cards, card{Evidence: c, Link: link, Size: c.filled(), Worth: usd(c.Saved), Curve: c.curve(link)})
		}
		p.Tenants = p.Tenants || c.Tenant != ""
		if len(p.Conversations) < maxRows {
			row := conversationRow{Evidence: c, Link: w.links + "conversations/" + c.ID, Epochs: len(c.Epochs), CacheShare: "–", Worth: worth(c.Saved, c.Observe)}
			if n := len(c.Epochs); n > 0 {
				row.Truth = c.Epochs[n-1].Truth
			}
			if c.Input > 0 {
				row.CacheShare = percent(float64(c.Read) / float64(c.Input))
			}
			p.Conversations = append(p.Conversations, row)
		}
		for i, e := range c.Epochs {
			epochs = append(epochs, w.row(e, c.ID, i+1))
		}
	}
	slices.SortStableFunc(epochs, func(a, b epochRow) int { return b.Time.Compare(a.Time) })
	p.Epochs = epochs[:min(len(epochs), maxRows)]
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
	switch {
	case all.Unpriced == all.Epochs:
		text += fmt.Sprintf(" made %s tokens of %s", size.Group(all.After), size.Group(all.Before))
	case all.Saved < 0:
		text += fmt.Sprintf(" cost %s more than was saved so far", usd(-all.Saved))
	default:
		text += fmt.Sprintf(" saved %s of %s", usd(all.Saved), usd(stats.Cost+all.Saved))
	}
	return text + "."
}

// filled is the size of the last sent view, with the window.
func (c *Evidence) filled() string {
	if c.Window <= 0 {
		return size.Short(c.Tokens) + " tokens"
	}
	return fmt.Sprintf("%s of %s tokens", size.Short(c.Tokens), size.Short(c.Window))
}

func (m *Mode) row() modeRow {
	r := modeRow{Mode: *m, Title: "All modes", Expected: "–", Measured: "–", Share: "–", Worth: "–"}
	if m.Mode != "" {
		r.Title = "Mode " + m.Mode
	}
	if m.Observed {
		r.Title += ", only observed"
	}
	if m.Predicted > 0 {
		r.Expected = strconv.FormatFloat(m.Predicted, 'f', 1, 64)
	}
	if m.PaidAfter > 0 {
		r.Measured = strconv.FormatFloat(m.PaidAfter, 'f', 1, 64)
	}
	if priced := m.Epochs - m.Unpriced; priced > 0 {
		r.Share, r.Worth = fmt.Sprintf("%d of %d", m.Paid, priced), worth(m.Saved, m.Observed)
	}
	return r
}

func (w *Watch) conversation(id string) any {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.find(id)
	if c == nil {
		return nil
	}
	p := &conversationPage{base: w.base("Conversation of "+agentName(c.Agent), "epochs", "Epochs"), C: c, Curve: c.curve(""), Money: c.money()}
	for i, e := range slices.Backward(c.Epochs) {
		n := i + 1
		p.Rows = append(p.Rows, w.row(e, c.ID, n))
		p.Epochs = append(p.Epochs, epochDetail{epochRow: p.Rows[len(p.Rows)-1], N: n, ID: "epoch-" + strconv.Itoa(n)})
	}
	return p
}

func (w *Watch) base(title string, sections ...string) base {
	b := base{Title: title, Root: w.links, Version: w.changes}
	for s := range slices.Chunk(sections, 2) {
		b.Sections = append(b.Sections, section{s[0], s[1]})
	}
	return b
}

func (w *Watch) row(e *Epoch, conversation string, n int) epochRow {
	r := epochRow{
		Epoch: e, Link: fmt.Sprintf("%sconversations/%s#epoch-%d", w.links, conversation, n), Mode: cmp.Or(e.Mode, "–"), By: cmp.Or(e.Provider, "–"),
		Expected: "–", Paid: "not yet", Saved: worth(e.Saved, e.Observed),
	}
	if e.Turns > 0 {
		r.Expected = strconv.FormatFloat(e.Turns, 'f', 1, 64)
	}
	if e.PaidAt > 0 {
		r.Paid = strconv.Itoa(e.PaidAt)
	}
	if e.Unpriced {
		r.Paid, r.Saved = "–", "–"
	}
	return r
}

// agentName returns the name of an agent for a sentence.
func agentName(name string) string {
	if name == "" || name == agents.Any().Name {
		return "an unknown agent"
	}
	return name
}

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 0, 64) + "\u00a0%" } //nolint:mnd // percent

// worth formats actual or hypothetical savings.
func worth(saved float64, observed bool) string {
	if observed {
		return "would be " + usd(saved)
	}
	return usd(saved)
}

func usd(v float64) string {
	digits := 2
	if v != 0 && v > -1 && v < 1 {
		digits = 4
	}
	return size.Dollars(v, digits)
}
