package pluginsdk

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// help says what the program is and how it is used.
func (p *program) help(w io.Writer) {
	s := p.strategy
	path, err := os.Executable()
	if err != nil {
		path = p.args[0]
	}
	fmt.Fprintf(w, "%s is a plugin of condense, which shortens conversations with language models.\n\n", filepath.Base(path))
	fmt.Fprintf(w, "%s\n", wrapped(s.Doc, "  "))
	fmt.Fprintf(w, "It does nothing by itself: condense starts it. Configure it in condense.yaml:\n\n")
	fmt.Fprintf(w, "  providers:\n    %s:\n      plugin: %s\n", s.Name, path)
	settings := s.Settings()
	if len(settings) > 0 {
		fmt.Fprintf(w, "      settings:\n")
		for _, set := range settings {
			fmt.Fprintf(w, "        %s: %s\n", set.Name, set.Default)
		}
		fmt.Fprintf(w, "\nSettings, with their defaults:\n\n")
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, set := range settings {
			doc := set.Doc
			if len(set.Enum) > 0 {
				doc = strings.TrimSpace(doc + " One of " + strings.Join(set.Enum, ", ") + ".")
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", set.Name, set.Type, set.Default, doc)
		}
		_ = t.Flush()
	}
	fmt.Fprintf(w, "\nTest it with     condense plugin test %s\n", path)
	fmt.Fprintf(w, "Debug it with    %s -debug    which prints what to give to condense\n", path)
}

// wrapped returns the paragraphs of text in lines of at most 78 characters.
func wrapped(text, indent string) string {
	const width = 78
	var b strings.Builder
	for para := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		line := indent
		for word := range strings.FieldsSeq(para) {
			if len(line)+1+len(word) > width && line != indent {
				b.WriteString(line + "\n")
				line = indent
			}
			if line != indent {
				line += " "
			}
			line += word
		}
		b.WriteString(line + "\n\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
