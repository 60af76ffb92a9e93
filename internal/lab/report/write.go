package report

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/tokens"
)

// Options adjust a page. A nil pointer and the zero value of every field mean the defaults.
type Options struct {
	// Title of the page; there is a default.
	Title string
	// Command that made the comparison; default none.
	Command string
	// Made is the time of the page. The zero time is not shown, and then the same input gives the same
	// page byte for byte.
	Made time.Time
	// MaxText is the maximum number of bytes that the text of sessions adds to the page, compressed;
	// default 12 MiB, negative for none. Sessions that do not fit are left out completely, and the page
	// says so.
	MaxText int
	// MaxRows is the maximum number of rows in the page, for the links from a number to its sessions; default 60,000.
	// Above it, complete sessions are left out, and the page says so. Means are always over all rows.
	MaxRows int
}

func (o *Options) settled() Options {
	var out Options
	if o != nil {
		out = *o
	}
	out.MaxText = cmp.Or(out.MaxText, 12<<20)
	if out.MaxRows <= 0 {
		out.MaxRows = 60_000
	}
	return out
}

// Write writes r as a self-contained page. Details are rows of r in detail, returned by [lab.Examine], whose messages
// the page shows: [Choose] selects rows for them. They contain text of the sessions.
func Write(w io.Writer, r *lab.Report, details []*lab.Detail, opts *Options) error {
	o := opts.settled()
	r = cleaned(r)
	keep := plain.Set(plain.Each(details, func(d *lab.Detail) string { return Visible(d.Row.Session) }))
	d := newData(r, o.MaxRows, keep)
	text, err := embedDetails(d, r, details, o.MaxText)
	if err != nil {
		return err
	}
	p := newPage(r, d, text, &o)
	if p.Data, _, err = block("data", d); err != nil {
		return err
	}
	p.Blocks = text.elements
	return write(w, "report.html", p)
}

// A head is the data that the templates of all pages need.
type head struct {
	Title, Command, Made string
	Policy               string
	Style                template.CSS
	Script               template.JS
	Notice               string
	Data                 template.HTML
}

// newHead returns the head of a page. Title is the default.
func newHead(title string, o *Options) head {
	h := head{
		Title: cmp.Or(o.Title, title), Command: o.Command, Policy: Policy(), Notice: notice,
		Style: template.CSS(style), Script: template.JS(script), //nolint:gosec // ours
	}
	if !o.Made.IsZero() {
		h.Made = o.Made.Format("2 January 2006, 15:04")
	}
	return h
}

// write fills the template of a page.
func write(w io.Writer, name string, page any) error {
	if err := templates().ExecuteTemplate(w, name, page); err != nil {
		return fmt.Errorf("html report: %w", err)
	}
	return nil
}

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"visible": Visible, "thousands": thousands, "line": line, "mode": modeName, "unit": unitOf, "kind": kindName, "item": item,
	}).ParseFS(templateFiles, "templates/*.html"))
})

type rowKey struct{ strategy, budget, session, cut string }

func keyOf(r *lab.Row) rowKey {
	return rowKey{Visible(r.Strategy), r.Budget, Visible(r.Session), Visible(r.Cut)}
}

// rowIndex returns the indices in the page of the rows of r; -1 for rows that are left out.
func rowIndex(d *data, r *lab.Report) map[rowKey]int {
	present := plain.Set(plain.Each(d.Rows.Session, func(s int) string { return r.Sessions[s].Name }))
	out, n := make(map[rowKey]int, len(r.Rows)), 0
	for i := range r.Rows {
		at := -1
		if present[r.Rows[i].Session] {
			at = n
			n++
		}
		out[keyOf(&r.Rows[i])] = at
	}
	return out
}

func errNoRow(r *lab.Row) error {
	return fmt.Errorf("html report: no row of the report for the detail of %s at cut %q of %s under budget %s",
		r.Strategy, r.Cut, r.Session, r.Budget)
}

func blockID(i int) string { return "text-" + strconv.Itoa(i) }

// unitOf returns the unit for the head of a column, or "" if the title says it.
func unitOf(m *lab.Measure) string {
	if m.Unit == "share" || strings.Contains(m.Title, m.Unit) {
		return ""
	}
	return m.Unit
}

// kindName returns the name of a kind in a page. web/src/scopes.js has the same names.
func kindName(k tokens.Kind) string {
	switch k {
	case tokens.KindToolCall:
		return "tool calls"
	case tokens.KindToolResult:
		return "tool results"
	case tokens.KindImage:
		return "images"
	case tokens.KindProjectRules:
		return "project rules"
	case tokens.KindInjected, tokens.KindEnvironment, tokens.KindSystem, tokens.KindUser, tokens.KindAssistant, tokens.KindReasoning, tokens.KindSummary:
	}
	return string(k)
}

func modeName(m string) string {
	if m == "" {
		return "all modes"
	}
	return Visible(m)
}

//go:embed assets/report.js
var script string

//go:embed assets/report.css
var style string

// Style returns the style sheet of the pages, for others that show the same tables.
func Style() string { return style }

//go:embed assets/NOTICE.txt
var notice string

//go:embed templates/*.html
var templateFiles embed.FS

// Policy returns the content security policy of a page: nothing may be loaded, and only our script may run.
// Inline styles are allowed, as the plots set some. They cannot send data, as nothing may be loaded.
func Policy() string {
	sum := sha256.Sum256([]byte(script))
	return "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
}

// block returns an element with v for the script, compressed, and its size in bytes. Base64 cannot end an
// element early, whatever text is in v.
func block(id string, v any) (template.HTML, int, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b) // the best compression takes three times as long for 1 % less
	e := json.NewEncoder(z)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", 0, err
	}
	if err := z.Close(); err != nil {
		return "", 0, err
	}
	text := fmt.Sprintf("<script type=\"application/gzip\" id=%q>%s</script>\n", id, base64.StdEncoding.EncodeToString(b.Bytes()))
	return template.HTML(text), len(text), nil //nolint:gosec // id is ours and the rest base64
}
