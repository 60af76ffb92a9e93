package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// request is the task of TestViews. Its constraints are for the whole of the work.
const request = `Orders of more than 100 lines are exported with a wrong total. Find the cause and fix it: each line has to be rounded to cents by itself, half up, and the total is the sum of the rounded lines.
Do not touch anything below billing/, the auditors have signed it off. Keep the signature export_order(order, currency) as it is: partners call it.
Run ./check.sh totals after each change, and ./check.sh currency before you finish. Both have to pass.`

// A chore is a step of the work, and the last line of its output.
type chore struct {
	say, command, last string
}

// work is the job of TestViews: a short story between the reading of long files.
func work(files map[string]string) []chore {
	var all []chore
	modules := 0
	read := func(n int) { // the next files, as a whole, or a part of each with the lines numbered
		for range n {
			modules++
			path := module(modules)
			lines := strings.Split(strings.TrimSpace(files[path]), "\n")
			c := chore{command: "cat " + path, last: lines[len(lines)-1]}
			switch modules % 4 {
			case 1:
				c.say = fmt.Sprintf("Let me look at %s, it is on the way from the order to the file.", path)
			case 2:
				c.command = fmt.Sprintf("sed -n 20,%dp %s", len(lines)-9, path)
				c.last = lines[len(lines)-10]
			}
			all = append(all, c)
		}
	}
	add := func(say, command, last string) { all = append(all, chore{say, command, last}) }

	add("I start with the layout and the place where totals are made.", "ls -R . && cat README.md", "    ./check.sh totals     the sums of an export")
	add("", "cat export/rounding.py", "    return sum((round_line(line) for line in lines), Decimal(0))")
	read(1)
	add("Now the failing case.", "./check.sh totals", summaryTotals)
	add(decision, "cat billing/invoice.py", strings.TrimSpace(files["billing/invoice.py"][strings.LastIndex(strings.TrimSpace(files["billing/invoice.py"]), "\n")+1:]))
	add("The change: round_line gets the unit and rounds half up.", "cat > export/rounding.py <<'EOF'\n"+roundingAfter+"EOF\necho written", "written")
	add("", "./check.sh totals", "============================== 9 passed in 0.39s ===============================")
	add("test_many_lines passes now. The other area:", "./check.sh currency", summaryYen)
	add(planOne, "grep -n JPY -r export docs", "docs/currencies.md:12:| JPY | 0 | yen have no cents |")
	read(17)
	add("The table of export/currency.py has no entry for yen. I add it with no decimals.", `sed -i 's/^    "EUR": 2,$/    "EUR": 2,\n    "JPY": 0,/' export/currency.py && grep -n -A1 '"EUR": 2' export/currency.py`, `16-    "JPY": 0,`)
	add("", "./check.sh currency", summaryRate)
	add(planTwo, "grep -c . feeds/*.py | sort | tail -n 3", "")
	read(60)
	return append(all, chore{say: "The totals are right. test_yen still fails for the age of the rate."})
}

const (
	summaryTotals = "========================= 1 failed, 8 passed in 0.42s =========================="
	failedTotals  = "AssertionError: assert Decimal('1034.46') == Decimal('1034.60')"
	summaryYen    = "========================= 1 failed, 5 passed in 0.31s =========================="
	failedYen     = "KeyError: 'JPY has no entry in MINOR_UNITS'"
	summaryRate   = "========================= 1 failed, 5 passed in 0.34s =========================="
	failedRate    = "StaleRate: the rate of JPY is 26 hours old, 24 are allowed"

	decision = "The total is rounded once, at the end; the lines are not. I decided to round in export/rounding.py and not in billing/invoice.py, because partners add up the lines of the file and billing/ must stay as it is. Before I write that, a look at how the invoice does it."
	nextOne  = "Next step: find where MINOR_UNITS is filled in export/currency.py and give JPY an entry of 0."
	planOne  = `The plan:
- [x] find why totals of long orders are off
- [x] round each line half up in export/rounding.py
- [ ] give yen an entry in export/currency.py
- [ ] describe the rounding in docs/CHANGELOG.md
` + nextOne
	nextTwo = "Next step: find out in feeds/rates.py who sets fetched_at, and why it is a day late for JPY."
	planTwo = `The entry is there, and the test comes further: now the rate is too old.
The plan as it is now:
- [x] find why totals of long orders are off
- [x] round each line half up in export/rounding.py
- [x] give yen an entry in export/currency.py
- [ ] make feeds/rates.py deliver a fresh rate for JPY
- [ ] describe the rounding in docs/CHANGELOG.md
` + nextTwo

	roundingBefore = `"""Rounding of amounts for files of partners."""

from decimal import Decimal

CENT = Decimal("0.01")


def round_line(amount: Decimal) -> Decimal:
    return amount


def total(lines: list[Decimal]) -> Decimal:
    return sum((round_line(line) for line in lines), Decimal(0))
`
	roundingAfter = `"""Rounding of amounts for files of partners."""

from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")


def round_line(amount: Decimal, unit: Decimal = CENT) -> Decimal:
    """Round one line half up; partners add up what they see."""
    return amount.quantize(unit, rounding=ROUND_HALF_UP)


def total(lines: list[Decimal]) -> Decimal:
    return sum((round_line(line) for line in lines), Decimal(0))
`
)

