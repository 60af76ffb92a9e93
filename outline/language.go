package outline

import (
	"path"
	"strings"
)

// A language is what the scanners need to know of one.
type language struct {
	exts string // extensions with the dot, separated by spaces
	scan func(*language, string) []Definition
}

var languages = map[string]*language{}

var byExtension = func() map[string]string {
	m := make(map[string]string)
	for name, l := range languages {
		for ext := range strings.FieldsSeq(l.exts) {
			m[ext] = name
		}
	}
	return m
}()

// Language names the language of a file, in lower case ("go", "csharp", "markdown"), by
// the extension of its name. It is "" for files that [Definitions] cannot fold.
func Language(name string) string {
	name = strings.ReplaceAll(name, `\`, "/")
	return byExtension[strings.ToLower(path.Ext(name))]
}
