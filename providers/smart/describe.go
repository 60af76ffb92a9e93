package smart

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Describe writes the presets and the passes, with their settings and sources, in Markdown:
// the generated parts of docs/smart.md, which come from the tables that the code runs on.
func Describe() (presetsDoc, passesDoc string) {
	var b strings.Builder
	b.WriteString("| preset | what it does | passes | source |\n|---|---|---|---|\n")
	for _, p := range presets {
		land := ""
		if p.land != 1 {
			land = fmt.Sprintf("; `land` %v", p.land)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s%s | %s |\n", p.name, p.doc, listed(p.passes), land, orOwn(p.source))
	}
	presetsDoc = b.String()
	b.Reset()
	for _, p := range passes() {
		fmt.Fprintf(&b, "### `%s` (%s)\n\n%s", p.name, p.class, p.Doc)
		if p.source != "" {
			fmt.Fprintf(&b, " Source: %s.", p.source)
		}
		b.WriteString("\n\n")
		if settings := p.Settings(); len(settings) > 0 {
			b.WriteString("| setting | default | |\n|---|---|---|\n")
			for _, s := range settings {
				doc := s.Doc
				if len(s.Enum) > 0 {
					doc = strings.Join(s.Enum, ", ") + ". " + doc
				}
				fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", s.Name, s.Default, doc)
			}
			b.WriteString("\n")
		}
	}
	return presetsDoc, strings.TrimSuffix(b.String(), "\n")
}

// listed writes a list of passes: names, with the settings that are not the defaults.
func listed(list []PassConfig) string {
	var out []string
	for _, p := range list {
		s := "`" + p.Pass
		var settings map[string]json.RawMessage
		if json.Unmarshal(p.Settings, &settings) == nil && len(settings) > 0 {
			s += " " + string(p.Settings)
		}
		out = append(out, s+"`")
	}
	return strings.Join(out, ", ")
}

func orOwn(source string) string {
	if source == "" {
		return "our own"
	}
	return source
}
