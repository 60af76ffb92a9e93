package smart

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// minArgument is the size in bytes up to which an argument of a call is left alone: a stub
// is about as long.
const minArgument = 200

// shortenCall replaces the long arguments of the call in segment i by stubs, after the first keep bytes of each.
// Where locates the content, or a newer version of it.
func (w *work) shortenCall(i, keep int, where string) {
	p := &w.segments[i]
	if p.fixed || p.gone || len(p.text) < minArgument {
		return
	}
	of := ""
	if p.use != nil {
		of = p.use.Name
	}
	shorten := func(s string) (string, bool) {
		if len(s) < keep+minArgument || hasStub(s) {
			return "", false
		}
		cut := keep
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		gaps := []gap{{Span: core.Span{Start: cut, End: len(s)}}}
		wholeTags(s, gaps)
		cut = gaps[0].Start
		return s[:cut] + gaps[0].fill(s, stub{
			lines: dialog.CountLines(s[cut:]), bytes: len(s) - cut, gap: true, of: of, where: where, handle: w.handle(p),
		}), true
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

// mapStrings replaces string values, at any depth of the JSON, and leaves every
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

// stringEnd returns the index after the JSON string that begins at i.
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

// contentElements hold the content that a call in the text protocol writes.
var contentElements = []string{"content", "diff", "result", "message", "arguments", "args", "todos", "operations", "follow_up", "question"}

// mapElement shortens the content of elements that hold text of any length, in a call of the
// text protocol. It uses the first name with an element that f shortens.
func mapElement(call string, f func(string) (string, bool)) (string, bool) {
	elements := dialog.Pairs(call)
	for _, name := range contentElements {
		var out strings.Builder
		from := 0
		for _, e := range outermost(call, elements, name) {
			if short, ok := f(call[e.Open.End:e.Close.Start]); ok {
				out.WriteString(call[from:e.Open.End])
				out.WriteString(short)
				from = e.Close.Start
			}
		}
		if from > 0 {
			out.WriteString(call[from:])
			return out.String(), true
		}
	}
	return "", false
}

// outermost returns the elements called name that are not inside another of that name. If
// there is only one, it extends to the last tag that could end it: its content may mention
// such tags.
func outermost(call string, elements []dialog.Pair, name string) []dialog.Pair {
	var out []dialog.Pair
	for _, e := range slices.Backward(elements) { // by their ends, so outer ones come first
		if e.Name == name && (len(out) == 0 || e.Close.End <= out[len(out)-1].Open.Start) {
			out = append(out, e)
		}
	}
	slices.Reverse(out)
	if len(out) == 1 {
		end := "</" + name + ">"
		if i := strings.LastIndex(call, end); i > out[0].Close.Start {
			out[0].Close = core.Span{Start: i, End: i + len(end)}
		}
	}
	return out
}
