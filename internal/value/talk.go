package value

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// Talk is a conversation without tools, of many messages in prose. Later questions there are about whole statements,
// and messages differ little in value but much in size. So whole messages are kept, by value for their length. This
// was measured on published chats with gold evidence (BEAM, LoCoMo, Lost in Compaction), of which lines chosen by
// names and phrases keep less than half.
const (
	talkLeast = 50   // least number of messages
	talkTools = 0.1  // most of them that may be calls or results
	talkSigns = 0.05 // most of the user's text that may be signs of programs; the answers may be code
	talkTail  = 0.08
	// talkHeader is the cost of a message in addition to its text, in bytes.
	talkHeader = 15
)

// isTalk reports whether the conversation is talk.
func (c *Conversation) isTalk() bool {
	if c.messages < talkLeast {
		return false
	}
	tools, signs, all := 0, 0, 0
	seen := -1
	for p := range c.Passages {
		pass := &c.Passages[p]
		if (pass.Kind == dialog.KindToolCall || pass.answers()) && pass.Message != seen {
			tools, seen = tools+1, pass.Message
		}
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			text := c.Lines[l].Text
			if pass.Kind != dialog.KindUser {
				continue
			}
			all += len(text)
			for i := range len(text) {
				if strings.IndexByte("{}();=<>_|\\", text[i]) >= 0 {
					signs++
				}
			}
		}
	}
	return float64(tools) < talkTools*float64(c.messages) && all > 0 && float64(signs) < talkSigns*float64(all)
}

// An utterance is one side's text in a message.
type utterance struct {
	lines core.Span
	user  bool
	bytes int
	asks  bool // it ends with a question
	worth float64
}

// keepTalk keeps whole messages, those with the highest value for their length first. The user's are kept already,
// except pasted ones.
func keepTalk(_ context.Context, w *choice) error {
	if !w.r.talks {
		return nil
	}
	all := w.r.utterances()
	order := make([]*utterance, 0, len(all))
	for i := range all {
		if w.passages[w.lines[all[i].lines.Start].passage].mode == modeExtract {
			order = append(order, &all[i])
		}
	}
	slices.SortStableFunc(order, func(a, b *utterance) int {
		return cmp.Compare(b.worth/float64(b.bytes+talkHeader), a.worth/float64(a.bytes+talkHeader))
	})
	limit := float64(w.r.o.Room)
	if len(w.r.c.Media) > 0 {
		limit -= mediaShare * limit
	}
	for _, u := range order {
		if cost := w.cost(u.lines); w.spent()+cost <= limit && w.alive(u.lines) {
			w.take(u.lines, cost)
		}
	}
	return nil
}

// The weights of an utterance's value, in [utterance.rate]: a logistic regression on whether a message is evidence
// for a question, fitted to conversations 1 to 5 of LoCoMo. No feature depends on a word of a language.
var talkWeights = struct{ bias, names, rarity, rarest, answers, asks float64 }{-6.5, 0.134, 0.141, 0.878, 1.189, -1.537}

// utterances returns the rated messages.
func (r *reading) utterances() []utterance {
	var all []utterance
	var words [][]string
	in := map[string]int{}
	for p := range r.c.Passages {
		pass := &r.c.Passages[p]
		if pass.Kind != dialog.KindUser && pass.Kind != dialog.KindAssistant || pass.outdated {
			continue
		}
		u := utterance{lines: pass.Lines, user: pass.Kind == dialog.KindUser}
		seen := map[string]bool{}
		var of []string
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			text := r.c.Lines[l].Text
			u.bytes += len(text) + 1
			for f := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
				of = append(of, f)
				if low := strings.ToLower(f); !seen[low] {
					seen[low] = true
					in[low]++
				}
			}
		}
		u.asks = strings.ContainsAny(lastOf(r.c.Lines[pass.Lines.End-1].Text, 80), "?？")
		all, words = append(all, u), append(words, of)
	}
	for i := range all {
		answers := i > 0 && all[i-1].asks && all[i-1].user != all[i].user
		all[i].rate(words[i], in, len(all), answers, r.c)
	}
	return all
}

func lastOf(s string, n int) string { return strings.ToValidUTF8(s[max(0, len(s)-n):], "") }

// rate sets the probability that a later question is about the message.
func (u *utterance) rate(words []string, in map[string]int, messages int, answers bool, c *Conversation) {
	const most, rarest = 5, 5
	var rarity []float64
	names, sum := 0, 0.0
	for i, f := range words {
		low := strings.ToLower(f)
		r := math.Log(float64(messages) / float64(in[low]))
		rarity = append(rarity, r)
		sum += r
		if i > 0 && low != f && unicode.IsLower(rune(words[i-1][len(words[i-1])-1])) && len(f) > 2 {
			names++
		}
	}
	if len(words) == 0 {
		return
	}
	slices.Sort(rarity)
	top := rarity[max(0, len(rarity)-rarest):]
	topSum := 0.0
	for _, r := range top {
		topSum += r
	}
	sentences, questions := 0.0, 0.0
	for l := u.lines.Start; l < u.lines.End; l++ {
		for _, at := range dialog.Sentences(c.Lines[l].Text) {
			sentences++
			if strings.ContainsAny(lastOf(c.Lines[l].Text[at.Start:at.End], 4), "?？") {
				questions++
			}
		}
	}
	k := &talkWeights
	x := k.bias + k.names*float64(min(names, most)) + k.rarity*sum/float64(len(words)) + k.rarest*topSum/float64(len(top))
	if answers {
		x += k.answers
	}
	x += k.asks * questions / max(1, sentences)
	u.worth = 1 / (1 + math.Exp(-x))
}
