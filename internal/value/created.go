package value

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/outline"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/value/ledger"
)

// A call that started or created something cannot be made again to see its result: without the identifier, work is done twice. So the
// block of open work lists it until its end is seen, in some twenty tokens; where there is no such block, and in results that stay, its
// line is kept.
const (
	createdShare = 0.08 // of the room, for identifiers
	createdLong  = 240  // bytes of a line that are looked at
	createdLook  = 40   // lines of a result, at either end
	createdEach  = 3
	createdShort = 80 // bytes of a line that is listed as it is
	createdName  = "made: "
)

var (
	// createsByTool matches names of tools that start or create something; an agent is started by the tools of its family.
	createsByTool = plain.Pattern(`(?i)(?:^|[_.\-/]|[a-z])(?:create|start|launch|spawn|open|send|pay|charge|post|upload|publish|deploy|submit|schedule|provision|book|order|reserve|register|issue|add_comment|fork|transfer|refund)(?:[A-Z_.\-/]|$)`)
	// createsByCommand matches commands likewise.
	createsByCommand = plain.Pattern(`(?i)\bgit (?:commit|tag|push|stash|cherry-pick|merge|revert)\b|\b(?:gh|glab) \w+ (?:create|fork)\b|\b(?:npm|pnpm|yarn|cargo|twine) (?:publish|upload)\b|` +
		`\b(?:kubectl|oc) (?:create|apply|run|expose)\b|\b(?:docker|podman) (?:run|create|push|compose up)\b|\bterraform apply\b|\b(?:aws|gcloud|az|doctl|hcloud|fly|heroku|vercel|netlify) .*\b(?:create|run|deploy|launch|start|put|send)|` +
		`\bnohup\b|\bsetsid\b|[^&>]&\s*$|\bcurl\b.*(?:-X ?(?:POST|PUT)|--data|\s-d )|\b(?:sbatch|qsub|at|systemd-run|screen|tmux new)\b`)
	// identifierForm matches an identifier: after a label, after a sign, as a key with a number, a hash, or an address.
	identifierForm = plain.Pattern(`(?i:\b(?:[a-z]*[_ -]?(?:id|key|number|ref|reference|token|pid|url|uri|address|name|hash|sha|tag|port)|agent|task|job|run|shell|session|process|issue|ticket|order|payment|deployment|server|build|pipeline|workflow|pull request|pr|commit|container)["']?\s*(?:is|:|=|#|\s)\s*["']?)` +
		`#?([A-Za-z0-9][\w.\-/:@]{1,80})|\[[\w/.\-]+ (?:\(root-commit\) )?([0-9a-f]{7,40})\]|(https?://[^\s"'<>)\]]+)|\b([A-Z][A-Z0-9]{1,9}-\d+)\b|(?:^|\s)#(\d+)\b|^([0-9a-f]{12,64})$|^\[\d+\] (\d+)$`)
	// commitForm matches git's line about a commit, and agentForm the identifier of an agent: the rest of its result is a report.
	commitForm = plain.Pattern(`^\[[\w/.\-]+ (?:\(root-commit\) )?([0-9a-f]{7,40})\]`)
	agentForm  = plain.Pattern(`(?i)(?:\b|agent|task|session|thread|run|job)[_ -]?id["']?\s*[:=]\s*["']?([a-z0-9][\w\-]{2,80})`)
	// standardForm matches names of standards.
	standardForm = plain.Pattern(`^(?:UTF|SHA|ISO|RFC|HTTP|CVE|MD)-?\d`)
	// namedForm matches the entry of an identifier whose line is long, and runsForm the words of a shell about a command that goes on.
	namedForm = plain.Pattern(`^\S+ (\S+):(?: |$)`)
	runsForm  = plain.Pattern(`running in (?:the )?background|session ID|Process running with session`)
	// endForm matches the words of an end.
	endForm = plain.Pattern(`(?i)\b(?:completed|finished|exited|done|closed|killed|stopped|merged|deleted|removed|cancell?ed|terminated|failed|no longer running|not running|shut down|beendet|abgeschlossen)\b`)
)

// A creation is the identifier of something that a call started or created, and whose end nobody saw.
type creation struct {
	id, entry string
	line      int // with it; -1 if a former extract lists it
}

