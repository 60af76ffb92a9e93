package lab

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/plain"
)

// A ModeRule gives a mode to sessions whose file matches a pattern or whose text contains a phrase.
type ModeRule struct {
	// Pattern has one or more parts separated by slashes, each a pattern of [path.Match]. It
	// matches a session if consecutive parts of its absolute path match: "reviews" matches every
	// session in a folder of that name. A pattern that begins with a slash matches from the root.
	Pattern string
	// Phrase is used if Pattern is empty. It matches a session with the phrase in the system prompt
	// or in a message with the role user or system, where agents announce a mode to the model.
	Phrase string
	Mode   string
}

// phrasePrefix is the prefix of a rule with a phrase.
const phrasePrefix = "text:"

// ParseModeRule reads "PATTERN=MODE" or "text:PHRASE=MODE". The mode follows the last equals sign.
func ParseModeRule(s string) (ModeRule, error) {
	const want = "want PATTERN=MODE or text:PHRASE=MODE, such as 'reviews/*.jsonl=review'"
	i := strings.LastIndexByte(s, '=')
	if i < 0 {
		return ModeRule{}, fmt.Errorf("%q: %s", s, want)
	}
	r := ModeRule{Pattern: s[:i], Mode: strings.TrimSpace(s[i+1:])}
	if phrase, ok := strings.CutPrefix(s[:i], phrasePrefix); ok {
		r.Pattern, r.Phrase = "", phrase
	}
	if r.Mode == "" || strings.Trim(r.Pattern+r.Phrase, "/ ") == "" {
		return ModeRule{}, fmt.Errorf("%q: %s", s, want)
	}
	r.Pattern = strings.TrimRight(filepath.ToSlash(r.Pattern), "/")
	if _, err := path.Match(r.Pattern, ""); err != nil {
		return ModeRule{}, fmt.Errorf("%q: %w", s, err)
	}
	return r, nil
}

// holds reports whether r applies to s, which was read from the named file.
func (r *ModeRule) holds(name string, s *score.Session) bool {
	if r.Pattern != "" {
		return matchesParts(r.Pattern, name)
	}
	if strings.Contains(s.System, r.Phrase) {
		return true
	}
	for i := range s.Messages {
		m := &s.Messages[i]
		if m.Role != core.RoleUser && m.Role != core.RoleSystem {
			continue
		}
		for _, p := range m.Parts {
			if t, ok := p.(core.Text); ok && strings.Contains(string(t), r.Phrase) {
				return true
			}
		}
	}
	return false
}

// matchesParts reports whether consecutive parts of the path match the parts of the pattern.
func matchesParts(pattern, name string) bool {
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	want, have := strings.Split(pattern, "/"), strings.Split(filepath.ToSlash(name), "/")
	last := len(have) - len(want)
	if strings.HasPrefix(pattern, "/") {
		last = min(last, 0)
	}
	for at := 0; at <= last; at++ {
		ok := true
		for i, w := range want {
			if match, err := path.Match(w, have[at+i]); err != nil || !match {
				ok = false
				break
			}
		}
		if ok {
			return true
		}
	}
	return false
}

// modeBy returns the mode of s by the first rule that applies, or the mode that s names itself.
func modeBy(rules []ModeRule, name string, s *score.Session) string {
	for i := range rules {
		if rules[i].holds(name, s) {
			return rules[i].Mode
		}
	}
	return s.Mode
}

// The modes of agents that have a plan mode and one unnamed other mode.
const (
	planMode = "plan"
	codeMode = "code"
)

// recordedMode returns the mode that most of a session file was written in, as far as the format
// records it: the permission mode of Claude Code, the collaboration mode of Codex, the agent of
// OpenCode. For the first two, every mode except plan is called code.
func recordedMode(format string, data []byte) string {
	var modeIn func(line []byte) string
	switch format {
	case "claudecode":
		modeIn = claudeMode
	case "codex":
		modeIn = codexMode
	case "opencode":
		return opencodeMode(data)
	default:
		return ""
	}
	count, now := map[string]int{}, ""
	for line := range bytes.Lines(data) {
		if mode := modeIn(line); mode != "" {
			if now = codeMode; mode == planMode {
				now = planMode
			}
		}
		if now != "" {
			count[now]++
		}
	}
	switch {
	case len(count) == 0:
		return ""
	case count[planMode] > count[codeMode]:
		return planMode
	}
	return codeMode
}

// claudeMode returns the permission mode that a line sets.
func claudeMode(line []byte) string {
	var l struct {
		Mode string `json:"permissionMode"`
	}
	if !bytes.Contains(line, []byte(`"permissionMode"`)) || json.Unmarshal(line, &l) != nil {
		return ""
	}
	return l.Mode
}

// codexMode returns the collaboration mode of a line with the context of a turn.
func codexMode(line []byte) string {
	var l struct {
		Type    string
		Payload struct {
			Mode struct{ Mode string } `json:"collaboration_mode"`
		}
	}
	if !bytes.Contains(line, []byte(`"turn_context"`)) || json.Unmarshal(line, &l) != nil || l.Type != "turn_context" {
		return ""
	}
	return l.Payload.Mode.Mode
}

// opencodeMode returns the agent that wrote most messages of an export: "build", "plan" or one that the
// user defined.
func opencodeMode(data []byte) string {
	var session struct {
		Messages []struct {
			Info struct{ Agent, Mode string } // older versions have only the mode
		}
	}
	if json.Unmarshal(data, &session) != nil {
		return ""
	}
	count, best := map[string]int{}, ""
	for i := range session.Messages {
		info := &session.Messages[i].Info
		mode := cmp.Or(info.Agent, info.Mode)
		if mode == "" {
			continue
		}
		if count[mode]++; best == "" || count[mode] > count[best] {
			best = mode
		}
	}
	return best
}

// announced matches the mode that Roo Code, its forks and Cline name in every message.
var announced = plain.Pattern(`<slug>([\w-]{1,40})</slug>|# Current Mode\n(PLAN|ACT) MODE`)

// announcedMode returns the mode that most user messages name, or "".
func announcedMode(messages []core.Message) string {
	count := map[string]int{}
	best := ""
	for i := range messages {
		if messages[i].Role != core.RoleUser {
			continue
		}
		for _, p := range messages[i].Parts {
			t, ok := p.(core.Text)
			if !ok || !strings.Contains(string(t), "<slug>") && !strings.Contains(string(t), "# Current Mode\n") {
				continue
			}
			for _, m := range announced().FindAllStringSubmatch(string(t), -1) {
				mode := m[1] + strings.ToLower(m[2])
				if count[mode]++; best == "" || count[mode] > count[best] {
					best = mode
				}
			}
		}
	}
	return best
}

// NoMode is the reason for skipping a session without a mode if modes are selected.
const NoMode = "the session names no mode, and no rule gives it one"

// unwanted returns why a session of the mode is skipped, or "" if it is compared.
func (o *Options) unwanted(mode string) string {
	switch {
	case len(o.Modes) == 0 || slices.Contains(o.Modes, mode):
		return ""
	case mode == "":
		return NoMode
	}
	return fmt.Sprintf("mode %q is not selected", mode)
}
