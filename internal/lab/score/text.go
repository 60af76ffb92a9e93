package score

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
)

// blocks calls yield with every text of parts, as a model would read it, and the index of the part. The text
// of a tool call is its name and its arguments.
func blocks(parts []core.Part, yield func(part int, text string)) {
	for i, p := range parts {
		switch p := p.(type) {
		case core.Text:
			yield(i, string(p))
		case core.ToolCall:
			yield(i, p.Name+"\n"+p.Args)
		case core.ToolResult:
			for _, c := range p.Content {
				switch c := c.(type) {
				case core.Text:
					yield(i, string(c))
				case core.Opaque:
					yield(i, c.JSON)
				case core.ToolCall, core.ToolResult, core.Image, core.Reasoning:
				}
			}
		case core.Reasoning:
			yield(i, p.Text)
		case core.Opaque:
			yield(i, p.JSON)
		case core.Image:
		}
	}
}

// longLine is the length in bytes above which a line is read as several: a page of prose without a newline
// should not be kept or lost as a whole.
const longLine = 400

// lines calls yield with every line of text that is not empty. JSON on one line is read as one line per
// value, a long line as several.
func lines(text string, yield func(line string)) {
	for line := range strings.SplitSeq(text, "\n") {
		if at, ok := jsonIn(line); ok {
			if head := strings.TrimSpace(line[:at]); head != "" {
				yield(head)
			}
			flatten(line[at:], func(value string) { lines(value, yield) })
			continue
		}
		split(line, yield)
	}
}

// jsonIn returns the index of the JSON object or array at the end of line.
func jsonIn(line string) (int, bool) {
	end := strings.TrimRight(line, " \r\t")
	if len(end) < 8 || end[len(end)-1] != '}' && end[len(end)-1] != ']' {
		return 0, false
	}
	at := strings.IndexAny(end, "{[")
	if at < 0 || strings.IndexByte(end[at:], '"') < 0 || !json.Valid([]byte(end[at:])) {
		return 0, false
	}
	return at, true
}

// flatten yields the scalar values of the JSON in s, each with its key.
func flatten(s string, yield func(string)) {
	for key, leaf := range rawjson.Leaves([]byte(s)) {
		value := string(leaf)
		switch {
		case rawjson.IsObject(leaf), rawjson.IsArray(leaf):
			continue
		case rawjson.IsString(leaf):
			value = rawjson.Unquote(leaf)
		}
		if key != nil {
			value = string(key) + ": " + value
		}
		yield(value)
	}
}

// split yields line, or its pieces if it is long. It splits at escaped newlines, else after a sentence, a
// clause or a word.
func split(line string, yield func(string)) {
	const least, most = 160, 320 // bytes of a piece
	for len(line) > longLine {
		if i := strings.Index(line[:most], `\n`); i >= 0 {
			yield(line[:i])
			line = line[i+2:]
			continue
		}
		cut := -1
		for i := least; i < most; i++ {
			if c := line[i-1]; c == '.' && line[i] == ' ' || c == ';' || c == '>' {
				cut = i
				break
			}
		}
		if cut < 0 {
			for i := least; i < most; i++ {
				if c := line[i-1]; c == ' ' || c == ',' {
					cut = i
					break
				}
			}
		}
		if cut < 0 {
			cut = most
			for cut > least && !utf8.RuneStart(line[cut]) {
				cut--
			}
		}
		yield(line[:cut])
		line = line[cut:]
	}
	if line != "" {
		yield(line)
	}
}

// keys returns the keys of the JSON object s.
func keys(s string) (out []string) {
	for key := range rawjson.Fields([]byte(s)) {
		out = append(out, string(key))
	}
	return out
}

// sentences calls yield with every sentence of line. A sentence ends with a full stop, an exclamation mark
// or a question mark before a space, or with the line.
func sentences(line string, yield func(start, end int)) {
	start := 0
	for i := range len(line) {
		if c := line[i]; (c == '.' || c == '!' || c == '?') && (i+1 == len(line) || line[i+1] == ' ') {
			yield(start, i+1)
			start = i + 1
		}
	}
	if start < len(line) {
		yield(start, len(line))
	}
}
