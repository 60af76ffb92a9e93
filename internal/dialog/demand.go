package dialog

import (
	"regexp"
	"strings"

	"github.com/condensehq/condense/core"
)

// A Demand says how a sentence of the user binds the agent for longer than the next step.
type Demand uint8

// The demands, the weakest first.
const (
	NoDemand Demand = iota
	Prefers         // wishes and habits: I prefer, rather, if possible
	Requires        // must, need, make sure, before you
	Forbids         // never, do not, off limits; and limits: only, at most
)

// demandLong is the size of a sentence in bytes above which it is no demand but a paste.
const demandLong = 400

// DemandOf returns what a sentence of the user demands, by its form: by words that forbid, require, limit or
// prefer, in English, German, French and Spanish. Questions demand nothing. It does not know what the sentence is about, and
// errs to both sides: "you never know" is not meant, and "I leave that to the others" is.
func DemandOf(sentence string) Demand {
	s := strings.TrimSpace(sentence)
	if len(s) > demandLong || len(s) < 8 {
		return NoDemand
	}
	s = strings.ToLower(strings.ReplaceAll(s, "’", "'"))
	if strings.HasSuffix(s, "?") && asksFor.MatchString(s) {
		return NoDemand
	}
	for _, d := range demands {
		if d.form.MatchString(s) {
			return d.is
		}
	}
	return NoDemand
}

// Changes reports whether a sentence says that something holds no longer as it was said: instead, no longer,
// from now on, was wrong, has moved. Surely is false if all that says so is "now".
func Changes(sentence string) (yes, surely bool) {
	s := strings.ToLower(strings.ReplaceAll(sentence, "’", "'"))
	if adds.MatchString(s) {
		return false, false
	}
	surely = changes.MatchString(s)
	return surely || nows.MatchString(s), surely
}

// words returns an expression for any of several, given with spaces between them; "_" in one is a space.
func words(list string) string {
	alternatives := strings.Fields(list)
	for i, w := range alternatives {
		alternatives[i] = strings.ReplaceAll(w, "_", `\s+`)
	}
	return `(?:^|[^\p{L}\p{N}'-])(?:` + strings.Join(alternatives, "|") + `)(?:$|[^\p{L}\p{N}-])`
}

// begin is where a clause begins: at the start of the sentence or after a sign, and words that may come first.
const begin = `(?:^|[,;:.!*—–-]\s*|\b(?:and|but|so|then|also|or)\s+)(?:(?:please|pls|also|just|and|but|so|ok|okay|by the way|again|really)[,:]?\s+)*`