// madeIn returns the form of the identifiers in p, if it is a result of a call that started or created something; else nil.
func (r *reading) madeIn(p *Passage) *regexp.Regexp {
	if p.Kind != dialog.KindToolResult || p.partial {
		return nil
	}
	switch family := dialog.FamilyOf(p.Name); {
	case family == dialog.FamilyDelegate:
		return agentForm()
	case family == dialog.FamilyCommand && !createsByCommand().MatchString(p.Target) && !r.inBackground(p):
		return commitForm() // of a script
	case family == dialog.FamilyCommand, (family == dialog.FamilyUnknown || family == dialog.FamilyWeb) && createsByTool().MatchString(p.Name):
		return identifierForm()
	}
	return nil
}

// inBackground reports whether the answer of a shell says that its command goes on running.
func (r *reading) inBackground(p *Passage) bool {
	const look = 4 // lines
	return slices.ContainsFunc(r.c.Lines[p.Lines.Start:min(p.Lines.End, p.Lines.Start+look)], func(l Line) bool { return runsForm().MatchString(l.Text) })
}

// identifierIn returns the first identifier in a line: with a digit, or an address; "" if there is none.
func identifierIn(text string, form *regexp.Regexp) string {
	text = strings.ToValidUTF8(text[:min(len(text), createdLong)], "")
	if strings.HasPrefix(text, "Chunk ID: ") { // of output
		return ""
	}
	for _, m := range form.FindAllStringSubmatch(text, -1) {
		for _, id := range m[1:] {
			if id = strings.TrimRight(id, ".,:-/"); len(id) > 1 && (hasDigit(id) || strings.HasPrefix(id, "http")) && !standardForm().MatchString(id) {
				return id
			}
		}
	}
	return ""
}

// created returns the identifiers that calls started or created, oldest first, without those that ended.
func (r *reading) created() (all []creation) {
	at := map[string]int{} // the message that names an identifier first
	for _, line := range r.c.open {
		if e, ok := strings.CutPrefix(line, createdName); ok {
			id := identifierIn(e, identifierForm())
			if named := namedForm().FindStringSubmatch(e); named != nil {
				id = named[1]
			}
			at[id] = -1
			all = append(all, creation{id, line, -1})
		}
	}
	for p := range r.c.Passages {
		pass := &r.c.Passages[p]
		form := r.madeIn(pass)
		for l, kept := pass.Lines.Start, 0; form != nil && l < pass.Lines.End && kept < createdEach; l++ {
			text := strings.TrimSpace(r.c.Lines[l].Text)
			commit := commitForm().MatchString(text)
			if form == identifierForm() && !commit && l >= pass.Lines.Start+createdLook && l < pass.Lines.End-createdLook {
				continue
			}
			id := identifierIn(text, form)
			if _, known := at[id]; id == "" || known {
				continue
			}
			kept++
			r.c.Lines[l].repeated = false // its identifier differs from the others
			at[id] = pass.Message
			entry := createdName + text
			if !commit && (form == agentForm() || len(text) > createdShort || r.inBackground(pass)) {
				entry = createdName + toolName(pass.Name) + " " + id + ": " + digest(pass.Target)
			}
			all = append(all, creation{id, oneLine(entry, openLong), l})
		}
	}
	if len(all) == 0 {
		return nil
	}
	ended := map[string]bool{}
	for l := range r.c.Lines {
		text := r.c.Lines[l].Text
		if len(text) > createdLong || !hasDigit(text) || !endForm().MatchString(text) {
			continue
		}
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\"'`()[]{}<>,;=", r) }) {
			word = strings.Trim(word, ".:#!?")
			if m, ok := at[word]; ok && r.c.Passages[r.c.Lines[l].Passage].Message > m {
				ended[word] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(c creation) bool { // a commit has no end, though a log may name an end
		return ended[c.id] && !commitForm().MatchString(strings.TrimPrefix(c.entry, createdName))
	})
}

