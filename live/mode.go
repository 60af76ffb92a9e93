package live

import (
	"errors"
	"strings"
)

func (r *Rule) check() error {
	if r.Profile == "" && r.Mode == "" {
		return errors.New("set a profile or a mode")
	}
	if r.Model == "" && r.Agent == "" && r.System == "" {
		return errors.New("set what it is for: model, agent or system")
	}
	return nil
}

// matches reports whether the rule applies to a request. system reports whether the system prompt has a phrase.
func (r *Rule) matches(agent, model string, system func(phrase string) bool) bool {
	return (r.Model == "" || glob(r.Model, model)) && (r.Agent == "" || strings.EqualFold(r.Agent, agent)) &&
		(r.System == "" || system(r.System))
}

// glob reports whether a text matches a pattern in which * stands for any text.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, p := range parts[1:last] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return strings.HasSuffix(text, parts[last])
}
