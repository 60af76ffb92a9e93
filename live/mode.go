package live

import (
	"fmt"
	"path"
	"strings"
)

func (r *Rule) check() error {
	if r.Profile == "" && r.Mode == "" {
		return fmt.Errorf("set a profile or a mode")
	}
	if r.Model == "" && r.Agent == "" && r.System == "" {
		return fmt.Errorf("set what it is for: model, agent or system")
	}
	if _, err := path.Match(r.Model, ""); err != nil {
		return fmt.Errorf("model: %q is not a pattern: %w", r.Model, err)
	}
	return nil
}

// matches reports whether the rule is for a request of this agent.
func (r *Rule) matches(agent, model string, system func(phrase string) bool) bool {
	if r.Model != "" {
		if ok, err := path.Match(r.Model, model); err != nil || !ok {
			return false
		}
	}
	return (r.Agent == "" || strings.EqualFold(r.Agent, agent)) && (r.System == "" || system(r.System))
}