// check is the project's script: what pytest would print.
const check = `#!/bin/sh
# Runs the tests of one area.
head() {
	echo "============================= test session starts =============================="
	echo "platform linux -- Python 3.12.4, pytest-8.3.2, pluggy-1.5.0"
	echo "rootdir: /srv/shop-export"
	echo "configfile: pyproject.toml"
	echo ""
}
case "$1" in
totals)
	head
	if grep -q ROUND_HALF_UP export/rounding.py; then
		echo "tests/test_totals.py .........                                           [100%]"
		echo ""
		echo "============================== 9 passed in 0.39s ==============================="
		exit 0
	fi
	cat <<'END'
tests/test_totals.py .....F...                                           [100%]

=================================== FAILURES ===================================
_______________________________ test_many_lines ________________________________

    def test_many_lines():
        order = order_of(lines=140, price="7.389")
        exported = export_order(order, "EUR")
>       assert exported.total == Decimal("1034.60")
E       AssertionError: assert Decimal('1034.46') == Decimal('1034.60')
E        +  where Decimal('1034.46') = Exported(lines=140, currency='EUR').total

tests/test_totals.py:57: AssertionError
=========================== short test summary info ============================
FAILED tests/test_totals.py::test_many_lines - AssertionError: assert Decimal('1034.46') == Decimal('1034.60')
========================= 1 failed, 8 passed in 0.42s ==========================
END
	exit 1 ;;
currency)
	head
	echo "tests/test_currency.py ...F..                                            [100%]"
	echo ""
	echo "=================================== FAILURES ==================================="
	echo "___________________________________ test_yen ___________________________________"
	echo ""
	echo "    def test_yen():"
	echo ">       exported = export_order(order_of(lines=3, price=\"980\"), \"JPY\")"
	echo ""
	if grep -q '"JPY": 0' export/currency.py; then
		cat <<'END'
tests/test_currency.py:31:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _
>           raise StaleRate(f"the rate of {code} is {age} hours old, {limit} are allowed")
E           feeds.rates.StaleRate: the rate of JPY is 26 hours old, 24 are allowed

feeds/rates.py:112: StaleRate
=========================== short test summary info ============================
FAILED tests/test_currency.py::test_yen - feeds.rates.StaleRate: the rate of JPY is 26 hours old, 24 are allowed
========================= 1 failed, 5 passed in 0.34s ==========================
END
		exit 1
	fi
	cat <<'END'
tests/test_currency.py:31:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _
>           raise KeyError(f"{code} has no entry in MINOR_UNITS")
E           KeyError: 'JPY has no entry in MINOR_UNITS'

export/currency.py:41: KeyError
=========================== short test summary info ============================
FAILED tests/test_currency.py::test_yen - KeyError: 'JPY has no entry in MINOR_UNITS'
========================= 1 failed, 5 passed in 0.31s ==========================
END
	exit 1 ;;
esac
`

// folders and nouns name the modules of the project.
var (
	folders = []string{"export", "feeds", "orders", "partners", "stock", "labels", "returns"}
	nouns   = []string{"batch", "carrier", "customs", "delivery", "discount", "ledger", "manifest", "parcel", "postage", "quota", "refund", "voucher", "weight"}
	verbs   = []string{"collect", "merge", "resolve", "validate", "format", "schedule", "reserve", "release", "compare", "describe"}
)

// module is the path of the nth module, from 1.
func module(n int) string {
	return folders[n%len(folders)] + "/" + nouns[n%len(nouns)] + "_" + verbs[(n/3)%len(verbs)] + ".py"
}

