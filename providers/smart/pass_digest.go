package smart

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/tooling"
)

type digestSettings struct {
	Tokens int `json:"tokens" doc:"what the digest may have"`
}

// Validate says which setting is out of range.
func (s *digestSettings) Validate() error {
	if s.Tokens < 60 {
		return fmt.Errorf("tokens: %d is below 60", s.Tokens)
	}
	return nil
}

// digestHead begins every digest; by it an earlier one is known.
const digestHead = "[Digest of the conversation so far, made by rule, not by a model. What it lists has been done already.]"

var digestPass = define("digest", classLossy, "",
	"Puts a message at the head that says what was asked, which files were touched and what became of them, the last errors and the open work. It adds tokens: list it before passes that take out more. A digest that is there already stays as it is.",
	digestSettings{Tokens: 400},
	func(_ context.Context, w *work, c digestSettings) error {
		for i := range w.msgs {
			if isDigest(&w.msgs[i]) {
				return nil
			}
		}
		if len(w.head) > 0 {
			return nil
		}
		text := w.digest(c.Tokens)
		if text == "" {
			return nil
		}
		m := core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(text)}}
		m.Tokens = core.MessageTokens(w.req.Counter, m)
		if m.Tokens*4 > w.tokens {
			return nil // no conversation to speak of
		}
		w.head = append(w.head, m)
		w.step.Changed++
		w.step.Saved["summary"] -= m.Tokens
		return nil
	})

func isDigest(m *core.Message) bool {
	if m.Kind != core.KindSummary || len(m.Parts) != 1 {
		return false
	}
	t, ok := m.Parts[0].(core.Text)
	return ok && strings.HasPrefix(string(t), digestHead)
}

// digest writes the digest in at most limit tokens: of each list the newest entries. It is
// empty if there is nothing to say.
func (w *work) digest(limit int) string {
	lists := []struct {
		title   string
		entries []string // newest first
	}{
		{"Asked", w.asked()},
		{"Open work", w.plan()},
		{"Last errors", w.lastErrors(3)},
		{"Files", w.filesTouched()},
	}
	var text strings.Builder
	text.WriteString(digestHead)
	room := limit - w.count(digestHead)
	for k, l := range lists {
		share := room / (len(lists) - k)
		var kept []string
		for _, e := range l.entries {
			n := w.count("- " + e + "\n")
			if n > share {
				break
			}
			share -= n
			room -= n
			kept = append(kept, "- "+e)
		}
		if len(kept) > 0 {
			slices.Reverse(kept)
			text.WriteString("\n" + l.title + ":\n" + strings.Join(kept, "\n"))
			room -= 4
		}
	}
	if text.Len() == len(digestHead) {
		return ""
	}
	return text.String()
}

// asked quotes what the user said, the newest first and then the task, which came first.
func (w *work) asked() []string {
	var out []string
	for i := len(w.pieces) - 1; i >= 0; i-- {
		if p := &w.pieces[i]; p.kind == kindUser && strings.TrimSpace(p.text) != "" {
			out = append(out, oneLine(p.text, 240))
		}
	}
	if n := len(out); n > 4 {
		out = append(out[:3], out[n-1])
	}
	return out
}

// plan quotes the newest list of what is to be done.
func (w *work) plan() []string {
	for _, u := range slices.Backward(w.uses) {
		if u.about.Family == tooling.Plan && u.call >= 0 && !isStub(w.pieces[u.call].text) {
			return []string{oneLine(w.pieces[u.call].text, 600)}
		}
	}
	return nil
}

// lastErrors quotes the results of the n newest calls that failed.
func (w *work) lastErrors(n int) []string {
	var out []string
	for _, u := range slices.Backward(w.uses) {
		if !u.isError || u.results.Start == u.results.End {
			continue
		}
		out = append(out, u.name+" "+digest(u.about.Target)+": "+oneLine(w.pieces[u.results.Start].text, 200))
		if len(out) == n {
			break
		}
	}
	return out
}

// filesTouched lists files, those touched last first, with what was last done to them.
func (w *work) filesTouched() []string {
	done := map[tooling.Family]string{tooling.Read: "read", tooling.Write: "written", tooling.Edit: "edited"}
	var out []string
	seen := map[string]bool{}
	for _, u := range slices.Backward(w.uses) {
		verb := done[u.about.Family]
		if verb == "" {
			continue
		}
		if u.isError {
			verb += ", failed"
		}
		for _, f := range u.about.Files {
			if !seen[f.Path] {
				seen[f.Path] = true
				out = append(out, f.Path+" ("+verb+")")
			}
		}
	}
	return out
}

// oneLine returns at most n bytes of s on one line.
func oneLine(s string, n int) string {
	cut := len(s) > 2*n
	if cut {
		s = s[:2*n]
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	if len(s) > n {
		s, cut = strings.ToValidUTF8(s[:n], ""), true
	}
	if cut {
		s += "…"
	}
	return s
}
