package smart

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/condensehq/condense/internal/dialog"
)

type layoutSettings struct {
	Terminal bool `json:"terminal" doc:"remove escape sequences of terminals; of overwritten lines keep the last state"`
	Space    bool `json:"space" doc:"remove trailing space, and keep one of several empty lines"`
	JSON     bool `json:"json" doc:"write JSON without indentation; numbers and keys stay unchanged"`
	Matches  bool `json:"matches" doc:"write the path of lines that a search found once, above them, if the text can be put together again exactly"`
}

var layoutPass = define("layout", classLossless, "",
	"Removes what carries no information from tool results: escape sequences, progress bars, trailing space, indentation of JSON, paths that are repeated on every line of a search. Results of reads stay unchanged, because edits quote them.",
	layoutSettings{Terminal: true, Space: true, JSON: true, Matches: true},
	func(_ context.Context, w *work, c layoutSettings) error {
		for i := range w.segments {
			p := &w.segments[i]
			if p.kind != dialog.KindToolResult || p.fixed || p.gone {
				continue
			}
			if p.use.Info.Family == dialog.FamilyRead {
				continue // an edit quotes a file as it is, to the last space
			}
			w.visited(1)
			text := p.text
			if c.JSON {
				if compact, ok := compactJSON(text); ok {
					w.put(i, compact)
					continue
				}
			}
			if c.Terminal {
				text = plainTerminal(text)
			}
			if c.Space {
				text = trimSpace(text)
			}
			if c.Matches {
				if folded, ok := foldMatches(text); ok && w.count(folded) < w.count(text) {
					text = folded
				}
			}
			if text != p.text && strings.TrimSpace(text) != "" {
				w.put(i, text)
			}
		}
		return nil
	})

// compactJSON removes the space between the values of a JSON object or array of several lines.
func compactJSON(s string) (string, bool) {
	t := strings.TrimSpace(s)
	if len(t) < 2 || t[0] != '{' && t[0] != '[' || !strings.Contains(t, "\n") {
		return "", false
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(t)) != nil {
		return "", false
	}
	return b.String(), true
}

// plainTerminal returns the text that a terminal would show after s: without escape sequences (ECMA-48: CSI,
// OSC and the short ones), and of lines that were overwritten after a carriage return the last state.
func plainTerminal(s string) string {
	if strings.IndexByte(s, 0x1b) >= 0 {
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			if s[i] != 0x1b {
				b.WriteByte(s[i])
				continue
			}
			i = escapeEnd(s, i) - 1
		}
		s = b.String()
	}
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		body, end := strings.TrimRight(line, "\r\n"), ""
		if strings.HasSuffix(line, "\n") {
			end = "\n"
		}
		if i := strings.LastIndexByte(body, '\r'); i >= 0 {
			body = body[i+1:]
		}
		b.WriteString(body + end)
	}
	return b.String()
}

// escapeEnd returns the index after the escape sequence that begins at i.
func escapeEnd(s string, i int) int {
	i++
	if i == len(s) {
		return i
	}
	switch s[i] {
	case '[':
		for i++; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i // not a sequence
			}
		}
		return i
	case ']':
		for i++; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
			if s[i] == '\n' {
				return i
			}
		}
		return i
	case '(', ')', '*', '+', '#':
		return min(i+2, len(s))
	}
	if s[i] >= 0x30 && s[i] <= 0x7e {
		return i + 1
	}
	return i
}

// trimSpace removes the space at the end of lines, and all but one of consecutive empty lines.
func trimSpace(s string) string {
	if !strings.Contains(s, " \n") && !strings.Contains(s, "\t\n") && !strings.Contains(s, "\r\n") && !strings.Contains(s, "\n\n\n") &&
		!strings.HasSuffix(s, " ") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	empty := 0
	for line := range strings.Lines(s) {
		body := strings.TrimRight(line, " \t\r\n")
		if body == "" {
			if empty++; empty > 1 {
				continue
			}
		} else {
			empty = 0
		}
		b.WriteString(body)
		if strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
