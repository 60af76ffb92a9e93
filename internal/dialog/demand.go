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
// prefer, in English, German, French, Spanish and Chinese. Questions demand nothing, but what is only politely put as one does. It does not know what the sentence is about, and
// errs to both sides: "you never know" is not meant, and "I leave that to the others" is.
func DemandOf(sentence string) Demand {
	s := strings.TrimSpace(sentence)
	if len(s) > demandLong || len(s) < 8 {
		return NoDemand
	}
	w := wordsOf(s)
	if len(w) == 0 || Asks(s) {
		return NoDemand
	}
	for i := range demands {
		if demands[i].in(w) {
			return demands[i].is
		}
	}
	return NoDemand
}

// Asks reports whether a sentence asks for an answer. "Could you …?" asks for something else.
func Asks(sentence string) bool {
	s := strings.TrimRight(strings.TrimSpace(sentence), "\"'”»)")
	if !strings.HasSuffix(s, "?") && !strings.HasSuffix(s, "？") && !strings.HasSuffix(s, "吗") {
		return false
	}
	w := wordsOf(s)
	for i := range w {
		if i > 0 && !w[i].begins {
			continue
		}
		for _, rest := range politely.phrases[w[i].text] {
			if follows(w[i+1:], rest) {
				return false
			}
		}
		if asking[w[i].text] {
			return true
		}
	}
	return false
}

