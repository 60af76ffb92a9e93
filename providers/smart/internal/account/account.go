// Package account has the account of the work in a conversation that a language model writes: its form, its
// check against the history, and how a later account follows an earlier one.
//
// An account is a list of items under a few headings. The model writes the items. Everything around them is
// written here, so that no text of the model is a heading, a mark, or somebody's turn.
package account

import (
	"cmp"
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

func (a *Account) sort() {
	slices.SortStableFunc(a.Items, func(x, y Item) int { return cmp.Or(cmp.Compare(x.Section, y.Section), cmp.Compare(x.Number, y.Number)) })
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
