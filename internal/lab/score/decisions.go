package score

import (
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

const (
	decisionMessages = 12 // before the cut that do not count: every strategy keeps some of them
	decisionBytes    = 24 // of the shortest sentence that counts
)

// The forms of sentences that state a cause, a choice or a finding. They belong to the measure: no strategy may
// import them, and none was copied from a strategy.
var (
	causes = plain.Pattern(`(?i)\b(?:because|due to|stems? from|(?:is|was|are|were) caused by|the (?:\w+ )?(?:cause|reason|culprit)|(?:this|that|which) is why|traced? (?:it )?(?:back )?to|` +
		`weil|deshalb|Grund dafür|parce que|à cause d|a causa de|debido a|por causa d)|因为|由于|导致`)
	choices = plain.Pattern(`(?i)\b(?:(?:I|we)(?:'ve| have)? (?:decided|chose|opted|settled|agreed|picked|rejected|dropped|discarded)|decision|decided (?:to|against|on|that)|rather than|instead of|` +
		`(?:go|going|went|stick|sticking|stuck) with|in favou?r of|rul(?:e|es|ed|ing) out|ruled it out|out of scope|won't (?:fix|do|change|support)|not worth|` +
		`wir nehmen|entschieden|statt dessen|stattdessen|verworfen|nous avons choisi|plutôt que|décidé|decid(?:imos|í|ido)|en vez de|em vez de)|决定|选择了|改为|放弃`)
	findings = plain.Pattern(`(?i)\b(?:turn(?:s|ed) out|(?:I|we)(?:'ve| have)? (?:found|confirmed|verified|measured|reproduced|noticed|discovered|established)|(?:found|confirmed|verified|proves?|proved|shows?|showed) that|` +
		`the (?:\w+ )?(?:bug|problem|issue|fault|defect|fix|difference|failure|error) (?:is|was|lies|comes|came)|measured|reproduc(?:es|ed|ible)|only (?:fails?|happens?|occurs?) (?:when|if|on|with)|` +
		`(?:still|remains?) (?:to do|open|unfixed|unresolved|broken|failing)|the (?:only )?remaining (?:\w+ )?(?:is|are)|stellt sich heraus|liegt (?:daran|an)|gemessen|behoben|il s'avère|resulta que|a falha é)|发现|原来|问题是|根本原因`)
)

// plans begin sentences that only announce the next step.
var plans = plain.Pattern(`(?i)^(?:(?:now|so|ok|okay|next|then|first)[, ]+)?let me\b`)

// listMark matches the beginning of a list item, a quote or a heading.
var listMark = plain.Pattern(`^(?:[-*•>#]+|\d+[.)])\s+`)

// decisionsOf calls yield with every sentence of text, white space folded, that states a cause, a choice or a
// finding. Code between fences, questions, plans and the heads of lists do not count.
func decisionsOf(text string, yield func(sentence string)) {
	code := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			continue
		}
		if code {
			continue
		}
		line = listMark().ReplaceAllString(folded(line), "")
		sentences(line, func(start, end int) {
			s := strings.TrimSpace(line[start:end])
			if len(s) >= decisionBytes && !strings.HasSuffix(s, "?") && !strings.HasSuffix(s, ":") && !plans().MatchString(s) && (causes().MatchString(s) || choices().MatchString(s) || findings().MatchString(s)) {
				yield(s)
			}
		})
	}
}

// readDecisions returns the decisions that the agent wrote before the cut, except in the newest messages, each once.
func (s *Scorer) readDecisions() []string {
	var out []string
	seen := map[string]bool{}
	prefix := s.cut.Prefix()
	for m := range prefix[:max(0, len(prefix)-decisionMessages)] {
		for p, part := range prefix[m].Parts {
			t, ok := part.(core.Text)
			if !ok || s.cut.Session.Origin(m, p) != OriginAgent {
				continue
			}
			decisionsOf(string(t), func(sentence string) {
				if !seen[sentence] {
					seen[sentence] = true
					out = append(out, sentence)
				}
			})
		}
	}
	return out
}

// decisionsKept returns the share of these sentences that are in view verbatim, except for white space.
func (s *Scorer) decisionsKept(view []core.Message) Share {
	decisions := s.readGoing().decisions
	out := Share{Needed: float64(len(decisions))}
	if len(decisions) == 0 {
		return out
	}
	var b strings.Builder
	for i := range view {
		blocks(view[i].Parts, func(_ int, text string) { b.WriteString(folded(text) + "\n") })
	}
	text := b.String()
	for _, d := range decisions {
		if strings.Contains(text, d) {
			out.Kept++
		}
	}
	return out
}
