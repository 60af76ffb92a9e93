package outline

import "strings"

// scanMarkdown finds headings. A section lasts until the next heading of its level or
// above. Fenced code has no headings.
func scanMarkdown(_ *language, src string) []Definition {
	var defs []Definition
	var open []int // indexes of the sections around
	var levels []int
	line, last := 0, 0
	fence := ""
	var prev string // the line before, if it can be the text of a heading
	closeTo := func(level, end int) {
		for len(open) > 0 && levels[len(levels)-1] >= level {
			defs[open[len(open)-1]].End = end
			open, levels = open[:len(open)-1], levels[:len(levels)-1]
		}
	}
	begin := func(name string, level, start int) {
		closeTo(level, start-1)
		defs = append(defs, Definition{Name: name, Kind: "heading", Start: start, Depth: len(open)})
		open, levels = append(open, len(defs)-1), append(levels, level)
	}
	frontMatter := strings.HasPrefix(src, "---\n") || strings.HasPrefix(src, "---\r\n")
	for text := range strings.Lines(src) {
		line++
		text = strings.TrimRight(text, " \t\r\n")
		if text != "" {
			last = line
		}
		bare := strings.TrimLeft(text, " ")
		indented := len(text)-len(bare) > 3
		if frontMatter {
			frontMatter = line == 1 || text != "---"
			continue
		}
		if fence != "" {
			if !indented && strings.HasPrefix(bare, fence) && strings.Trim(bare, fence[:1]) == "" {
				fence = ""
			}
			continue
		}
		before := prev
		prev = ""
		if indented || bare == "" {
			continue
		}
		if f := fenceOf(bare); f != "" {
			fence = f
			continue
		}
		if level := len(bare) - len(strings.TrimLeft(bare, "#")); level > 0 && level <= 6 {
			if name := bare[level:]; name == "" || name[0] == ' ' || name[0] == '\t' {
				name = strings.TrimSpace(name)
				if t := strings.TrimRight(name, "#"); t == "" || strings.HasSuffix(t, " ") {
					name = strings.TrimSpace(t)
				}
				begin(name, level, line)
				continue
			}
		}
		if before != "" {
			if strings.Trim(bare, "=") == "" {
				begin(before, 1, line-1)
				continue
			}
			if strings.Trim(bare, "-") == "" {
				begin(before, 2, line-1)
				continue
			}
		}
		if !ordered(bare) && (strings.IndexByte(">-*+|<", bare[0]) < 0 || strings.HasPrefix(bare, "**")) {
			prev = bare
		}
	}
	closeTo(0, last)
	for i := range defs {
		d := &defs[i]
		d.End = max(d.End, d.Start)
		d.Body = d.Start + 1
	}
	return nest(defs)
}

// ordered reports whether a line begins an item of an ordered list.
func ordered(s string) bool {
	k := 0
	for k < len(s) && k < 9 && isDigit(s[k]) {
		k++
	}
	return k > 0 && len(s) > k+1 && (s[k] == '.' || s[k] == ')') && s[k+1] == ' '
}

// fenceOf is the fence that a line of Markdown begins with, or "".
func fenceOf(s string) string {
	if c := s[0]; c == '`' || c == '~' {
		k := 0
		for k < len(s) && s[k] == c {
			k++
		}
		if k >= 3 && (c == '~' || strings.IndexByte(s[k:], '`') < 0) {
			return s[:k]
		}
	}
	return ""
}
