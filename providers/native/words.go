package native

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/outline"
	"github.com/condensehq/condense/internal/plain"
)

// wordsIntro is the beginning of the block that repeats the user, which package dialog writes and reads.
const wordsIntro = "What the user typed earlier in this conversation, word for word, oldest first. It is history: " +
	"everything in it has been dealt with, unless the summary says that it is still open. " +
	"Keep to the rules and wishes in it; do not start the tasks in it again."

// wordsBudget returns the tokens that the user's words may take.
func wordsBudget(req *core.Request, c *settings) int {
	return int(c.UserWordsShare * float64(req.Budget.Window))
}

// userWords returns the words of the user in the messages that p hides, and older ones that summaries among
// them repeat, oldest first, in any format.
func (p *plan) userWords() (words []string) {
	var talk dialog.AuthorReader
	p.hidden(func(_ int, m *core.Message) {
		words = append(words, wordsAgain(m)...)
		t := typed(&talk, m)
		if t != "" && m.Role == core.RoleUser && (m.Kind == core.KindOriginal || dialog.HoldsInserted(m)) {
			words = append(words, t)
		}
	})
	return words
}

// wordsTokens returns the tokens of a block with all of the user's words.
func (p *plan) wordsTokens() int {
	n := p.req.Counter.Count(core.Text(dialog.Repeat(wordsIntro, nil, ""))) + 2*leftOutTokens
	n += plain.Sum(p.userWords(), func(said string) int { return p.req.Counter.Count(core.Text(dialog.Entry(said))) })
	return n
}

// wordsAgain returns the words of the user that m repeats, if it is a summary or holds one.
func wordsAgain(m *core.Message) []string {
	var said []string
	for _, part := range m.Parts {
		t, ok := part.(core.Text)
		if !ok {
			continue
		}
		trusted := m.Kind == core.KindSummary || m.Role == core.RoleUser && dialog.Inserted(string(t))
		if block := dialog.Repeated(string(t), trusted); block != nil {
			said = block
		}
	}
	return said
}

// typed returns the text of a message that the user typed, and project rules, which the
// user wrote for every conversation; "" if a tool wrote it all.
func typed(talk *dialog.AuthorReader, m *core.Message) string {
	var texts []string
	for _, segments := range talk.Message(m) {
		text := join(slices.DeleteFunc(segments, func(s dialog.Segment) bool { return s.Kind != dialog.KindUser && s.Kind != dialog.KindProjectRules }))
		text = commandForm().ReplaceAllString(text, "") // which are next to the summary
		if text = strings.TrimSpace(dialog.Unwrap(text)); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

func join(segments []dialog.Segment) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString(s.Text)
	}
	return b.String()
}

// wordsBlock returns a block of words with at most so many tokens, "" if there is no room for any: the first,
// which set the task, if it takes no more than half of it, then the rules in the others, and the newest ones. A
// message that is too long for the rest of the room is cut in its middle if a good part of it can stay. Lost are
// the tokens of the words that are left out.
func wordsBlock(counter core.Counter, words []string, budget int) (block string, lost int) {
	tokens := func(s string) int { return counter.Count(core.Text(s)) }
	sizes := make([]int, len(words))
	for i := range words {
		sizes[i] = tokens(dialog.Entry(words[i]))
		lost += sizes[i]
	}
	budget -= tokens(dialog.Repeat(wordsIntro, nil, "")) + 2*leftOutTokens
	if len(words) == 0 || budget <= 0 {
		return "", lost
	}
	entries := make([]string, len(words))
	take := func(i, room int) int {
		entry, n := dialog.Entry(words[i]), sizes[i]
		if n > room && room >= minGain {
			// Texts differ in bytes per token; a smaller try follows one that was too large.
			for keep := len(words[i]) * room / n; n > room && keep > 0; keep = keep * 3 / 4 {
				entry = dialog.Entry(clip(words[i], keep))
				n = tokens(entry)
			}
		}
		if n > room {
			return 0
		}
		entries[i] = entry
		return n
	}
	half := budget / 2
	if len(words) == 1 {
		half = budget
	}
	cost := make([]int, len(words))
	cost[0] = take(0, half)
	budget -= cost[0]
	for i, rule := range rulesIn(words[1:], budget/rulesPart, tokens) {
		entries[i+1], cost[i+1] = rule, tokens(rule)
		budget -= cost[i+1]
	}
	for i := len(words) - 1; i >= 0; i-- {
		n := take(i, budget+cost[i])
		if n == 0 {
			break // a gap inside would look as if nothing had been said
		}
		budget -= n - cost[i]
		cost[i] = n
	}
	var kept []string
	missing := 0
	for i, e := range entries {
		lost -= min(cost[i], sizes[i])
		if e == "" {
			missing++
			continue
		}
		if missing > 0 {
			kept = append(kept, "<left_out messages=\""+strconv.Itoa(missing)+"\"/>\n")
			missing = 0
		}
		kept = append(kept, e)
	}
	if len(kept) == 0 {
		return "", lost
	}
	return dialog.Repeat(wordsIntro, kept, ""), lost
}

