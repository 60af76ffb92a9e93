package compare

import (
	"strings"

	"github.com/condensehq/condense/compare/retention"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// origins returns who wrote the parts of m, where the format does not say it.
func origins(talk *dialog.AuthorReader, m *core.Message) []retention.Origin {
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

// originOf returns who wrote a part that is made of segments: unknown if a person wrote any of it.
func originOf(segments []dialog.Segment) retention.Origin {
	o := retention.OriginUnknown
	for _, s := range segments {
		switch {
		case strings.TrimSpace(s.Text) == "":
		case s.Kind == dialog.KindUser:
			return retention.OriginUnknown
		case s.Kind == dialog.KindInjected || s.Kind == dialog.KindEnvironment || s.Kind == dialog.KindProjectRules:
			if o == retention.OriginUnknown {
				o = retention.OriginInjected
			}
		default:
			o = retention.OriginTool
		}
	}
	return o
}
