package value

import (
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// listLeft writes, for an agent that cannot recall, the files that hidden calls read and that were not changed since, in at most room
// tokens. It returns the tokens of the list.
func (pre *preface) listLeft(hidden []bool, room int) float64 {
	names := slices.DeleteFunc(slices.Clone(pre.r.c.left), func(line string) bool { return unitRef().MatchString(line) })
	names = pre.r.unchanged(append(names, pre.r.leftFiles(hidden)...))
	for n := len(names); n > 0; n = n * 9 / 10 { // every second, third and so on if there are too many
		some := make([]string, n)
		for i := range some {
			some[i] = names[i*len(names)/n]
		}
		text := " " + leftPaths + "\n" + strings.Join(some, "\n")
		if size := pre.r.o.Counter.Count(core.Text(UsualMark + text + "\n")); size <= room {
			pre.left = text
			return float64(size)
		}
	}
	return 0
}

// leftFiles returns the files, with lines, that calls in hidden messages read.
func (r *reading) leftFiles(hidden []bool) []string {
	reads := map[string]dialog.File{} // by call
	var out []string
	for i := range r.messages {
		for j, p := range r.messages[i].Parts {
			switch p := p.(type) {
			case core.ToolCall:
				if info := dialog.ParseCall(p.Name, p.Args); info.Family == dialog.FamilyRead && len(info.Files) == 1 && info.Files[0].Range != dialog.SeveralRanges {
					reads[p.ID] = info.Files[0]
				}
			case core.ToolResult:
				f, ok := reads[p.CallID]
				r, _ := r.o.Original(&r.messages[i], j).(core.ToolResult)
				if !ok || !hidden[i] || p.IsError || len(r.Content) != 1 || strings.ContainsAny(f.Path, " \t\n") {
					continue
				}
				t, _ := r.Content[0].(core.Text)
				first := max(f.Range.First, 1)
				last := max(f.Range.Last, first+strings.Count(strings.TrimRight(string(t), "\n"), "\n"))
				name := core.Label(f.Path) + ":" + strconv.Itoa(first) + "-" + strconv.Itoa(last)
				if !slices.Contains(out, name) {
					out = append(out, name)
				}
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	return out
}

// unchanged returns the names of files with lines that were only read since, never named by another call.
func (r *reading) unchanged(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		path, _, _ := strings.Cut(name, ":")
		base := path[strings.LastIndexByte(path, '/')+1:]
		changed := false
		for i := range r.messages {
			for _, p := range r.messages[i].Parts {
				c, ok := p.(core.ToolCall)
				if !ok || !strings.Contains(c.Args, base) {
					continue
				}
				if info := dialog.ParseCall(c.Name, c.Args); info.Family != dialog.FamilyRead {
					changed = true // it may have been read again since: then it is omitted without need
				}
			}
		}
		return changed
	})
}
