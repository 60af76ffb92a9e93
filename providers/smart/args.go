package smart

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// minArgument is the size in bytes up to which an argument of a call is left alone: a stub
// is about as long.
const minArgument = 200

// shortenCall replaces the long arguments of the call that piece i is by stubs, after the
// first keep bytes of each. Where says what is left where.
func (w *work) shortenCall(i, keep int, where string) {
	p := &w.pieces[i]
	if p.fixed || p.gone || len(p.text) < minArgument {
		return
	}
	of := ""
	if p.use >= 0 {
		of = w.uses[p.use].name
	}
	shorten := func(s string) (string, bool) {
		if len(s) < keep+minArgument || hasStub(s) {
			return "", false
		}
		cut := keep
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		return s[:cut] + stub{
			lines: countLines(s[cut:]), bytes: len(s) - cut, gap: true, of: of, where: where, handle: w.handle(p),
		}.String(), true
	}
	if text, ok := mapStrings(p.text, shorten); ok {
		w.put(i, text)
		return
	}
	if strings.HasPrefix(p.text, "<") {
		if text, ok := mapElement(p.text, shorten); ok {
			w.put(i, text)
		}
	}
}

// mapStrings replaces string values, wherever they stand in the JSON, and leaves every
// other byte as it was. It reports false if nothing was replaced or args is not JSON.
func mapStrings(args string, f func(string) (string, bool)) (string, bool) {
	if len(args) == 0 || args[0] != '{' && args[0] != '[' || !json.Valid([]byte(args)) {
		return "", false
	}
	var out strings.Builder
	from := 0
	for i := 0; i < len(args); i++ {
		if args[i] != '"' {
			continue
		}
		end := stringEnd(args, i)
		if !isKey(args, end) {
			var s string
			if end-i > minArgument && json.Unmarshal([]byte(args[i:end]), &s) == nil {
				if short, ok := f(s); ok {
					out.WriteString(args[from:i])
					out.Write(quote(short))
					from = end
				}
			}
		}
		i = end - 1
	}
	if from == 0 {
		return "", false
	}
	out.WriteString(args[from:])
	return out.String(), true
}

// stringEnd returns the index behind the JSON string that begins at i.
func stringEnd(s string, i int) int {
	for i++; s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// isKey reports whether a colon follows the string that ends at end.
func isKey(s string, end int) bool {
	for ; end < len(s); end++ {
		switch s[end] {
		case ' ', '\t', '\n', '\r':
		default:
			return s[end] == ':'
		}
	}
	return false
}

func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be written
	return bytes.TrimRight(b.Bytes(), "\n")
}

// contentElements hold what a call in the text protocol writes.
var contentElements = []string{"content", "diff", "result", "message", "arguments", "args", "todos", "operations", "follow_up", "question"}

// mapElement replaces what stands in the first element of a call in the text protocol that
// holds text of any length.
func mapElement(call string, f func(string) (string, bool)) (string, bool) {
	for _, name := range contentElements {
		i := strings.Index(call, "<"+name+">")
		if i < 0 {
			continue
		}
		i += len(name) + 2
		j := strings.LastIndex(call, "</"+name+">")
		if j <= i {
			continue
		}
		if short, ok := f(call[i:j]); ok {
			return call[:i] + short + call[j:], true
		}
	}
	return "", false
}