// source is a module of about 230 lines.
func source(n int) string {
	var b strings.Builder
	noun := nouns[n%len(nouns)]
	state := uint32(n*2654435761 + 97)
	pick := func(from []string) string {
		state = state*1664525 + 1013904223
		return from[int(state>>16)%len(from)]
	}
	number := func(most int) int {
		state = state*1664525 + 1013904223
		return int(state>>16)%most + 1
	}
	fmt.Fprintf(&b, "\"\"\"%s of the shop: how each %s is handled on its way to a partner.\"\"\"\n\nimport logging\nfrom dataclasses import dataclass\nfrom decimal import Decimal\n\nlog = logging.getLogger(__name__)\n\n\n", strings.ToUpper(noun[:1])+noun[1:], noun)
	fmt.Fprintf(&b, "@dataclass\nclass %sRecord:\n    key: str\n    weight: int = %d\n    price: Decimal = Decimal(\"%d.%02d\")\n\n", strings.ToUpper(noun[:1])+noun[1:], number(40), number(90), number(99))
	for i := range 17 {
		verb, other, third := pick(verbs), pick(nouns), pick(nouns)
		fmt.Fprintf(&b, "\ndef %s_%s_%d(records, %s, limit=%d):\n", verb, other, i, third, number(400))
		fmt.Fprintf(&b, "    \"\"\"%s the %s of a %s, at most limit of them.\"\"\"\n    seen = {}\n    for record in records[:limit]:\n", strings.ToUpper(verb[:1])+verb[1:], other, third)
		fmt.Fprintf(&b, "        if record.weight > %d and record.key not in seen:\n            seen[record.key] = %s.%s(record.price * %d)\n", number(60), third, pick(verbs), number(12))
		fmt.Fprintf(&b, "        elif not record.key.startswith(\"%s-\"):\n            log.warning(\"%s %%s has no %s, %s is used\", record.key)\n", pick(nouns)[:3], other, pick(nouns), pick(nouns))
		fmt.Fprintf(&b, "            continue\n    return sorted(seen.values(), key=lambda v: v.%s)[:%d]\n\n", pick(nouns), number(30))
	}
	return b.String()
}

// project returns the files of the job.
func project() map[string]string {
	files := map[string]string{
		"README.md":          "# shop-export\nWrites the orders of a day into files for partners.\n\n    ./check.sh totals     the sums of an export\n",
		"check.sh":           check,
		"export/rounding.py": roundingBefore,
		"billing/invoice.py": source(100),
		"docs/currencies.md": "# Currencies\n\nWhat partners expect of amounts.\n\n| Code | Decimals | Remark |\n|---|---|---|\n| AUD | 2 | |\n| CHF | 2 | rounded to 0.05 in cash only |\n| EUR | 2 | |\n| GBP | 2 | |\n| HUF | 2 | |\n| JPY | 0 | yen have no cents |\n",
		"export/currency.py": "\"\"\"Currencies and the decimals of their amounts.\"\"\"\n\nfrom feeds import rates\n\n\nclass Unknown(KeyError):\n    pass\n\n\n# See docs/currencies.md.\nMINOR_UNITS = {\n    \"AUD\": 2,\n    \"CHF\": 2,\n    \"GBP\": 2,\n    \"EUR\": 2,\n    \"HUF\": 2,\n}\n" + source(101),
	}
	for n := 1; n <= 80; n++ {
		files[module(n)] = source(n)
	}
	return files
}

// A question is one of an engineer who goes on with the work. Each answer holds from the step after which it is known, until
// a later one replaces it: all of the texts have to be in the view, each of them in one of its forms.
type question struct {
	text    string
	answers []answer
}

type answer struct {
	after string // the beginning of what was said, or the command, of the step that makes it known
	texts [][]string
}

func is(texts ...string) [][]string {
	var all [][]string
	for _, s := range texts {
		all = append(all, []string{s})
	}
	return all
}

// open are items of a plan that are not done, as the agent wrote them or as the extract lists them.
func open(items ...string) [][]string {
	var all [][]string
	for _, s := range items {
		all = append(all, []string{"- [ ] " + s, "todo: " + s})
	}
	return all
}

