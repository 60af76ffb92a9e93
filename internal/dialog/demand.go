package dialog

import (
	"strings"
	"unicode"
	"unicode/utf8"

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
	w := wordsOf(s)
	if len(w) == 0 || strings.HasSuffix(s, "?") && asking[w[0].text] {
		return NoDemand
	}
	for i := range demands {
		if demands[i].in(w) {
			return demands[i].is
		}
	}
	return NoDemand
}

// Changes reports whether a sentence says that something holds no longer: instead, no longer, from now on,
// was wrong, has moved. Surely is false if all that says so is "now". What says one thing more changes nothing.
func Changes(sentence string) (yes, surely bool) {
	w := wordsOf(sentence)
	if adds.in(w) {
		return false, false
	}
	surely = changes.in(w)
	for i := 1; i < len(w) && !yes; i++ { // not at the start, where it says what comes next
		yes = nows[w[i].text]
	}
	return surely || yes, surely
}

// A word is one of a sentence, in lower case.
type word struct {
	text   string
	begins bool // a clause begins with it
	number bool
}

// wordsOf returns the words of a sentence.
func wordsOf(s string) []word {
	s = strings.ToLower(strings.ReplaceAll(s, "’", "'"))
	out := make([]word, 0, len(s)/5+1)
	begins := true
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isWordRune(r) {
			begins = begins || strings.ContainsRune(",;:.!*—–(", r)
			i += n
			continue
		}
		start := i
		for i < len(s) {
			if r, n = utf8.DecodeRuneInString(s[i:]); !isWordRune(r) && r != '\'' && r != '-' {
				break
			}
			i += n
		}
		w := word{text: strings.TrimRight(s[start:i], "'-"), begins: begins, number: s[start] >= '0' && s[start] <= '9'}
		out = append(out, w)
		begins = begins && softens[w.text] || joins[w.text]
	}
	return out
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// A form is how sentences of one kind are recognized: any of these is enough.
type form struct {
	is       Demand
	phrases  map[string][][]string // by their first word
	starts   map[string]bool       // words with which a clause begins, or two of them with a "_" between
	pairs    [][2]map[string]bool  // a word, and not far after it another one
	measures map[string]bool       // words before a number
	units    map[string]bool       // words after a number
}

const farAfter = 10 // words

func (f *form) in(w []word) bool {
	for i := range w {
		t := w[i].text
		for _, rest := range f.phrases[t] {
			if follows(w[i+1:], rest) {
				return true
			}
		}
		if w[i].begins && i+1 < len(w) && (f.starts[t] || f.starts[t+"_"+w[i+1].text]) {
			return true
		}
		if w[i].number {
			digits := strings.TrimRightFunc(t, unicode.IsLetter)
			if f.units[t[len(digits):]] || i+1 < len(w) && f.units[w[i+1].text] {
				return true
			}
			if i > 0 && f.measures[w[i-1].text] || i > 1 && (w[i-1].text == "than" || w[i-1].text == "de") && f.measures[w[i-2].text] {
				return true
			}
		}
		for _, p := range f.pairs {
			if !p[0][t] {
				continue
			}
			for k := i + 1; k < min(len(w), i+1+farAfter); k++ {
				if p[1][w[k].text] {
					return true
				}
			}
		}
	}
	return false
}

func follows(w []word, rest []string) bool {
	for i, r := range rest {
		if i >= len(w) || w[i].text != r {
			return false
		}
	}
	return true
}

// phrases returns an index of phrases, given with spaces between them, and a "_" for a space in one.
func phrases(list string) map[string][][]string {
	out := map[string][][]string{}
	for p := range strings.FieldsSeq(list) {
		w := strings.Split(p, "_")
		out[w[0]] = append(out[w[0]], w[1:])
	}
	return out
}

func set(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		out[w] = true
	}
	return out
}

func pair(first, second string) [2]map[string]bool {
	return [2]map[string]bool{set(first), set(second)}
}

// both returns all pairs of a word of one list and one of another, as phrases.
func both(first, second string) string {
	var b strings.Builder
	for x := range strings.FieldsSeq(first) {
		for y := range strings.FieldsSeq(second) {
			b.WriteString(" " + x + "_" + y)
		}
	}
	return b.String()
}

