package dialog

import (
	_ "embed"
	"strings"
	"sync"
)

// A tongue is how people demand things in one language. Words are compared in lower case, without accents and
// apostrophes ("don't" is dont), and each sign of Chinese and Japanese is a word.
//
// Its lists are, by name: marks, frequent words by which the language is recognized (none for one with signs of its own); subjects,
// after which a verb is no imperative; soft, with which a clause only begins; joins, after which another clause begins; classes of
// words, whose names are in braces; and patterns: asks, beginnings of questions, even of those without a mark; excuses, which demand
// nothing, and whose words match no other pattern; hedges, signs of a report; forbids, requires and prefers.
//
// Patterns are separated by commas. A pattern is a sequence of words within a clause:
//
//	a|b     one of these words, or of a class of that name in braces
//	a+b|c   a phrase or a word
//	!a|b    a word that is none of these
//	_       any word
//	*ing    a word that ends so
//	#       a number; ` is a name or a quotation
//	..      up to gapLong words, or none; once in a pattern
//	/       the next word begins another clause
//	$       the sentence ends
//
// A pattern with ^ before it matches where a clause begins, one with ~ not after a subject of the language. One with ?
// is weak: it counts only in a sentence without a hedge.
type tongue struct {
	name  string
	lists map[string]string
}

//go:embed demand_words.txt
var tonguesText string

// tongues are the languages of the file: "= NAME" begins one, "LIST:" a list, and a tab a line that continues it.
var tongues = sync.OnceValue(func() (all []tongue) {
	list := ""
	for line := range strings.Lines(tonguesText) {
		if name, begins := strings.CutPrefix(line, "= "); begins {
			all = append(all, tongue{strings.TrimSpace(name), map[string]string{}})
			continue
		}
		if !strings.HasPrefix(line, "\t") {
			list, line, _ = strings.Cut(line, ":")
		}
		if strings.TrimSpace(line) != "" {
			all[len(all)-1].lists[list] += line
		}
	}
	return all
})
