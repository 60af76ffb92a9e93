package lab

import (
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/lab/score"
)

// origins returns who wrote the parts of m, where the format does not say it.
func origins(talk *dialog.AuthorReader, m *core.Message) []score.Origin {
	if m.Role != core.RoleUser {
		return nil
	}
	out := make([]score.Origin, len(m.Parts))
	found := false
	for i, segments := range talk.Message(m) {
		out[i] = originOf(segments)
		found = found || out[i] != score.OriginUnknown
	}
	if !found {
		return nil
	}
	return out
}

// originOf returns who wrote a part that is made of segments: unknown if a person wrote any of it.
func originOf(segments []dialog.Segment) score.Origin {
	o := score.OriginUnknown
	for _, s := range segments {
		switch {
		case strings.TrimSpace(s.Text) == "":
		case s.Kind == dialog.KindUser:
			return score.OriginUnknown
		case s.Kind == dialog.KindInjected || s.Kind == dialog.KindEnvironment || s.Kind == dialog.KindProjectRules:
			if o == score.OriginUnknown {
				o = score.OriginInjected
			}
		default:
			o = score.OriginTool
		}
	}
	return o
}
