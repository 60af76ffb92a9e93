package report

import (
	"bytes"
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
	"time"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/tokens"
)

// Options adjust a page. A nil pointer and the zero value of every field mean the defaults.
type Options struct {
	// Title of the page; default what it is.
	Title string
	// Command that made the comparison, to be shown; default none.
	Command string
	// Made is when the page was made; the zero time is not shown, and then the same input
	// gives the same page, byte for byte.
	Made time.Time
	// MaxText is how many bytes the text of sessions may add to the page, compressed;
	// default 12 MiB, below zero none. Sessions that do not fit are left out whole, and the
	// page says so.
	MaxText int
	// MaxRows is how many rows the page may hold for the way from a number to its sessions;
	// default 60,000. Beyond, whole sessions are left out, and the page says so. The means
	// are always those of all rows.
	MaxRows int
}

func (o *Options) settled() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.MaxText == 0 {
		out.MaxText = 12 << 20
	}
	if out.MaxRows <= 0 {
		out.MaxRows = 60_000
	}
	return out
}

// Write writes r as a self-contained page. Details, which [lab.Examine] returns, are
// the rows whose messages a reader can look at; each must be of a row of r, and they may
// hold text that its readers may not see. [Choose] says which are worth it.
func Write(w io.Writer, r *lab.Report, details []*lab.Detail, opts *Options) error {
	o := opts.settled()
	r = cleaned(r)
	keep := map[string]bool{}
	for _, d := range details {
		keep[visible(d.Row.Session)] = true
	}
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
	if err := templates.ExecuteTemplate(w, "report.html", p); err != nil {
		return fmt.Errorf("html report: %w", err)
	}
	return nil
}

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"visible": visible, "thousands": thousands, "line": line, "mode": modeName, "unit": unitOf, "kind": kindName, "item": item,
}).ParseFS(templateFiles, "templates/*.html"))

type rowKey struct{ strategy, budget, session, cut string }

func keyOf(r *lab.Row) rowKey {
	return rowKey{visible(r.Strategy), r.Budget, visible(r.Session), visible(r.Cut)}
}

// rowIndex returns where in the page the rows of r are; -1 if they are left out.
func rowIndex(d *data, r *lab.Report) map[rowKey]int {
	present := map[string]bool{}
	for _, s := range d.Rows.Session {
		present[r.Sessions[s].Name] = true
	}
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
	return fmt.Errorf("html report: the detail of %s at cut %q of %s under budget %s is of no row of the report",
		r.Strategy, r.Cut, r.Session, r.Budget)
}

func blockID(i int) string { return "text-" + strconv.Itoa(i) }

// unitOf returns what a column's head has to say of its unit.
func unitOf(m *lab.Measure) string {
	if m.Unit == "share" || strings.Contains(m.Title, m.Unit) {
		return ""
	}
	return m.Unit
}

// kindName returns how a page calls a kind; so does web/src/scopes.js.
func kindName(k tokens.Kind) string {
	switch k {
	case tokens.KindToolCall:
		return "tool calls"
	case tokens.KindToolResult:
		return "tool results"
	case tokens.KindImage:
		return "images"
	case tokens.KindSystem, tokens.KindUser, tokens.KindAssistant, tokens.KindReasoning, tokens.KindSummary:
	}
	return string(k)
}

func modeName(m string) string {
	if m == "" {
		return "all modes"
	}
	return visible(m)
}

//go:embed assets/report.js
var script string

//go:embed assets/report.css
var style string

//go:embed assets/NOTICE.txt
var notice string

//go:embed templates/*.html
var templateFiles embed.FS

// policy returns the content security policy of a page: nothing may be loaded, nothing but
// our script may run. Styles are inline, as the plots set some; without a source to load
// from they can carry nothing out.
func policy() string {
	sum := sha256.Sum256([]byte(script))
	return "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
}

// block returns an element that holds v for the script, compressed: base64 cannot end an
// element early, whatever text is in v. Its second result is how many bytes it adds to the page.
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
