package compare

import (
	"regexp"
	"strings"

	"github.com/condensehq/condense/compare/retention"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/author"
)

// slug is how Roo-Code and its kin tell the model its mode.
var slug = regexp.MustCompile(`<slug>([\w-]{1,40})</slug>`)

// modeOf returns the mode that most messages name; empty if none does.
func modeOf(messages []core.Message) string {
	count := map[string]int{}
	best := ""
	for i := range messages {
		if messages[i].Role != core.RoleUser {
			continue
		}
		for _, p := range messages[i].Parts {
			t, ok := p.(core.Text)
			if !ok || !strings.Contains(string(t), "<slug>") {
				continue
			}
			for _, m := range slug.FindAllStringSubmatch(string(t), -1) {
				if count[m[1]]++; best == "" || count[m[1]] > count[best] {
					best = m[1]
				}
			}
		}
	}
	return best
}

// origins returns who wrote the parts of m, where the format does not say it.
func origins(talk *author.Reader, m *core.Message) []retention.Origin {
	if m.Role != core.RoleUser {
		return nil
	}
	out := make([]retention.Origin, len(m.Parts))
	found := false
	for i, segments := range talk.Message(m) {
		out[i] = originOf(segments)
		found = found || out[i] != retention.OriginUnknown
	}
	if !found {
		return nil
	}
	return out
}

// originOf returns who wrote a part that is made of segments: nobody else if a person did.
func originOf(segments []author.Segment) retention.Origin {
	o := retention.OriginUnknown
	for _, s := range segments {
		switch {
		case strings.TrimSpace(s.Text) == "":
		case s.By == author.Person:
			return retention.OriginUnknown
		case s.By == author.Program || s.By == author.Surroundings || s.By == author.Standing:
			if o == retention.OriginUnknown {
				o = retention.OriginInjected
			}
		default:
			o = retention.OriginTool
		}
	}
	return o
}