// rulesPart is the part of the room, its inverse, that rules get before the newest messages do.
const rulesPart = 3

// briefWords is, in tokens, the size up to which a whole message may be a rule that is stated as a fact, such as "We
// deploy on Fridays": it costs little, and no form tells it from a remark.
const briefWords = 24

// rulesIn returns entries with the sentences of words, by their index, that bind the agent for longer than the
// next step (see [dialog.DemandOf]): prohibitions first, then the newest, and then short messages, as many as have
// room. The rest of such a message is left out visibly.
func rulesIn(words []string, room int, tokens func(string) int) map[int]string {
	type sentence struct {
		of, at int
		text   string
	}
	found := map[dialog.Demand][]sentence{}
	known := map[string]bool{}
	for i, text := range slices.Backward(words) {
		at := 0
		if n := tokens(text); n <= briefWords && !known[text] && dialog.DemandOf(text) == dialog.NoDemand {
			known[text] = true
			found[dialog.NoDemand] = append(found[dialog.NoDemand], sentence{i, at, text})
			continue
		}
		for line := range strings.Lines(text) {
			for _, s := range dialog.Sentences(line) {
				said := strings.TrimSpace(line[s.Start:s.End])
				if d := dialog.DemandOf(said); d != dialog.NoDemand && !known[said] {
					known[said] = true
					found[d] = append(found[d], sentence{i, at, said})
				}
				at++
			}
		}
	}
	kept := map[int][]sentence{}
	for _, d := range []dialog.Demand{dialog.Forbids, dialog.Requires, dialog.Prefers, dialog.NoDemand} {
		for _, s := range found[d] {
			n := tokens(s.text)
			if kept[s.of] == nil {
				n += tokens(dialog.Entry("")) + leftOutTokens
			}
			if n <= room {
				room -= n
				kept[s.of] = append(kept[s.of], s)
			}
		}
	}
	rules := make(map[int]string, len(kept))
	for i, all := range kept {
		slices.SortFunc(all, func(a, b sentence) int { return cmp.Compare(a.at, b.at) })
		var b strings.Builder
		for _, s := range all {
			b.WriteString(s.text + "\n")
		}
		if text := strings.TrimSpace(b.String()); text != strings.TrimSpace(words[i]) {
			rules[i] = dialog.Entry(text + "\n" + elsewhere)
		} else {
			rules[i] = dialog.Entry(text)
		}
	}
	return rules
}

// elsewhere marks a message of which only the rules are repeated.
const elsewhere = "[… the rest of the message left out]"

// leftOutTokens is about the size of the text of leftOut.
const leftOutTokens = 12

// clip returns text without its middle if it has more than keep bytes, with a note of how much is missing: the
// beginning says the subject, the end the outcome. Runes stay whole.
func clip(text string, keep int) string {
	if len(text) <= keep {
		return text
	}
	head, cut := plain.Back(text, keep*2/3), plain.On(text, len(text)-(keep-keep*2/3))
	return text[:head] + fmt.Sprintf("\n[… %d bytes left out here …]\n", cut-head) + text[cut:]
}

// A folder returns blocks with signatures of the files that the agent has read, newest
// first, with about so many characters in all. It fails only if ctx ends.
type folder func(ctx context.Context, req *core.Request, chars int) ([]string, error)

// foldFiles is the folder that reads files.
func foldFiles(ctx context.Context, req *core.Request, chars int) ([]string, error) {
	folded, err := outline.Files(ctx, req.FilesRead, outline.Options{Root: req.Dir, Chars: chars})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, nil //nolint:nilerr // a folder that cannot be read is no reason to lose a summary
	}
	blocks := plain.Each(folded.Blocks, func(b outline.Block) string { return b.Text })
	return blocks, nil
}
