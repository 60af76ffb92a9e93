package benchdata

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A writer makes text with realistic statistics for a token counter and a search for
// repetitions: common words in changing order, identifiers made of them, and
// punctuation and indentation as in a source file.
type writer struct {
	rand  *rand.Rand
	reads []read // that are not repetitions, oldest first
}

func (w *writer) pick(words []string) string { return words[w.rand.IntN(len(words))] }

// around returns a size that differs from the mean by at most half of it.
func (w *writer) around(mean int) int { return mean/2 + w.rand.IntN(mean+1) }

// prose returns sentences of about the given number of bytes on average.
func (w *writer) prose(mean int) string {
	var b strings.Builder
	for size := w.around(mean - 30); b.Len() < size; {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.sentence())
	}
	return b.String()
}

func (w *writer) sentence() string {
	s := fmt.Sprintf(w.pick(sentences), w.pick(verbs), w.pick(adjectives), w.pick(nouns), w.pick(nouns))
	return strings.ToUpper(s[:1]) + s[1:]
}

// source returns lines of a source file of about the given number of bytes on average.
func (w *writer) source(mean int) string {
	var b strings.Builder
	for size := w.around(mean - 75); b.Len() < size; {
		name := w.pick(verbs) + title(w.pick(nouns))
		arg := w.pick(nouns)
		fmt.Fprintf(&b, "// %s %s\n", name, w.sentence())
		fmt.Fprintf(&b, "func (%s *%s) %s(ctx context.Context, %s string) error {\n", arg[:1], title(w.pick(nouns)), name, arg)
		for range 1 + w.rand.IntN(3) {
			fmt.Fprintf(&b, w.pick(statements), arg, w.pick(verbs), title(w.pick(nouns)), w.rand.IntN(100))
		}
		b.WriteString("\treturn nil\n}\n\n")
	}
	return b.String()
}

func (w *writer) path(turn int) string {
	return fmt.Sprintf("internal/%s/%s_%d.go", w.pick(nouns), w.pick(verbs), turn)
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Each takes a verb, an adjective and two nouns.
var sentences = []string{
	"please %s the %s %s before anything else touches the %s.",
	"I would %[1]s the %[3]s first, because the %[2]s %[4]s depends on it.",
	"the tests %[1]s a %[2]s %[3]s and expect that the %[4]s does not change.",
	"when we %[1]s the %[3]s, the %[4]s is no longer %[2]s, and that is the reason for the failure.",
	"this function does not %[1]s the %[2]s %[3]s; it only looks at the %[4]s.",
	"there is a %[2]s %[3]s in the %[4]s that nobody has tried to %[1]s.",
	"after the change we can %[1]s every %[3]s in the %[4]s, even a %[2]s one.",
	"it is not %[2]s to %[1]s the %[3]s while the %[4]s is still in use.",
}

// Each takes a name, a verb, a noun with a capital and a number.
var statements = []string{
	"\tif err := %[1]s.%[2]s%[3]s(ctx); err != nil {\n\t\treturn fmt.Errorf(\"%[2]s %[1]s: %%w\", err)\n\t}\n",
	"\tresult, err := %[2]s%[3]s(ctx, %[1]s, %[4]d)\n",
	"\tfor _, value := range %[1]s.%[3]s {\n\t\t%[2]s(value)\n\t}\n",
	"\tlogger.InfoContext(ctx, \"%[2]s the %[1]s\", \"count\", %[4]d)\n",
	"\tdefer %[1]s.%[3]s.Close() // we %[2]s it no longer\n",
}

var verbs = strings.Fields(`add allow append apply attach begin build cache call cancel change check clear
	close collect commit compare compile complete compute configure connect convert copy count create decode define
	delete deliver describe detect disable drain drop emit enable encode end escape evaluate examine execute expand
	expect export extend fetch fill filter find finish flush follow format generate group handle hide import index
	insert inspect install keep limit link list load lock log match measure merge modify move name notify open order
	parse pass print process publish push query queue quote read receive record reduce refresh register reject
	release remove rename render repeat replace report request reset resolve restore retry return review rewrite
	rotate run sample save scan schedule search select send serve set shorten show skip sort split start stop store
	stream submit sum sync test trace track transform translate trim update upload use validate verify wait walk
	watch wrap write`)

var adjectives = strings.Fields(`absolute active actual additional ancient atomic automatic available average bare
	basic binary blank blocking brief broken busy cached cheap circular clean clear closed common complete concrete
	concurrent constant correct critical current custom dead default different direct dirty distant double dynamic
	early empty equal exact existing expensive explicit external fast final first fixed fresh full generic global
	greedy hidden implicit incomplete independent initial inner internal invalid large last late lazy legal linear
	literal local long missing mixed mutable narrow native nested new nil normal obsolete old open optional ordered
	original outer partial pending plain possible previous private public random raw ready real recent recursive
	redundant relative remote required safe separate shared short signed silent simple single slow small special
	stable stale static strict temporary total unique unknown unused upper useful valid visible whole wrong`)

var nouns = strings.Fields(`account action address alias answer archive argument array attempt balance batch block
	body boundary branch bucket budget buffer builder bundle byte cache caller channel chunk client clock column
	command comment commit condition config connection constant container context contract conversation cookie
	counter cursor customer database deadline decision decoder default delay dependency directory document domain
	edge editor element encoder endpoint entry environment error event example exception expression factory failure
	feature field file filter flag folder format fragment frame function gateway graph group handler header history
	host identifier image index input instance interface interval invoice item iterator job journal key label layer
	lease length level library limit line link list listener loader lock logger loop mapping marker member memory
	message method metric migration mode model module monitor name network node number object offset operation
	option order output owner package page panel parameter parent parser password path pattern payload peer period
	permission pipeline plan platform plugin point policy pool port position prefix process profile project promise
	property protocol provider proxy query queue range rate reader receiver record reference region registry release
	renderer replica report repository request resource response result role route row rule runner sample schedule
	schema scope script section segment sender sequence server service session setting shape signal size snapshot
	socket source stack stage state statement status step storage strategy stream string structure subject suffix
	summary switch symbol system table tag target task template tenant test thread threshold timeout timer token tool
	topic trace transaction transcript transfer transport tree trigger type unit update user value variable vendor
	version view warning watcher window worker writer zone`)
