package score

import "strings"

// functionWords are English words that carry grammar and no content. Closed classes:
// articles, pronouns, prepositions, conjunctions, auxiliaries, and the commonest adverbs.
var functionWords = wordSet(`
a an the this that these those each every either neither some any no all both few many much more most other another such own same
i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers herself it its itself they them their theirs themselves
who whom whose which what where when why how there here
am is are was were be been being have has had having do does did doing done will would shall should can could may might must ought
and or but nor so yet for if then else than as because since while though although until unless whether
of in on at by to from with without within into onto upon about above below under over between among through during before after against
across along around behind beside near off out up down per via like
not only also too very just now still again already ever never always often
yes ok let lets s t re ve ll d m don doesn didn isn aren wasn weren won wouldn shouldn couldn can cannot im ive
`)

func wordSet(s string) map[uint64]struct{} {
	out := map[uint64]struct{}{}
	for w := range strings.FieldsSeq(s) {
		out[hashWord(w)] = struct{}{}
	}
	return out
}

func isFunctionWord(h uint64) bool {
	_, ok := functionWords[h]
	return ok
}