// Changes reports whether a sentence says that something holds no longer: instead, no longer, from now on,
// was wrong, has moved. Surely is false if all that says so is "now". What says one thing more changes nothing.
func Changes(sentence string) (yes, surely bool) {
	w := wordsOf(sentence)
	if adds.in(w) || len(w) > 0 && asked[w[0].text] {
		return false, false
	}
	head, _, _ := strings.Cut(sentence, ":")
	surely = changes.in(w) || len(head) < len(sentence) && len(head) < 20 && before.in(wordsOf(head))
	yes = len(w) > 1 && nows.in(w[1:]) // not at the start, where it says what comes next
	return surely || yes || len(w) > 0 && sorry[w[0].text], surely
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
			begins = begins || strings.ContainsRune(",;:.!*—–(，；：。！（、", r)
			i += n
			continue
		}
		if unicode.Is(unicode.Han, r) { // written without spaces: every sign is a word
			out = append(out, word{text: s[i : i+n], begins: begins})
			begins = false
			i += n
			continue
		}
		start := i
		for i < len(s) {
			if r, n = utf8.DecodeRuneInString(s[i:]); !isWordRune(r) && r != '\'' && r != '-' || unicode.Is(unicode.Han, r) {
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
		var w []string
		for _, x := range wordsOf(strings.ReplaceAll(p, "_", " ")) {
			w = append(w, x.text)
		}
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
	asking   = set("so and but well why what how where who which when can could would should is are am do does did has have had will was were warum wie was wo wer kannst pourquoi comment peux por cómo puedes 为 什 怎 哪 谁")
	asked    = set("what why how where who which when whose warum wie wo wer pourquoi comment où qui por cómo dónde 为 怎 哪 谁") // at the start of what no mark ends
	politely = form{phrases: phrases(both("could can would will", "you we i") + ` would_it_be_possible could_it is_it_possible_to would_you_mind how_about what_about
		kannst_du könntest_du können_wir könnten_wir wäre_es_möglich peux-tu pourrais-tu pouvez-vous est-il_possible puedes podrías podemos podríamos 能不能 可以`)}
	softens = set("please pls plz also just and but so ok okay again really remember note bitte")
	joins   = set("and but so then also or please pls bitte und aber")

	demands = []form{
		{
			is: Forbids,
			phrases: phrases(`must_not mustn't may_not should_not shouldn't should_never must_never may_never can_never to_never you_never we_never never_ever never_be never_to not_allowed not_permitted forbidden
				prohibited off-limits off_limits out_of_bounds under_no_circumstances on_no_account in_no_case by_no_means avoid refrain_from stay_away stay_clear steer_clear keep_away keep_out hands_off untouched unchanged
				read-only read_only is_frozen is_locked is_taboo stays_as stay_as as_it_is as_is in_peace leave_alone won't_change nowhere_else nothing_else no_one_else nobody no_one full_stop not_one_more and_no_more
				without_asking without_my without_approval without_the_approval without_permission without_telling without_the_ok unless` +
				both("not do_not", "touch change edit modify delete remove push commit add log print rename merge install") +
				both("nothing", "of in from below that newer larger else") + ` at_most at_the_most no_more_than not_more_than not_more no_longer_than no_larger_than no_fewer_than no_less_than at_least
				not_exceed maximum minimum max min tops upper_limit lower_limit is_the_limit is_the_ceiling the_ceiling is_the_maximum is_the_cap the_cap limited_to limit_is limit_of limit_to ceiling budget_for budget_of budget_is timeout_in
				timeout_is timeout_of quota deadline strictly exclusively only larger_than bigger_than longer_than greater_than higher_than
				niemals nie auf_keinen_fall keinesfalls unter_keinen_umständen verboten untersagt tabu gesperrt schreibgeschützt finger_weg in_ruhe bleibt_wie bleiben_wie wird_nichts höchstens mindestens maximal obergrenze nur ausschließlich
				nicht_mehr_als länger_als größer_als jamais interdit interdite touche_pas en_lecture_seule au_maximum au_plus uniquement seulement sauf_si à_condition
				nunca jamás prohibido prohibida prohibidos prohibidas bloqueada bloqueado como_máximo como_mínimo como_mucho a_lo_sumo no_más ni_te ni_se en_paz tope límite únicamente solamente solo sólo no_toques no_borres no_cambies no_uses no_hagas
				no_modifiques 不要 不能 不得 不准 不许 不可 禁止 严禁 切勿 请勿 别动 别改 别碰 别删 别用 别提 别在 别把 只能 只读 只许 仅限 最多 最少 至少 不超过 超过 上限 下限 以内 锁住 锁定`),
			starts:   set("never don't dont do_not no not ne"),
			measures: set("less fewer more under below above within over beyond max maximum min minimum tops moins menos bis hasta"),
			pairs: [][2]map[string]bool{
				pair("keep stay stays must leave take", "under below within less fewer shorter smaller"),
				pair("leave leaves lass lasst deja dejad laisse", "alone peace ruhe paz tranquille"),
				pair("darf dürfen sollst soll sollen bitte", "nicht nichts kein keine keinen"),
				pair("doit doivent dois devez faut", "pas rien plus"),
				pair("mehr länger", "darf dürfen"),
				pair("gets get is are", "killed rejected dropped reverted refused"),
			},
		},
		{
			is: Requires,
			phrases: phrases(`must always make_sure be_sure ensure required requires mandatory compulsory obliged i_insist i_expect make_it_a_habit from_now_on going_forward every_time each_time whenever as_a_rule remember_to
				remember_that keep_in_mind reminder ask_me check_with_me before_you after_you once_you before_anything before_any stick_to sign-off signs_off approve approval protected stuck_with stuck_on has_got_to have_got_to got_to gotta
				or_it_doesn't or_not_at_all take_it_or_leave_it supposed_to is_to_be are_to_be` +
				both("you it they that this we everything there", "have_to need_to needs_to has_to ought_to should") +
				both("has_to have_to needs_to need_to", "be run stay finish arrive pass work keep use go have get follow match fit") + `
				muss müssen immer stets ab_jetzt ab_sofort künftig geschützt achte_darauf sorge_dafür jedes_mal pflicht doit doivent toujours il_faut désormais protégé protégée obligatoire
				siempre debe deben debes hay_que tiene_que tienen_que tienes_que a_partir_de_ahora protegida protegido obligatorio cada_vez 必须 务必 一定 需要 应该 应当 要求 每次 总是 始终 记得 确保 保证`),
			pairs: [][2]map[string]bool{
				pair("every each all any whoever whatever everything anything", "need needs have has gets goes go should must"),
				pair("without", "isn't not won't"),
			},
		},
		{
			is: Prefers,
			phrases: phrases(`prefer preferred prefers preferably rather favorite favourite ideally if_possible if_you_can i'd_like i_would_like i_like i_love i'd_love best better nicer my_choice would_be_nice would_be_great
				it'd_be_nice instead_of let's_go_with go_with let's_use let's_stick keep_it keep_your try_to if_it's_all_the_same would_you_mind fine_with_me fine_by_me would_do so_i_can
				the_goal the_aim the_point the_job the_plan end_state done_means we_are_done happy eventually in_the_end
				lieber am_liebsten gern gerne gefällt bevorzuge vorzugsweise wenn_möglich wenn's_geht am_ende_soll ziel préfère préférerais plutôt de_préférence si_possible j'aimerais le_but prefiero preferiría preferentemente si_es_posible
				mejor me_gusta me_gustaría la_meta el_objetivo lo_que_busco al_final 喜欢 最好 希望 尽量 优先 更好 习惯 目标 想要 为了`),
			starts: set("use keep answer reply name mention format follow write wrap draw call"),
			units:  set("ms µs us ns sec second seconds min minute minutes hour hours day days b kb mb gb kib mib gib bytes percent px rows lines columns characters words tokens requests"),
		},
	}

	changes = form{
		phrases: phrases(`instead no_longer not_any_more anymore from_now_on from_today from_here from_this these_days this_week this_sprint after_all rather_than retired is_gone are_gone the_old_one correction change_of_plans change_of_plan
		new_number new_numbers changed_my_mind on_second_thought second_thoughts scratch_that scratch_what scratch forget_what forget_the forget_that ignore_what_i disregard handover rethinking something_else something_different different_name as_of
		not_the_one not_the_old not_the_other not_the_previous no_more i_was_wrong my_mistake my_bad my_fault i_misspoke i_meant oops going_forward reconsidered recounted thought_again looked_again looked_it_up_again
		effective_immediately starting_today starting_now henceforth used_to came_back backed_out let's_be_more came_in the_other_one` +
			both("was were is are been have has had they we i ops it got gets get it's i've i'm we've they've she he that's just",
				`replaced renamed moved migrated switched swapped rotated upgraded updated downgraded changed mistaken corrected wrong mixed confused converted relocated reset resized reinstalled reconfigured reorganised reorganized rebased
			revised raised lowered reduced increased extended shortened frozen froze tired new a_new a_different another retired off`) +
			both("moved switched swapped mixed corrected changed upgraded renamed rotated handed reset resized reinstalled reconfigured revised raised lowered rebased voted", "its our the me things over hands house to it by us last") + `
		stattdessen nicht_mehr ab_jetzt ab_sofort doch_anders neue_vorgabe korrektur vertan geirrt umzug geändert getauscht umgestellt umbenannt umgezogen umgedacht umgeräumt verschoben nachverhandelt neuerdings inzwischen mittlerweile was_anderes
		etwas_anderes nicht_an_dem désormais plutôt_que à_la_place nouveau_chiffre trompé changé déplacé renommé remplacé finalement a_partir_de_ahora en_lugar en_vez corrijo corrección equivoqué cambio_de_planes cambió cambiado cambiaron movido
		movieron renombrado ampliaron borraron otro_destino pasa_a_ser lo_pensé ya_no 更正 改成 改为 改用 换成 换了 调整 迁移 升级了 不再 之前说 算了`),
		pairs: [][2]map[string]bool{
			pair("changed switched moved renamed swapped rotated reconfigured resized upgraded rebased", "now it's is to its are"),
			pair("the our their your der die das la el", "changed switched renamed moved rotated swapped reconfigured"),
		},
	}
	adds   = form{phrases: phrases("also too can_now could_now another additionally as_well in_addition auch außerdem zusätzlich aussi también además 还有 另外 也")}
	sorry  = set("sorry wait actually entschuldigung perdón perdona pardon")
	before = form{phrases: phrases("update edit news correction change erratum nachtrag actualización 更新")} // before a colon
	nows   = form{phrases: phrases("now since nun jetzt doch maintenant ahora 现在")}
)

// Sentences returns where the sentences of a line are. Put together they are the line: the space between two
// begins the second.
func Sentences(line string) []core.Span {
	var out []core.Span
	start := 0
	for i := 0; i+2 < len(line); i++ {
		b := line[i]
		if rest := line[i+1:]; (strings.HasPrefix(line[i:], "。") || strings.HasPrefix(line[i:], "！") || strings.HasPrefix(line[i:], "？")) && len(rest) > 2 {
			out = append(out, core.Span{Start: start, End: i + len("。")})
			start = i + len("。")
			continue
		}
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
