package account

import (
	"fmt"
	"slices"
	"strings"
)

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
	a.sort()
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
