package score

import "strings"

// Roo-Code and Cline, without native tools, have the model write a call as XML in its text,
// and answer in text of the user's:
//
//	<write_to_file><path>a.go</path><content>…</content></write_to_file>
//	[write_to_file for 'a.go'] Result: …

var (
	writeTags = []string{"write_to_file", "apply_diff", "replace_in_file", "insert_content", "search_and_replace", "edit_file", "search_replace"}
	readTags  = []string{"read_file"}
)

// written calls wrote with every file that text, of the agent, writes to, and what it
// writes, and read with every one that it reads.
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

// withoutTags returns text without lines that are nothing but a tag or a path.
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

// pathName returns the unit of a path.
func pathName(path string) (uint64, bool) {
	units := appendUnits(nil, strings.TrimSpace(path))
	if len(units) == 0 {
		return 0, false
	}
	return units[len(units)-1].hash, true
}
