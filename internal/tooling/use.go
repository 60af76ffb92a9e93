package tooling

import (
	"cmp"
	"encoding/json"
	"path"
	"strconv"
	"strings"
)

// A Range is a run of lines: First to Last, counted from 1, both included. The zero value
// means the whole file; Last is 0 if the run goes on to its end.
type Range struct{ First, Last int }

// Several stands for more than one run: it covers nothing, and only the whole covers it.
var Several = Range{-1, -1}

// Whole reports whether r is the whole file.
func (r Range) Whole() bool { return r.First <= 1 && r.Last == 0 }

// Covers reports whether every line of s lies in r.
func (r Range) Covers(s Range) bool {
	if r == Several || s == Several {
		return r.Whole() && r != Several
	}
	return max(r.First, 1) <= max(s.First, 1) && (r.Last == 0 || s.Last != 0 && s.Last <= r.Last)
}

// A File is a file that a call is about, and which lines of it.
type File struct {
	Path  string // as the call has it, with slashes and without "./"
	Range Range
}

// A Use is what a call to a tool is about.
type Use struct {
	Family Family
	Files  []File
	// Target is what the call is about, in one word or line: the path, the command, the
	// pattern. Empty if unknown.
	Target string
}

// The keys under which tools take what a call is about, in order of preference.
var (
	pathKeys    = []string{"file_path", "path", "filePath", "filepath", "filename", "file", "target_file", "absolute_path", "notebook_path", "relative_workspace_path", "uri"}
	commandKeys = []string{"command", "cmd", "script", "code", "input", "chars"}
	queryKeys   = []string{"pattern", "query", "regex", "glob", "url", "search_term", "question", "subject", "description", "name", "id"}
)

// Parse returns what a call to the tool called name with these arguments, a JSON object, is
// about. Arguments that are no object say nothing.
func Parse(name, args string) Use {
	u := Use{Family: FamilyOf(name)}
	var a map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &a) != nil {
		return u
	}
	get := func(keys []string) string {
		for _, k := range keys {
			if s := text(a[k]); s != "" {
				return s
			}
		}
		return ""
	}
	u.Family = refine(u.Family, text(a["command"]))
	file := get(pathKeys)
	if file != "" {
		u.Files = append(u.Files, File{Clean(file), ranges(a)})
	}
	var files []map[string]json.RawMessage
	if raw, ok := a["files"]; ok && json.Unmarshal(raw, &files) == nil {
		for _, f := range files {
			if p := text(f["path"]); p != "" {
				u.Files = append(u.Files, File{Clean(p), ranges(f)})
			}
		}
	}
	switch u.Family {
	case Command:
		u.Target = get(commandKeys)
	case Search, Web:
		u.Target = get(queryKeys)
	case Unknown, Read, Write, Edit, List, Plan, Ask, Delegate, Done:
	}
	if u.Target == "" && len(u.Files) > 0 {
		u.Target = u.Files[0].Path
	}
	if u.Target == "" {
		u.Target = cmp.Or(get(commandKeys), get(queryKeys))
	}
	return u
}

// refine tells the editors apart whose one tool reads, writes and edits.
func refine(f Family, command string) Family {
	if f != Edit {
		return f
	}
	switch command {
	case "view":
		return Read
	case "create":
		return Write
	}
	return f
}

// ranges reads the lines that a call asks for. Agents say them in one of five ways.
func ranges(a map[string]json.RawMessage) Range {
	if s := text(a["line_range"]); s != "" {
		return ParseRange(s)
	}
	for _, k := range []string{"view_range", "line_ranges", "lineRanges"} {
		raw, ok := a[k]
		if !ok {
			continue
		}
		var pair []json.RawMessage
		if json.Unmarshal(raw, &pair) != nil || len(pair) == 0 {
			continue
		}
		if len(pair) == 2 && number(pair[0]) != 0 {
			return Range{number(pair[0]), max(number(pair[1]), 0)}
		}
		if len(pair) == 1 {
			var inner []json.RawMessage
			if s := text(pair[0]); s != "" {
				return ParseRange(s)
			}
			if json.Unmarshal(pair[0], &inner) == nil && len(inner) == 2 {
				return Range{number(inner[0]), max(number(inner[1]), 0)}
			}
		}
		return Several
	}
	for _, k := range [][2]string{{"start_line", "end_line"}, {"startLine", "endLine"}, {"start_line_one_indexed", "end_line_one_indexed_inclusive"}} {
		if r := (Range{number(a[k[0]]), number(a[k[1]])}); r != (Range{}) {
			return r
		}
	}
	offset, limit := number(a["offset"]), number(a["limit"])
	if offset == 0 && limit == 0 {
		return Range{}
	}
	first := max(offset, 1)
	if limit <= 0 {
		return Range{first, 0}
	}
	return Range{first, first + limit - 1}
}

// ParseRange reads "10-50"; what is not of that form is the whole file.
func ParseRange(s string) Range {
	from, to, ok := strings.Cut(strings.TrimSpace(s), "-")
	if !ok {
		return Range{}
	}
	first, err1 := strconv.Atoi(strings.TrimSpace(from))
	last, err2 := strconv.Atoi(strings.TrimSpace(to))
	if err1 != nil || err2 != nil || first < 0 || last < first {
		return Range{}
	}
	return Range{first, last}
}

// Clean returns the path p as files are compared by: with slashes and without "./".
func Clean(p string) string {
	if strings.Contains(p, "\\") {
		p = strings.ReplaceAll(p, "\\", "/")
	}
	return path.Clean(strings.TrimSpace(p))
}

func text(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// number reads 12 and "12".
func number(raw json.RawMessage) int {
	if len(raw) == 0 {
		return 0
	}
	n, err := strconv.Atoi(strings.Trim(string(raw), `" `))
	if err != nil {
		return 0
	}
	return n
}