var (
	asksFor = regexp.MustCompile(`^(?:so|and|but|ok|okay|hm+|well)?,?\s*(?:why|what|how|where|who|which|when|can|could|would|should|is|are|am|do|does|did|has|have|will|was|were|warum|wie|was|wo|kannst|pourquoi|comment|peux|por qué|cómo|puedes)\b`)

	demands = []struct {
		is   Demand
		form *regexp.Regexp
	}{
		{Forbids, regexp.MustCompile(strings.Join([]string{
			begin + `(?:never|do not|don't|dont|no|not)\s`,
			words(`must_not mustn't may_not should_not shouldn't should_never must_never may_never can_never to_never you_never we_never never_ever never_be never_to not_allowed not_permitted forbidden prohibited off-limits off_limits under_no_circumstances on_no_account in_no_case by_no_means avoid refrain_from stay_away stay_clear keep_away keep_out hands_off leave_alone untouched unchanged nowhere_else`),
			words(`without_(?:asking|my|approval|the_approval|the_consent|permission|telling|the_ok|first) unless_i not_(?:be_|to_)?(?:touch|change|edit|modify|delete|remove|push|commit|use|add|log|print|rename|merge|call|install)\w* nothing_(?:of|from|in|below|that|newer|larger|else)`),
			words(`at_most at_the_most no_more_than not_more_than not_more no_longer_than no_larger_than no_fewer_than no_less_than at_least not_exceed mustn't_exceed maximum max_\d+ up_to_\d+ limit(?:ed)?_(?:of|is|to|for) is_the_(?:limit|ceiling|maximum|cap|budget) ceiling strictly exclusively only`),
			`\b(?:less|fewer|more|under|below|above|within|over|than|budget is|budget of)\s+(?:than\s+)?\d`,
			`\b(?:keep|stay|stays|must|has to|have to|needs? to|leave|take)\b.{0,60}\b(?:under|below|within|less|fewer|shorter|smaller)\b`,
			words(`niemals nie auf_keinen_fall unter_keinen_umständen verboten untersagt höchstens mindestens maximal nur ausschließlich`),
			`\b(?:darf|dürfen|sollst|soll|sollen|bitte)\b.{0,60}\b(?:nicht|nichts|kein|keine|keinen)\b`, `\bnicht mehr als\b`, `\bmehr als \S+ \S+ darf\b`, `\b(?:nicht|kein\w*)\b.{0,40}\bdürfen\b`,
			words(`jamais interdit interdite au_maximum au_plus uniquement seulement sauf_si`), begin + `(?:ne\s+|n')\S+\s+(?:pas|rien|plus)\b`, `\b(?:doit|doivent|dois|devez|faut)\s+(?:pas|rien|plus)\b`, `\bmoins de\s+\d`,
			words(`nunca jamás prohibido como_máximo como_mínimo únicamente solamente solo sólo`), begin + `no\s+\S+(?:es|as|áis|éis)\b`, `\bmenos de\s+\d`,
		}, "|"))},
		{Requires, regexp.MustCompile(strings.Join([]string{
			words(`must always make_sure be_sure ensure required requires mandatory i_insist i_expect make_it_a_habit from_now_on going_forward every_time each_time whenever as_a_rule remember_to remember_that keep_in_mind ask_me check_with_me before_you after_you once_you stick_to has_to_approve sign-off signs_off have_to_approve approval protected stuck_with`),
			words(`(?:you|it|they|that|this|we|everything|there)_(?:have_to|need_to|needs_to|has_to|ought_to|should|shall)`),
			`\b(?:every|each|all|any)\b.{0,60}\b(?:needs?|have|has|gets?|goes|go|should|shall)\b`,
			`\b(?:has|have|needs?) to (?:be|run|stay|finish|arrive|pass|work|keep|use|go|have|get|follow|match)\b`,
			words(`muss müssen immer stets ab_jetzt ab_sofort künftig geschützt achte_darauf sorge_dafür`),
			words(`doit doivent toujours il_faut désormais protégé protégée obligatoire`),
			words(`siempre debe deben debes hay_que tiene_que tienen_que tienes_que a_partir_de_ahora protegida protegido obligatorio`),
		}, "|"))},
		{Prefers, regexp.MustCompile(strings.Join([]string{
			words(`prefer preferred prefers preferably rather favou?rite ideally if_possible if_you_can i'd_like i_would_like i_like i_love i'd_love best better my_choice would_be_nice it'd_be_nice instead_of let's_go_with go_with let's_use let's_stick keep_it keep_your try_to`),
			begin + `(?:use|keep|answer|reply|write|name|call|mention|format|follow|put)\s`,
			`\bplease\s+(?:use|keep|answer|reply|write|name|call|mention|format|follow|put)\s`,
			`,\s*please\b|,\s*pls\b`,
			`\d\s?(?:ms|sec|seconds?|min|minutes?|hours?|days?|kb|mb|gb|kib|mib|gib|%|percent|px|rows|lines|characters|tokens|requests)(?:$|[^\p{L}])`,
			words(`lieber am_liebsten bevorzuge vorzugsweise wenn_möglich`),
			words(`préfère préférerais plutôt de_préférence si_possible`),
			words(`prefiero preferiría preferentemente si_es_posible mejor`),
		}, "|"))},
	}

	changes = regexp.MustCompile(strings.Join([]string{
		words(`instead no_longer not_any_more anymore from_now_on from_today from_here these_days from_here after_all (?:got|get|is|are|have|has)_(?:a_)?new is_gone are_gone the_old_one rather_than retired (?:was|were|is|are|been|have|has|they|we|i|ops|it|got|it's|i've|i'm)_(?:replaced|renamed|moved|migrated|switched|rotated|upgraded|changed|mistaken|corrected|wrong|mixed|converted|tired) (?:moved|switched|mixed|corrected|changed|upgraded|renamed|rotated|handed)_(?:its|our|the|me|things|over|hands|house|to|the_\\w+|it) correction: change_of_plans? new_numbers? changed_my_mind on_second_thought scratch_that forget_(?:what|the|about)_ ignore_what_i handover rethinking something_else as_of_today`),
		words(`stattdessen nicht_mehr ab_jetzt ab_sofort doch_anders neue_vorgabe vertan geirrt umzug geändert`),
		words(`désormais plutôt_que à_la_place nouveau_chiffre nouvelle trompé changé`),
		words(`a_partir_de_ahora en_lugar en_vez equivoqué cambio_de_planes cambiado ya_no`),
	}, "|"))
	// What says one thing more takes nothing back, nor does a reminder.
	adds = regexp.MustCompile(words(`also too another additionally as_well auch außerdem aussi también can_now could_now`))
	// Not at the start, where it says what comes next.
	nows = regexp.MustCompile(`[\p{L}\p{N}]\S*\s+(?:now|nun|jetzt|maintenant|ahora)(?:$|[^\p{L}\p{N}])`)
)

// Sentences returns where the sentences of a line are. Put together they are the line: the space between two
// begins the second.
func Sentences(line string) []core.Span {
	var out []core.Span
	start := 0
	for i := 0; i+2 < len(line); i++ {
		b := line[i]
		if b != '.' && b != '!' && b != '?' || line[i+1] != ' ' || i-start < 3 {
			continue
		}
		if b == '.' && (line[i-1] == '.' || short(line[start:i])) {
			continue
		}
		out = append(out, core.Span{Start: start, End: i + 1})
		start = i + 1
	}
	return append(out, core.Span{Start: start, End: len(line)})
}

// short reports whether s ends with an abbreviation or a number of a list, after which a sentence goes on.
func short(s string) bool {
	w := strings.ToLower(s[strings.LastIndexByte(s, ' ')+1:])
	switch w {
	case "e.g", "i.e", "z.b", "etc", "vs", "cf", "no", "nr", "ca", "approx":
		return true
	}
	return len(w) == 1 || len(w) <= 2 && strings.Trim(w, "0123456789") == ""
}
