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
)

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
