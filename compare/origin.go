package compare

import (
	"regexp"
	"strings"

	"github.com/condensehq/condense/compare/retention"
	"github.com/condensehq/condense/core"
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

// injected is what agents' programs put into the user's messages, by how it begins.
var injected = []string{
	"<system-reminder>", "<environment_details>", "<environment_context>", "<user_instructions>", "# AGENTS.md instructions",
	"<command-name>", "<command-message>", "<local-command-", "Caveat: The messages below", "[Request interrupted",
	"<file_content ", "<slug>", "[ERROR] You did not use a tool", "<feedback>", "<ide_", "<permissions instructions>",
	"<INSTRUCTIONS>", "Base directory for this skill:", "<turn_aborted>", "<files>", "<system_warning>", "# System Warning", "This session is being continued from a previous conversation",
}

// origins returns who wrote the parts of m, where the format does not say it.
func origins(m *core.Message) []retention.Origin {
	if m.Role != core.RoleUser {
		return nil
	}
	out := make([]retention.Origin, len(m.Parts))
	found := false
	for i, p := range m.Parts {
		t, ok := p.(core.Text)
		if !ok {
			continue
		}
		text := strings.TrimSpace(string(t))
		for _, prefix := range injected {
			if strings.HasPrefix(text, prefix) {
				out[i], found = retention.OriginInjected, true
			}
		}
		// Roo and Cline without native tools: "[read_file for 'x'] Result:"
		if line, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(line, "[") && strings.HasSuffix(strings.TrimSpace(line), "Result:") {
			out[i], found = retention.OriginTool, true
		} else if i > 0 && out[i-1] == retention.OriginTool && out[i] == retention.OriginUnknown {
			out[i] = retention.OriginTool
		}
	}
	if !found {
		return nil
	}
	return out
}
