package core

import "strings"

// words checks that what the system and the user said is still what they said.
func (v *verifier) words() {
	for j := range v.req.Messages {
		o := &v.req.Messages[j]
		i := v.kept[j]
		switch {
		case o.Role == RoleSystem && i < 0:
			v.fault(ruleSystem, o.ID, "is hidden")
		case i < 0 || v.same[i]:
		case o.Role == RoleSystem:
			v.fault(ruleSystem, o.ID, "is rewritten")
		case v.out[i].Blank(): // which is a fault of its own
		case o.Role == RoleUser && o.Kind == KindOriginal:
			if !Shortens(joinTexts(o.Parts), joinTexts(v.out[i].Parts), v.req.Originals) {
				v.fault(ruleWords, o.ID, "has words that are not the user's, or lacks some without a mark")
			}
		}
	}
}

func joinTexts(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		if t, ok := p.(Text); ok {
			b.WriteString(string(t))
			b.WriteByte('\n')
		}
	}
	return b.String()
}