var (
	asking  = set("so and but well why what how where who which when can could would should is are am do does did has have had will was were warum wie was wo kannst pourquoi comment peux por cómo puedes")
	softens = set("please pls also just and but so ok okay again really bitte")
	joins   = set("and but so then also or please bitte und aber")

	demands = []form{
		{
			is: Forbids,
			phrases: phrases(`must_not mustn't may_not should_not shouldn't should_never must_never may_never can_never to_never you_never we_never never_ever never_be never_to not_allowed not_permitted forbidden
				prohibited off-limits off_limits under_no_circumstances on_no_account in_no_case by_no_means avoid refrain_from stay_away stay_clear keep_away keep_out hands_off untouched unchanged
				nowhere_else without_asking without_my without_approval without_the_approval without_permission without_telling without_the_ok unless_i` +
				both("not do_not", "touch change edit modify delete remove push commit add log print rename merge install") +
				both("nothing", "of in from below that newer larger else") + ` at_most at_the_most no_more_than not_more_than not_more no_longer_than no_larger_than no_fewer_than no_less_than at_least
				not_exceed maximum is_the_limit is_the_ceiling is_the_maximum is_the_cap limited_to limit_is limit_of limit_to ceiling strictly exclusively only
				niemals nie auf_keinen_fall unter_keinen_umständen verboten untersagt höchstens mindestens maximal nur ausschließlich nicht_mehr_als
				jamais interdit interdite au_maximum au_plus uniquement seulement sauf_si
				nunca jamás prohibido como_máximo como_mínimo únicamente solamente solo sólo no_toques no_borres no_cambies no_uses no_hagas no_modifiques`),
			starts:   set("never don't dont do_not no not ne"),
			measures: set("less fewer more under below above within over max maximum moins menos"),
			pairs: [][2]map[string]bool{
				pair("keep stay stays must leave take", "under below within less fewer shorter smaller"),
				pair("darf dürfen sollst soll sollen bitte", "nicht nichts kein keine keinen"),
				pair("doit doivent dois devez faut", "pas rien plus"),
				pair("mehr", "darf dürfen"),
			},
		},
		{
			is: Requires,
			phrases: phrases(`must always make_sure be_sure ensure required requires mandatory i_insist i_expect make_it_a_habit from_now_on going_forward every_time each_time whenever as_a_rule remember_to
				remember_that keep_in_mind ask_me check_with_me before_you after_you once_you stick_to sign-off signs_off approve approval protected stuck_with` +
				both("you it they that this we everything there", "have_to need_to needs_to has_to ought_to should") +
				both("has_to have_to needs_to need_to", "be run stay finish arrive pass work keep use go have get follow match") + `
				muss müssen immer stets ab_jetzt ab_sofort künftig geschützt achte_darauf sorge_dafür doit doivent toujours il_faut désormais protégé protégée obligatoire
				siempre debe deben debes hay_que tiene_que tienen_que tienes_que a_partir_de_ahora protegida protegido obligatorio`),
			pairs: [][2]map[string]bool{pair("every each all any", "need needs have has gets goes should")},
		},
		{
			is: Prefers,
			phrases: phrases(`prefer preferred prefers preferably rather favorite favourite ideally if_possible if_you_can i'd_like i_would_like i_like i_love i'd_love best better my_choice would_be_nice
				it'd_be_nice instead_of let's_go_with go_with let's_use let's_stick keep_it keep_your try_to
				lieber am_liebsten bevorzuge vorzugsweise wenn_möglich préfère préférerais plutôt de_préférence si_possible prefiero preferiría preferentemente si_es_posible mejor`),
			starts: set("use keep answer reply name mention format follow"),
			units:  set("ms sec second seconds min minute minutes hour hours day days kb mb gb kib mib gib percent px rows lines characters tokens requests"),
		},
	}

	changes = form{phrases: phrases(`instead no_longer anymore from_now_on from_today from_here these_days after_all rather_than retired is_gone are_gone the_old_one correction change_of_plans change_of_plan
		new_number new_numbers changed_my_mind on_second_thought scratch_that forget_what forget_the ignore_what_i handover rethinking something_else as_of_today not_the_one not_the_old not_the_other
		not_the_previous i_was_wrong` +
		both("was were is are been have has they we i ops it got it's i've i'm", "replaced renamed moved migrated switched rotated upgraded changed mistaken corrected wrong mixed converted tired new a_new") +
		both("moved switched mixed corrected changed upgraded renamed rotated handed", "its our the me things over hands house to") + `
		stattdessen nicht_mehr ab_jetzt ab_sofort doch_anders neue_vorgabe vertan geirrt umzug geändert désormais plutôt_que à_la_place nouveau_chiffre trompé changé
		a_partir_de_ahora en_lugar en_vez equivoqué cambio_de_planes cambiado ya_no`)}
	adds = form{phrases: phrases("also too another additionally as_well auch außerdem aussi también can_now could_now")}
	nows = set("now nun jetzt maintenant ahora")
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
