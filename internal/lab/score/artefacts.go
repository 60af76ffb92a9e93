package score

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
)

// An artefact is a file that the agent touched before the cut.
type artefact struct {
	name  uint64   // unit of its path
	lines []uint64 // that the last call for it wrote or read
}

// writeRoles are the roles of parameters of calls that write.
const writeRoles = toolcall.Old | toolcall.New | toolcall.Whole | toolcall.Patch | toolcall.Edits

// readArtefacts adds the files that were touched before the cut, with the text that the last call for each wrote or
// read.
func (s *Scorer) readArtefacts() {
	last := map[uint64]artefact{}
	var order []uint64
	reads := map[string]uint64{} // calls that read a file
	touch := func(a artefact) {
		if _, ok := last[a.name]; !ok {
			order = append(order, a.name)
		}
		last[a.name] = a
	}
	var pending []uint64 // files that a call in XML reads
	for i, m := range s.cut.Prefix() {
		answer := m.Role == core.RoleUser && len(pending) == 1
		var answered []uint64
		for k, p := range m.Parts {
			switch p := p.(type) {
			case core.ToolCall:
				name, text, ok := touched(p.Args)
				if !ok {
					continue
				}
				if text != "" {
					touch(artefact{name: name, lines: hashes(text)})
				} else {
					reads[p.ID] = name
				}
			case core.ToolResult:
				name, ok := reads[p.CallID]
				if !ok || p.IsError {
					continue
				}
				var lines []uint64
				for _, c := range p.Content {
					if t, ok := c.(core.Text); ok {
						lines = append(lines, hashes(string(t))...)
					}
				}
				touch(artefact{name: name, lines: lines})
			case core.Text:
				switch s.cut.Session.Origin(i, k) {
				case OriginAgent:
					pending = pending[:0]
					written(string(p), func(name uint64, text string) { touch(artefact{name: name, lines: hashes(text)}) },
						func(name uint64) { pending = append(pending, name) })
				case OriginTool:
					if answer {
						answered = append(answered, hashes(string(p))...)
					}
				case OriginUnknown, OriginUser, OriginInjected:
				}
			case core.Image, core.Reasoning, core.Opaque:
			}
		}
		if answer && len(answered) > 0 {
			touch(artefact{name: pending[0], lines: answered})
			pending = pending[:0]
		}
	}
	s.artefacts = append(s.artefacts, plain.Each(order, func(name uint64) artefact { return last[name] })...)
}

func (s *Scorer) artefactNames() map[uint64]bool {
	return plain.Set(plain.Each(s.artefacts, func(a artefact) uint64 { return a.name }))
}

// touched returns the file of a call with these arguments and the text that the call writes, which is empty
// for other calls. It returns false if the call has no file.
func touched(args string) (name uint64, text string, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &fields) != nil {
		return 0, "", false
	}
	if path := toolcall.First([]byte(args), toolcall.Path); path != "" {
		name, ok = pathName(path)
	}
	if !ok {
		return 0, "", false
	}
	var out []string
	for v := range toolcall.Values([]byte(args), writeRoles&^toolcall.Old) {
		text := rawjson.Text(v)
		if !rawjson.IsString(v) {
			text = string(v)
		}
		out = append(out, text)
	}
	return name, strings.Join(out, "\n"), true
}

func hashes(text string) []uint64 {
	var out []uint64
	lines(text, func(line string) {
		if h := lineHash(line); h != 0 {
			out = append(out, h)
		}
	})
	return out
}

// errorLine matches a line that reports an error in the output of common toolchains.
var errorLine = plain.Pattern(`(?i)^\s*(error|fatal|panic|fail|failed|exception|traceback|undefined|cannot)\b|\b(error|exception|panic|fatal)( ?\[[a-z0-9]+\])?:|^\s*(--- FAIL|FAIL\b|E   |✗|✘|×)|\w+(Error|Exception)\b`)

// errorHints are texts, one of which occurs in every match of errorLine. Looking for them first is faster.
var errorHints = []string{"rror", "RROR", "ail", "AIL", "anic", "ANIC", "atal", "ATAL", "xception", "raceback", "ndefined", "annot", "E   ", "✗", "✘", "×"}

