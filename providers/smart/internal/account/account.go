// Package account has the account of the work in a conversation that a language model writes: its form, its
// check against the history, and how a later account follows an earlier one.
//
// An account is a list of items under a few headings. The model writes the items. Everything around them is
// written here, so that no text of the model is a heading, a mark, or somebody's turn.
package account

import (
	"cmp"
	_ "embed" // the prompts are files, which are easier to read
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// Provider is the name in the first line of every account.
const Provider = "handover"

// A Section is a heading of an account.
type Section uint8

// The sections, in the order in which they are written: the most important ones first.
const (
	Request Section = iota
	State
	Next
	Open
	Constraints
	Decisions
	Done
	Failures
	Files
	Facts
	Commands
	Notes
	sections
)

var titles = [sections]string{"Request", "State now", "Next step", "Open", "Constraints", "Decisions", "Done", "Failures", "Files", "Facts", "Commands", "Notes"}

// An Item is one statement.
type Item struct {
	Number  int // of this item in this account and in those that follow it
	Section Section
	Text    string
	Handle  string // of the part of the conversation that shows most of it; empty if none does
}

// An Account is a description of the work by a model.
type Account struct {
	Items   []Item   // by section, and in it by number
	Changed []string // withdrawn by the last update, with the reasons
	Marks   []string // of the newest messages that it covers
	last    int      // the highest number that was given
	old     int      // the same of the account that was read
}

const (
	title = "# Account of the work so far"
	note  = "A language model wrote this; what it concludes itself is (inferred). All other paths, numbers, names and quotes were looked up in the " +
		"history: " + unknown + " follows those that are not there, " + apart + " a path whose parts are there, but not together."
	recall  = " A handle (h:) recalls what an item and those above it are about."
	changed = "Changed since the last account"
	asOf    = "(as of "
)

// opening begins every account.
var opening = core.Frame(Provider) + "\n" + title

// Is reports whether text is an account.
func Is(text string) bool { return strings.HasPrefix(text, opening) }

// In returns the account in m and whether m holds nothing else; "" if there is none.
func In(m *core.Message) (text string, alone bool) {
	if m.Role != core.RoleUser {
		return "", false
	}
	for _, p := range m.Parts {
		if t, ok := p.(core.Text); ok && Is(string(t)) {
			return string(t), len(m.Parts) == 1
		}
	}
	return "", false
}

// Text writes the account. [Read] reads it.
func (a *Account) Text() string {
	var b strings.Builder
	b.WriteString(opening + "\n" + note)
	if slices.ContainsFunc(a.Items, func(i Item) bool { return i.Handle != "" }) {
		b.WriteString(recall)
	}
	b.WriteByte('\n')
	for k, item := range a.Items {
		if k == 0 || a.Items[k-1].Section != item.Section {
			b.WriteString("## " + titles[item.Section] + "\n")
		}
		b.WriteString(item.line())
		// One handle is enough for neighbours with the same.
		if last := k+1 == len(a.Items) || a.Items[k+1].Section != item.Section; item.Handle != "" && (last || a.Items[k+1].Handle != item.Handle) {
			b.WriteString(" h:" + item.Handle)
		}
		b.WriteByte('\n')
	}
	if len(a.Changed) > 0 {
		b.WriteString("## " + changed + "\n")
		for _, c := range a.Changed {
			b.WriteString("- " + c + "\n")
		}
	}
	if len(a.Marks) > 0 {
		b.WriteString(asOf + strings.Join(a.Marks, " ") + ")\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (i *Item) line() string { return strconv.Itoa(i.Number) + ". " + i.Text }

var (
	itemForm = plain.Pattern(`^(\d{1,5})\. (.*?)(?: h:([0-9a-f]{10}))?$`)
	noHandle = plain.Pattern(` ?\bh:[0-9a-f]{10}\b`)
)

// Read parses the output of Text.
func Read(text string) *Account {
	a := &Account{}
	at, changes := Notes, false
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.TrimPrefix(text, opening), wasUnknown, unknown), "\n") {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			changes = name == changed
			if k := slices.Index(titles[:], name); k >= 0 {
				at = Section(k)
			}
			continue
		}
		if rest, ok := strings.CutPrefix(line, asOf); ok {
			a.Marks = strings.Fields(strings.TrimSuffix(rest, ")"))
			continue
		}
		if rest, ok := strings.CutPrefix(line, "- "); ok && changes {
			a.Changed = append(a.Changed, rest)
			continue
		}
		if f := itemForm().FindStringSubmatch(line); f != nil && !changes {
			n, _ := strconv.Atoi(f[1]) // digits
			a.Items = append(a.Items, Item{Number: n, Section: at, Text: f[2], Handle: f[3]})
			a.last = max(a.last, n)
		}
	}
	a.old = a.last
	// A handle is of the items above it, too.
	for k := len(a.Items) - 2; k >= 0; k-- {
		if next := &a.Items[k+1]; a.Items[k].Handle == "" && a.Items[k].Section == next.Section {
			a.Items[k].Handle = next.Handle
		}
	}
	return a
}

// Uncite takes the handles out, which lead nowhere.
func (a *Account) Uncite() {
	for i := range a.Items {
		a.Items[i].Handle = ""
	}
}

// add adds an item with the next number.
func (a *Account) add(s Section, text string) {
	a.last++
	a.Items = append(a.Items, Item{Number: a.last, Section: s, Text: text})
}

// first are the sections whose items go first where there is no room, and then the others.
var first = [2][]Section{{Notes, Commands, Done, Facts, Files, Failures}, {Decisions, Open, State, Next, Constraints, Request}}

// Fit leaves out handles and then items until the account has at most so many tokens, and returns the number of items: of the largest
// section the oldest of a former account, then the last of this one, the least important; what binds and is open only at the end.
func (a *Account) Fit(limit int, count func(string) int) (gone int) {
	total := count(a.Text())
	if total > limit && a.Changed != nil {
		a.Changed = nil
		total = count(a.Text())
	}
	for k := len(a.Items) - 1; k >= 0 && total > limit; k-- {
		if a.Items[k].Handle = ""; k == 0 || a.Items[k-1].Section != a.Items[k].Section {
			total = count(a.Text())
		}
	}
	sizes := map[int]int{}
	for i := range a.Items {
		sizes[a.Items[i].Number] = count(a.Items[i].line()) + 1
	}
	for total > limit && len(a.Items) > 0 {
		var of [sections]int
		for _, i := range a.Items {
			of[i.Section] += sizes[i.Number]
		}
		largest := Section(0)
		for _, group := range first {
			largest = slices.MaxFunc(group, func(x, y Section) int { return cmp.Compare(of[x], of[y]) })
			if of[largest] > 0 {
				break
			}
		}
		k := slices.IndexFunc(a.Items, func(i Item) bool { return i.Section == largest && i.Number <= a.old })
		if k < 0 {
			k, _ = slices.BinarySearchFunc(a.Items, largest+1, func(i Item, s Section) int { return cmp.Compare(i.Section, s) })
			k--
		}
		total -= sizes[a.Items[k].Number]
		a.Items = slices.Delete(a.Items, k, k+1)
		if gone++; total <= limit {
			total = count(a.Text()) // exactly
		}
	}
	return gone
}

// The instructions.
var (
	//go:embed prompts/system.txt
	systemPrompt string
	//go:embed prompts/write.txt
	writePrompt string
	//go:embed prompts/update.txt
	updatePrompt string
)

// System returns the system prompt, for a request that is not the agent's own.
func System() string { return strings.TrimSpace(systemPrompt) }

// Instructions returns the request for an account of at most so many tokens, or with former for the changes in
// it. Shown says that the model has former before it already.
func Instructions(former *Account, shown bool, tokens int, own string) string {
	var b strings.Builder
	if former == nil || len(former.Items) == 0 {
		b.WriteString(strings.TrimSpace(writePrompt))
	} else {
		b.WriteString(strings.TrimSpace(updatePrompt))
		if !shown {
			b.WriteString("\n\nThe account so far:\n\n" + former.Text())
		}
	}
	if own = strings.TrimSpace(own); own != "" {
		b.WriteString("\n\nWhat the user wants from it in particular:\n" + own)
	}
	// A word of English is 1.3 tokens or so, of code and other languages more; models keep to words better than to characters.
	fmt.Fprintf(&b, "\n\nWrite at most %d words, that is about %d characters.", max(40, tokens*5/12), tokens*16/5)
	return b.String()
}

// Tidy returns the answer of a model without the reasoning that some write before it, and without tags around it.
func Tidy(answer string) string {
	text := strings.TrimSpace(answer)
	for _, tag := range []string{"think", "thinking", "analysis"} {
		if rest, ok := strings.CutPrefix(text, "<"+tag+">"); ok {
			_, after, _ := strings.Cut(rest, "</"+tag+">")
			text = strings.TrimSpace(after)
		}
	}
	if rest, ok := strings.CutPrefix(text, "<summary>"); ok {
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "</summary>"))
	}
	return text
}

