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
	"github.com/condensehq/condense/internal/plain"
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
	topSum := plain.Sum(top, func(r float64) float64 { return r })
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

const (
	// aboutValue multiplies the value of a line about something that the account names.
	aboutValue = 1.25
	// repeating is the share of a line's phrases above which the line counts as a repetition of the account.
	repeating = 0.6
	// namedShare is the share of the room for lines about the names in the account. A block of such lines has at most
	// namedLong tokens; a name that occurs in more than namedIn messages is too common to look for.
	namedShare = 0.15
	namedLong  = 150
	namedIn    = 12
)

// heed rates lines by the account: a line that the account repeats is worth nothing, and is dropped if the model
// wrote it; a line about a name that the account only mentions is worth more.
func (v *rating) heed(account string) {
	if account == "" {
		return
	}
	said := &Conversation{Lines: plain.Each(strings.Split(account, "\n"), func(text string) Line { return Line{Text: text} })}
	names, runs := map[uint64]bool{}, map[uint64]bool{}
	x := finder{c: said}
	for b, more := (block{}), true; more; {
		more = x.find(&b)
		for _, m := range b.mentions {
			names[m.hash] = true
		}
		for _, p := range b.phrases {
			runs[p.hash] = true
		}
	}
	v.named = make([]bool, len(v.r.c.terms))
	named := v.named
	for n, key := range v.r.c.termAt.keys {
		if names[key] {
			named[n] = v.estimate.Names[n] > 0
			v.estimate.Words[n] = 0
		}
	}
	repeated := make([]bool, len(v.r.c.phrases))
	for n, key := range v.r.c.phraseAt.keys {
		if runs[key] {
			repeated[n] = true
			v.estimate.Phrases[n] = 0
		}
	}
	v.heeded = make([]float32, len(v.lines))
	for l := range v.lines {
		again, all := 0, 0
		for _, n := range v.r.c.phrasesOf(l) {
			all++
			if repeated[max(n, ^n)] {
				again++
			}
		}
		switch only := again > 0 && float64(again) > repeating*float64(all); {
		case only && v.r.c.Passages[v.r.c.Lines[l].Passage].Kind == dialog.KindAssistant:
			v.r.c.Lines[l].outdated = true
		case only: // it may be in the middle of lines that are kept
			v.heeded[l] = 0
		case slices.ContainsFunc(v.r.c.TermsOf(l), func(n int32) bool { return named[n] }):
			v.heeded[l] = aboutValue
		default:
			v.heeded[l] = 1
		}
	}
}

// weight returns the factor for the value of the lines of s.
func (v *rating) weight(s core.Span) float32 {
	if v.heeded == nil {
		return 1
	}
	sum := float32(0)
	for _, v := range v.heeded[s.Start:s.End] {
		sum += v
	}
	return sum / float32(s.End-s.Start)
}

// keepNamedByAccount keeps, for each name in the account that no kept line has, the newest lines about it: the
// account says that it matters but not the details.
func keepNamedByAccount(_ context.Context, w *choice) error {
	if w.v.named == nil {
		return nil
	}
	limit := w.spent() + namedShare*float64(w.r.o.Room)
	for p := range slices.Backward(w.passages) {
		if w.passages[p].mode != modeExtract || !w.eligible(p) {
			continue
		}
		lines := w.r.c.Passages[p].Lines
		for l := lines.End - 1; l >= lines.Start; l-- {
			if w.lines[l].at != 0 || w.gone(l) || w.v.heeded[l] == 0 || !slices.ContainsFunc(w.r.c.TermsOf(l), func(n int32) bool {
				return w.v.named[n] && w.terms[n].credit == 0 && w.r.c.terms[n].messages <= namedIn
			}) {
				continue
			}
			s := w.v.blockOf(l)
			if w.cost(s) > namedLong {
				s = core.Span{Start: l, End: l + 1}
			}
			if cost := w.cost(s); w.spent()+cost <= limit {
				w.take(s, cost)
			}
		}
	}
	return nil
}