// listCreated returns the entries of identifiers from hidden messages, oldest first, and their tokens: the newest that have room.
func (pre *preface) listCreated(hidden []bool, free float64) (entries []string, used float64) {
	room := min(createdShare*float64(pre.r.o.Room), free)
	for _, c := range slices.Backward(pre.made) {
		n := float64(pre.r.o.Counter.Count(core.Text(c.entry + "\n")))
		if used+n <= room && (c.line < 0 || hidden[pre.r.c.Passages[pre.r.c.Lines[c.line].Passage].Message]) {
			used += n
			entries = append(entries, c.entry)
		}
	}
	slices.Reverse(entries)
	return entries, used
}

// keepCreated keeps, newest first, the lines with identifiers that are in results that stay, or that no block lists.
func keepCreated(_ context.Context, w *choice) error {
	limit := w.spent() + createdShare*float64(w.r.o.Room)
	for _, c := range slices.Backward(w.pre.made) {
		if c.line < 0 {
			continue
		}
		if mode := w.passages[w.r.c.Lines[c.line].Passage].mode; mode == modeOpen || mode == modeExtract && w.r.o.Shares.Open <= 0 {
			w.takeLine(c.line, limit)
		}
	}
	return nil
}

// The entry of a file has so many changed names, or lines.
const (
	changedNames = 4
	changedLines = 2
)

// changed returns an entry for each file that the conversation changed, most recently changed first: its path, the
// number of changes, and the names of the changed definitions. Entries of an earlier extract about other files follow.
func (pre *preface) changed() (out []string) {
	pre.root = pre.r.folder
	files := slices.DeleteFunc(slices.Clone(pre.r.replayed.Files), func(f *ledger.File) bool { return f.Edited < 0 })
	slices.SortStableFunc(files, func(a, b *ledger.File) int { return b.Edited - a.Edited })
	said := map[string]bool{}
	for _, f := range files {
		name := shortPath(f.Path, pre.root)
		if name == "" || said[name] {
			continue
		}
		said[name] = true
		var about []string
		if n := f.Edits; n > 1 {
			about = append(about, strconv.Itoa(n)+" edits")
		} else if n == 0 {
			about = append(about, "written")
		}
		if names := definedIn(f); len(names) > 0 {
			about = append(about, strings.Join(names, ", "))
		} else if lines := newestIn(f); len(lines) > 0 {
			about = append(about, strings.Join(lines, "; "))
		}
		e := changedName + name
		if len(about) > 0 {
			e += " (" + strings.Join(about, ": ") + ")"
		}
		out = append(out, oneLine(e, openLong))
	}
	for _, line := range slices.Backward(pre.r.c.open) {
		rest, ok := strings.CutPrefix(line, changedName)
		name, _, _ := strings.Cut(rest, " ")
		if ok && !said[name] {
			said[name] = true
			out = append(out, line)
		}
	}
	return out[:min(len(out), openChanged)]
}

// definedIn returns the names of the definitions whose lines were changed, most recently changed first. The outline has them: a word
// after "type" may be one of a comment, a string or the key of an object.
func definedIn(f *ledger.File) (out []string) {
	edited := map[string]int{}
	for _, r := range f.Runs {
		var text strings.Builder
		for i := range r.Lines {
			text.WriteString(r.Lines[i].Text + "\n")
		}
		owner := make([]string, len(r.Lines)) // the innermost definition with each line
		for _, d := range outline.Definitions(outline.Language(f.Path), text.String()) {
			for i := d.Start - 1; i < min(d.End, len(owner)); i++ {
				owner[i] = d.Name
			}
		}
		for i, name := range owner {
			if at := r.Lines[i].Edited; at >= 0 && name != "" {
				if _, known := edited[name]; !known {
					out = append(out, name)
				}
				edited[name] = max(edited[name], at)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return edited[b] - edited[a] })
	return out[:min(len(out), changedNames)]
}

// newestIn returns the lines of a file without definitions that were changed last, unless a later change is not known.
func newestIn(f *ledger.File) (out []string) {
	last := max(f.Unsure, 0)
	for _, r := range f.Runs {
		for i := range r.Lines {
			at, text := r.Lines[i].Edited, strings.TrimSpace(r.Lines[i].Text)
			if at < last || !hasWord(text) {
				continue
			}
			if at > last {
				last, out = at, nil
			}
			if len(out) < changedLines {
				out = append(out, text)
			}
		}
	}
	return out
}