// An Update counts the changes that an answer made to an account.
type Update struct {
	Checks
	New, Changed, Gone int
	Refused            int // items that the model wanted to withdraw, and that stay: too many at once
}

// Add adds the changes of another answer.
func (u *Update) Add(o Update) {
	u.add(o.Checks)
	u.New, u.Changed, u.Gone, u.Refused = u.New+o.New, u.Changed+o.Changed, u.Gone+o.Gone, u.Refused+o.Refused
}

// most is the share of the items that one answer may withdraw, and minBack how many it may in any case.
const (
	most    = 3 // its inverse
	minBack = 5
)

// Follow returns the account that follows former, which may be nil, by the answer of a model, checked against
// the history. Items of former stay word for word unless the answer names them. Former is not changed.
func Follow(former *Account, answer string, h *History) (*Account, Update) {
	a := &Account{}
	if former != nil {
		a.Items, a.Marks, a.last, a.old = slices.Clone(former.Items), former.Marks, former.last, former.old
	}
	var u Update
	back := max(minBack, len(a.Items)/most)
	again, named := map[Section]bool{}, map[int]bool{} // sections that the answer writes again as a whole, and items that it names
	var fresh []entry
	for _, e := range parse(answer) {
		text, c := h.check(e.text, e.section)
		if text == "" || strings.Trim(text, ". ") == "" {
			u.add(c)
			continue
		}
		k := slices.IndexFunc(a.Items, func(i Item) bool { return e.op != opNew && i.Number == e.number })
		named[e.number] = true
		switch {
		case k >= 0 && back == 0:
			u.Refused++
			if e.op == opChanged { // it may still be true
				e.text = text
				fresh = append(fresh, e)
			}
		case k >= 0 && e.op == opGone:
			back--
			u.Gone++
			a.Changed = append(a.Changed, fmt.Sprintf("%s — no longer: %s", begin(a.Items[k].Text), text))
			a.Items = slices.Delete(a.Items, k, k+1)
		case k >= 0:
			if a.Items[k].Text == text {
				continue
			}
			back--
			u.Changed++
			a.Changed = append(a.Changed, fmt.Sprintf("%s — now item %d", begin(a.Items[k].Text), a.Items[k].Number))
			a.Items[k].Text, a.Items[k].Handle = text, h.cite(text)
		case e.op == opGone: // of an item that is not there
			continue
		default:
			again[e.section] = e.section == State || e.section == Next
			e.text = text
			fresh = append(fresh, e)
		}
		u.add(c)
	}
	a.Items = slices.DeleteFunc(a.Items, func(i Item) bool {
		gone := again[i.Section] && !named[i.Number] && !slices.ContainsFunc(fresh, func(e entry) bool { return same(e.text, i.Text) })
		if gone {
			a.Changed = append(a.Changed, strings.ToLower(titles[i.Section])+" was: "+begin(i.Text))
		}
		return gone
	})
	for _, e := range fresh {
		if slices.ContainsFunc(a.Items, func(i Item) bool { return same(i.Text, e.text) }) {
			continue
		}
		u.New++
		a.add(e.section, e.text)
		a.Items[len(a.Items)-1].Handle = h.cite(e.text)
	}
	slices.SortStableFunc(a.Items, func(x, y Item) int { return cmp.Or(cmp.Compare(x.Section, y.Section), cmp.Compare(x.Number, y.Number)) })
	return a, u
}

// begin returns the first words of a text.
func begin(text string) string {
	const words = 14
	f := strings.Fields(text)
	if len(f) <= words {
		return strings.TrimRight(text, ".")
	}
	return strings.Join(f[:words], " ") + " …"
}

// same reports whether two texts say the same in the same words.
func same(x, y string) bool {
	strip := func(s string) string { return strings.Trim(strings.ReplaceAll(unmarked(s), " "+unknown, ""), " .;") }
	return strip(x) == strip(y)
}
