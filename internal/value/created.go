package value

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// A call that started or created something cannot be made again to see its result: without the identifier, work is done twice. So the
// line with it stays until its end is seen: some ten tokens each.
const (
	createdShare = 0.08 // of the room, for lines with identifiers
	createdLong  = 240  // bytes: a longer line is cut out of content
	createdLook  = 40   // lines of a result, at either end
)

var (
	// createsByTool matches names of tools that start or create something; an agent is started by the tools of its family.
	createsByTool = regexp.MustCompile(`(?i)(?:^|[_.\-/]|[a-z])(?:create|start|launch|spawn|open|send|pay|charge|post|upload|publish|deploy|submit|schedule|provision|book|order|reserve|register|issue|add_comment|fork|transfer|refund)(?:[A-Z_.\-/]|$)`)
	// createsByCommand matches commands likewise.
	createsByCommand = regexp.MustCompile(`(?i)\bgit (?:commit|tag|push|stash|cherry-pick|merge|revert)\b|\b(?:gh|glab) \w+ (?:create|fork)\b|\b(?:npm|pnpm|yarn|cargo|twine) (?:publish|upload)\b|` +
		`\b(?:kubectl|oc) (?:create|apply|run|expose)\b|\b(?:docker|podman) (?:run|create|push|compose up)\b|\bterraform apply\b|\b(?:aws|gcloud|az|doctl|hcloud|fly|heroku|vercel|netlify) .*\b(?:create|run|deploy|launch|start|put|send)|` +
		`\bnohup\b|\bsetsid\b|[^&>]&\s*$|\bcurl\b.*(?:-X ?(?:POST|PUT)|--data|\s-d )|\b(?:sbatch|qsub|at|systemd-run|screen|tmux new)\b`)
	// identifierForm matches an identifier: after a label, after a sign, as a key with a number, a hash, or an address.
	identifierForm = regexp.MustCompile(`(?i:\b(?:[a-z]*[_ -]?(?:id|key|number|ref|reference|token|pid|url|uri|address|name|hash|sha|tag|port)|agent|task|job|run|shell|session|process|issue|ticket|order|payment|deployment|server|build|pipeline|workflow|pull request|pr|commit|container)["']?\s*(?:is|:|=|#|\s)\s*["']?)` +
		`#?([A-Za-z0-9][\w.\-/:@]{1,80})|\[[\w/.\-]+ (?:\(root-commit\) )?([0-9a-f]{7,40})\]|(https?://[^\s"'<>)\]]+)|\b([A-Z][A-Z0-9]{1,9}-\d+)\b|(?:^|\s)#(\d+)\b|^([0-9a-f]{12,64})$|^\[\d+\] (\d+)$`)
	// endForm matches the words of an end.
	endForm = regexp.MustCompile(`(?i)\b(?:completed|finished|exited|done|closed|killed|stopped|merged|deleted|removed|cancell?ed|terminated|failed|no longer running|not running|shut down|beendet|abgeschlossen)\b`)
)

// creates reports whether p is the result of a call that started or created something.
func (w *reading) creates(p *Passage) bool {
	if p.Kind != dialog.KindToolResult || p.partial {
		return false
	}
	switch dialog.FamilyOf(p.Name) {
	case dialog.FamilyCommand:
		return createsByCommand.MatchString(p.Target) || w.inBackground(p)
	case dialog.FamilyDelegate:
		return true
	case dialog.FamilyUnknown, dialog.FamilyWeb:
		return createsByTool.MatchString(p.Name)
	case dialog.FamilyRead, dialog.FamilyList, dialog.FamilySearch, dialog.FamilyWrite, dialog.FamilyEdit, dialog.FamilyPlan, dialog.FamilyAsk, dialog.FamilyDone:
	}
	return false
}

// inBackground reports whether the answer of a shell says that its command goes on running.
func (w *reading) inBackground(p *Passage) bool {
	const look = 4 // lines
	return slices.ContainsFunc(w.c.Lines[p.Lines.Start:min(p.Lines.End, p.Lines.Start+look)], func(l Line) bool {
		return strings.Contains(l.Text, "running in background") || strings.Contains(l.Text, "running in the background") || strings.Contains(l.Text, "session ID") ||
			strings.Contains(l.Text, "Process running with session")
	})
}

// identifierIn returns the identifier in a line: with a digit, or an address; "" if there is none.
func identifierIn(text string) string {
	if len(text) > createdLong {
		return ""
	}
	for _, m := range identifierForm.FindAllStringSubmatch(text, -1) {
		for _, id := range m[1:] {
			if id = strings.TrimRight(id, ".,:-/"); len(id) > 1 && (hasDigit(id) || strings.HasPrefix(id, "http")) {
				return id
			}
		}
	}
	return ""
}

// keepCreated keeps, newest first, the lines with identifiers of what calls started or created, while its end was not seen.
func (w claims) keepCreated(context.Context) error {
	limit := w.spent() + createdShare*float64(w.o.Room)
	type created struct {
		line int
		id   string
	}
	var all []created
	at := map[string]int{} // the message that names an identifier first
	for p := range w.c.Passages {
		pass := &w.c.Passages[p]
		if !w.creates(pass) {
			continue
		}
		kept := 0
		look := func(l int) {
			const each = 3 // of a result
			if id := identifierIn(w.c.Lines[l].Text); id != "" && kept < each {
				kept++
				w.c.Lines[l].repeated = false // it differs from the others in what counts
				if _, known := at[id]; !known {
					at[id] = pass.Message
				}
				all = append(all, created{l, id})
			}
		}
		head := min(pass.Lines.End, pass.Lines.Start+createdLook)
		for l := pass.Lines.Start; l < head; l++ {
			look(l)
		}
		for l := max(head, pass.Lines.End-createdLook); l < pass.Lines.End; l++ {
			look(l)
		}
	}
	if len(all) == 0 {
		return nil
	}
	ended := map[string]bool{}
	for l := range w.c.Lines {
		text := w.c.Lines[l].Text
		if len(text) > createdLong || !hasDigit(text) || !endForm.MatchString(text) {
			continue
		}
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\"'`()[]{}<>,;=", r) }) {
			if m, ok := at[strings.Trim(word, ".:#!?")]; ok && w.c.Passages[w.c.Lines[l].Passage].Message > m {
				ended[strings.Trim(word, ".:#!?")] = true
			}
		}
	}
	for _, c := range slices.Backward(all) {
		if mode := w.passages[w.c.Lines[c.line].Passage].mode; !ended[c.id] && (mode == modeExtract || mode == modeOpen) {
			if s := (core.Span{Start: c.line, End: c.line + 1}); w.spent()+w.cost(s) <= limit {
				w.takeLine(c.line, limit)
			}
		}
	}
	return nil
}