// questions are the checklist. The last command is added for each view.
var questions = []question{
	{"What was asked?", []answer{{"", is("Orders of more than 100 lines are exported with a wrong total.", "each line has to be rounded to cents by itself, half up")}}},
	{"Which constraints hold?", []answer{{"", is("Do not touch anything below billing/", "Keep the signature export_order(order, currency) as it is")}}},
	{"Which path must not be touched, and why?", []answer{{"", is("billing/, the auditors have signed it off")}}},
	{"What was decided, and why?", []answer{{decision, is("I decided to round in export/rounding.py and not in billing/invoice.py", "because partners add up the lines of the file")}}},
	{"What failed first, and is it fixed?", []answer{
		{"Now the failing case.", is("test_many_lines", failedTotals)},
		{"test_many_lines passes", [][]string{{failedTotals, "test_many_lines"}, {"test_many_lines passes now", "9 passed in 0.39s", "fixed: ./check.sh totals"}}},
	}},
	{"Which file was changed, and how?", []answer{{"The change:", is("export/rounding.py", "return amount.quantize(unit, rounding=ROUND_HALF_UP)")}}},
	{"What is the signature now?", []answer{{"The change:", is("def round_line(amount: Decimal, unit: Decimal = CENT) -> Decimal:")}}},
	{"What still fails, with which message?", []answer{{planOne, is("test_yen", failedYen)}, {planTwo, is("test_yen", failedRate)}}},
	{"What is done?", []answer{
		{planOne, is("- [x] find why totals of long orders are off", "- [x] round each line half up in export/rounding.py")},
		{planTwo, is("- [x] find why totals of long orders are off", "- [x] round each line half up in export/rounding.py", "- [x] give yen an entry in export/currency.py")},
	}},
	{"What is open in the plan?", []answer{
		{planOne, open("give yen an entry in export/currency.py", "describe the rounding in docs/CHANGELOG.md")},
		{planTwo, open("make feeds/rates.py deliver a fresh rate for JPY", "describe the rounding in docs/CHANGELOG.md")},
	}},
	{"What is next?", []answer{{planOne, is(nextOne[len("Next step: "):])}, {planTwo, is(nextTwo[len("Next step: "):])}}},
}

// missed returns the questions that a view does not answer, and how many have an answer at all before step.
func missed(t *testing.T, body []byte, chores []chore, step int) (asked int, missed []string) {
	t.Helper()
	var request map[string]any
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	view := []any{request["messages"], request["input"]} // not the instructions, nor the tools
	last := chores[step-2]
	all := append(slices.Clone(questions), question{"What was run last, with which result?", []answer{{"", is(last.command, last.last)}}})
	for _, q := range all {
		var texts [][]string
		for _, a := range q.answers {
			known := slices.IndexFunc(chores, func(c chore) bool { return strings.HasPrefix(c.say, a.after) })
			if a.after == "" || known >= 0 && known+1 < step {
				texts = a.texts
			}
		}
		if texts == nil {
			continue
		}
		asked++
		for _, forms := range texts {
			if !slices.ContainsFunc(forms, func(s string) bool { return holds(view, s) }) {
				missed = append(missed, fmt.Sprintf("%s No %q.", q.text, forms))
				break
			}
		}
	}
	return asked, missed
}

// TestViews lets each agent do a piece of work that is condensed several times, and asks of the history after each time what an
// engineer has
// to know to go on: at least eleven of twelve questions have their answer in it, word for word.
func TestViews(t *testing.T) {
	t.Parallel()
	for _, a := range some("pi") {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			files := project()
			chores := work(files)
			o := upstream.Options{Window: window, StreamOverflow: true, ByCredential: true}
			for _, c := range chores {
				s := upstream.Step{Text: c.say}
				if c.command != "" {
					s.Commands = []string{c.command}
				}
				o.Script = append(o.Script, s)
			}
			d := newDesk(t, o)
			for path, text := range files {
				write(t, filepath.Join(d.dir, path), text)
			}
			if err := os.Chmod(filepath.Join(d.dir, "check.sh"), 0o700); err != nil {
				t.Fatal(err)
			}
			d.at(t, &a, "")
			got := d.wrap(t, a.env, append(append([]string{a.name}, a.args...), request)...)
			if got.code != 0 || d.steps() < len(chores) {
				t.Errorf("exit code %d after %d of %d steps\n%s\n%s", got.code, d.steps(), len(chores), tail(got.out), d.list())
			}
			d.accept(t)
			views := 0
			records := d.vendor.Records()
			for _, b := range d.vendor.Breaks() {
				r := records[b.To-1]
				if r.Step < 2 || r.Step > len(chores) {
					continue
				}
				views++
				asked, missed := missed(t, r.Body, chores, r.Step)
				t.Logf("view %d, before step %d: %d of %d", views, r.Step, asked-len(missed), asked)
				if dir := os.Getenv("CONDENSE_AGENTS_VIEWS"); dir != "" {
					write(t, filepath.Join(dir, fmt.Sprintf("%s-%d.json", a.name, views)), string(r.Body))
				}
				if len(missed) > 1 {
					t.Errorf("view %d, before step %d, does not say:\n%s", views, r.Step, strings.Join(missed, "\n"))
				} else if len(missed) > 0 {
					t.Logf("view %d, before step %d, does not say: %s", views, r.Step, missed[0])
				}
			}
			if views < 5 {
				t.Errorf("%d views, want 5\n%s", views, d.list())
			}
		})
	}
}
