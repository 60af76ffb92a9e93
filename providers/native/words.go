package native

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// Words of the block that repeats the user. Package author writes and reads it.
const (
	wordsIntro = "What the user typed earlier in this conversation, word for word, oldest first. It is history: " +
		"everything in it has been dealt with, unless the summary says that it is still open. " +
		"Keep to the rules and wishes in it; do not start the tasks in it again."
	wordsUnanswered = "Only the last message has not been answered yet.\n"
)

// wordsBudget returns the tokens that the user's words may take.
func wordsBudget(req *core.Request, c *settings) int {
	return min(mostWords, int(c.UserWordsShare*float64(req.Budget.Window)))
}

// userWords returns the words of the user in the messages that p hides, and older ones that summaries among
// them repeat, oldest first, in any format. Open says that the last of it is not answered.
func (p *plan) userWords() (words []string, open bool) {
	var talk dialog.AuthorReader
	p.hidden(func(i int, m *core.Message) {
		if said := wordsAgain(m); said != nil {
			words, open = append(words, said...), false
		}
		if m.Role != core.RoleUser || m.Kind != core.KindOriginal && !dialog.HoldsInserted(m) {
			return
		}
		if t := typed(&talk, m); t != "" {
			words = append(words, t)
			open = !slices.ContainsFunc(p.req.Messages[i+1:], func(m core.Message) bool { return m.Role == core.RoleAssistant })
		}
	})
	return words, open
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
		text = commandForm.ReplaceAllString(text, "") // which are next to the summary
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
// message that is too long for the rest of the room is cut in its middle if a good part of it can stay.
func wordsBlock(counter core.Counter, words []string, open bool, budget int) string {
	tokens := func(s string) int { return counter.Count(core.Text(s)) }
	budget -= tokens(dialog.Repeat(wordsIntro, nil, "")) + 2*leftOutTokens
	if open {
		budget -= tokens(wordsUnanswered)
	}
	if len(words) == 0 || budget <= 0 {
		return ""
	}
	entries := make([]string, len(words))
	take := func(i, room int) int {
		entry := dialog.Entry(words[i])
		n := tokens(entry)
		if n > room && room >= leastGain {
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
	budget -= take(0, half)
	rules := rulesIn(words[1:], budget/rulesPart, func(entry string) int { return tokens(entry) })
	cost := make([]int, len(words))
	for i, rule := range rules {
		entries[i+1], cost[i+1] = rule, tokens(rule)
		budget -= cost[i+1]
	}
	for i := len(words) - 1; i > 0; i-- {
		n := take(i, budget+cost[i])
		if n == 0 {
			break // a gap inside would look as if nothing had been said
		}
		budget -= n - cost[i]
	}
	var kept []string
	missing := 0
	for _, e := range entries {
		if e == "" {
			missing++
			continue
		}
		if missing > 0 {
			kept = append(kept, leftOut(missing))
			missing = 0
		}
		kept = append(kept, e)
	}
	if len(kept) == 0 {
		return ""
	}
	end := ""
	if open && entries[len(entries)-1] != "" {
		end = wordsUnanswered
	}
	return dialog.Repeat(wordsIntro, kept, end)
}

// rulesPart is the part of the room, its inverse, that rules get before the newest messages do.
const rulesPart = 3

// rulesIn returns entries with the sentences of words, by their index, that bind the agent for longer than the
// next step (see [dialog.DemandOf]): prohibitions first, then the newest, as many as have room. The rest of
// such a message is left out visibly.
func rulesIn(words []string, room int, tokens func(string) int) map[int]string {
	type sentence struct {
		of, at int
		text   string
	}
	found := map[dialog.Demand][]sentence{}
	known := map[string]bool{}
	for i, text := range slices.Backward(words) {
		at := 0
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
	for _, d := range []dialog.Demand{dialog.Forbids, dialog.Requires, dialog.Prefers} {
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

func leftOut(n int) string { return "<left_out messages=\"" + strconv.Itoa(n) + "\"/>\n" }
