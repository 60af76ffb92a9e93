package truth

import (
	"cmp"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
)

// creates matches the names of tools, and commands, that start or create something whose result cannot be had again.
var (
	creates = plain.Pattern(`(?i)(?:^|[_.\-/ ])(?:create|start|launch|spawn|open|send|pay|post|upload|publish|deploy|submit|schedule|provision|book|task|agent|charge)`)
	command = plain.Pattern(`(?i)\bgit commit\b|\bgh (?:issue|pr|release) create\b|\bnpm publish\b|\bkubectl (?:create|apply)\b|\bdocker run\b|&\s*$|\bnohup\b|\bcurl\b[^|]*-X ?POST`)
	aside   = plain.Pattern(`"run_in_background":\s*true`)
	// identifier matches a name with a digit that a result gives with a label, as a key, as git says a commit, or the number of an issue:
	// "#D6002F" and "[line 287]" name nothing that was made. A chunk is a piece of output.
	identifier = plain.Pattern(`(?i)(\bchunk )?(?:(?:\b(?:agent|task|job|run|shell|session|process|issue|ticket|order|payment|deployment|server|bash)?_?-?(?:id|key|number|ref|reference|pid)\b["']?\s*[:=#]?\s*["']?|\bsession(?: id)? |\bwith id:? ` +
		`|https?://\S+/)([A-Za-z0-9][A-Za-z0-9_.-]{2,63})|\[[\w/.-]+ (?:\(root-commit\) )?([0-9a-f]{7,40})\]|#([1-9]\d{2,})\b)`)
	// agent matches tools whose results are reports: the issues in them were read about.
	agent = plain.Pattern(`(?i)(?:^|[_.\-/ ])(?:task|agent)`)
	ended = plain.Pattern(`(?i)\b(?:completed|finished|exited|done|closed|killed|stopped|merged|deleted|cancell?ed|terminated|failed)\b`)
)

// readOutcomes returns the identifiers in results of calls that create something, whose end is not seen.
func readOutcomes(history []core.Message) (all []string) {
	open := map[string]bool{}
	var order []string
	calls := map[string]core.ToolCall{}
	for i := range history {
		for _, p := range history[i].Parts {
			if c, ok := p.(core.ToolCall); ok {
				calls[c.ID] = c
				continue
			}
			made, reports := false, false
			if r, ok := p.(core.ToolResult); ok {
				c := calls[r.CallID]
				made = !r.IsError && (creates().MatchString(c.Name) && !strings.Contains(strings.ToLower(c.Name), "read") || makes([]byte(c.Args)))
				reports = agent().MatchString(c.Name)
			}
			for s := range texts(p) {
				for id := range open {
					if at := strings.Index(s, id); at >= 0 && ended().MatchString(near(s, at)) {
						delete(open, id)
					}
				}
				if !made {
					continue
				}
				const most = 3 // of a result
				for _, f := range identifier().FindAllStringSubmatch(s, most) {
					id := strings.TrimRight(f[2]+f[3]+f[4], ".-")
					if f[1] == "" && (!reports || f[4] == "") && strings.ContainsAny(id, "0123456789") && !open[id] {
						open[id] = true
						order = append(order, id)
					}
				}
			}
		}
	}
	for _, id := range order {
		if !open[id] {
			continue
		}
		open[id] = false // an identifier counts once
		all = append(all, id)
	}
	return all
}

// makes reports whether the arguments of a call have a command that starts or creates something: a file's text has none.
func makes(args []byte) bool {
	for v := range toolcall.Values(args, toolcall.Command) {
		if command().MatchString(cmp.Or(rawjson.Text(v), string(v))) {
			return true
		}
	}
	return aside().Match(args) || !rawjson.IsObject(args) && command().Match(args)
}

// near returns the text within 100 bytes of a place.
func near(s string, at int) string { return s[max(0, at-100):min(len(s), at+100)] }