func reportsFault(line string) bool {
	for _, h := range errorHints {
		if strings.Contains(line, h) {
			return errorLine().MatchString(line)
		}
	}
	return false
}

// errorsMost is the maximum number of error lines of a prefix.
const errorsMost = 200

// readErrors adds the newest lines of tool results that report an error.
func (s *Scorer) readErrors() {
	seen := map[uint64]bool{}
	for _, m := range slices.Backward(s.cut.Prefix()) {
		for _, p := range m.Parts {
			r, ok := p.(core.ToolResult)
			if !ok {
				continue
			}
			first := r.IsError
			blocks([]core.Part{r}, func(_ int, text string) {
				lines(text, func(line string) {
					h := lineHash(line)
					if h == 0 || seen[h] || len(s.errors) >= errorsMost {
						return
					}
					if first || reportsFault(line) {
						seen[h] = true
						s.errors = append(s.errors, h)
					}
					first = false
				})
			})
		}
	}
}

// keptLines returns the shares of artefacts and of errors that a view with these lines and paths has.
func (s *Scorer) keptLines(lines, names map[uint64]struct{}) (artefacts, errors Share) {
	for _, a := range s.artefacts {
		artefacts.Needed++
		_, named := names[a.name]
		if named {
			artefacts.Kept += 0.5
		}
		if len(a.lines) == 0 { // an empty file
			if named {
				artefacts.Kept += 0.5
			}
			continue
		}
		n := 0
		for _, h := range a.lines {
			if _, ok := lines[h]; ok {
				n++
			}
		}
		artefacts.Kept += 0.5 * float64(n) / float64(len(a.lines))
	}
	for _, h := range s.errors {
		errors.Needed++
		if _, ok := lines[h]; ok {
			errors.Kept++
		}
	}
	return artefacts, errors
}

// Without native tools, Roo Code and Cline let the model write calls as XML in its text, and put the
// results into user messages:
//
//	<write_to_file><path>a.go</path><content>…</content></write_to_file>
//	[write_to_file for 'a.go'] Result: …

var (
	writeTags = []string{"write_to_file", "apply_diff", "replace_in_file", "insert_content", "search_and_replace", "edit_file", "search_replace"}
	readTags  = []string{"read_file"}
)

// written parses the XML tool calls in the agent's text. It calls wrote with the file and the content of
// every write, and read with the file of every read.
func written(text string, wrote func(name uint64, text string), read func(name uint64)) {
	if !strings.Contains(text, "<path>") {
		return
	}
	for _, tag := range writeTags {
		elements(text, tag, func(inner string) {
			if path, ok := element(inner, "path"); ok {
				if name, ok := pathName(path); ok {
					wrote(name, withoutTags(inner))
				}
			}
		})
	}
	for _, tag := range readTags {
		elements(text, tag, func(inner string) {
			elements(inner, "path", func(path string) {
				if name, ok := pathName(path); ok {
					read(name)
				}
			})
		})
	}
}

// elements calls yield with the content of every element of text with that tag.
func elements(text, tag string, yield func(string)) {
	for {
		_, rest, ok := strings.Cut(text, "<"+tag+">")
		if !ok {
			return
		}
		inner, after, ok := strings.Cut(rest, "</"+tag+">")
		if !ok {
			return
		}
		yield(inner)
		text = after
	}
}

// element returns the content of the first element with that tag.
func element(text, tag string) (string, bool) {
	out, found := "", false
	elements(text, tag, func(inner string) {
		if !found {
			out, found = inner, true
		}
	})
	return out, found
}

// withoutTags returns text without the lines that have only a tag or a path.
func withoutTags(text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		t := strings.TrimSpace(line)
		if strings.HasPrefix(t, "<") && strings.HasSuffix(t, ">") && (strings.Count(t, "<") == 1 || strings.HasPrefix(t, "<path>")) {
			continue
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// pathName returns the hash of the unit of a path.
func pathName(path string) (uint64, bool) {
	units := appendUnits(nil, strings.TrimSpace(path))
	if len(units) == 0 {
		return 0, false
	}
	return units[len(units)-1].hash, true
}
