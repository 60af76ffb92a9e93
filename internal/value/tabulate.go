package value

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
)

var (
	unitRef  = plain.Pattern(`^(?:m\d+(?:\.\d+|-m\d+)?|h:[0-9a-f]{10}\+?) ?`)
	unitMore = plain.Pattern(` and (\d+) more$`)
	unitSize = plain.Pattern(` \(([0-9.]+)(k?)\)$`)
)

// formerUnits returns the units of the tables of former extracts.
func (r *reading) formerUnits() []unit {
	var out []unit
	for _, line := range r.c.left {
		tool := ""
		for label := range strings.SplitSeq(line, unitNext) {
			u := unit{message: -1, ref: strings.TrimSpace(unitRef().FindString(label))}
			if u.ref == "" {
				continue
			}
			label = strings.TrimSpace(strings.TrimPrefix(label, u.ref))
			if at := unitSize().FindStringSubmatchIndex(label); at != nil {
				n, _ := strconv.ParseFloat(label[at[2]:at[3]], 64)
				if label[at[4]:at[5]] != "" {
					n *= 1000
				}
				u.size, label = int(n), label[:at[0]]
			}
			if at := unitMore().FindStringSubmatchIndex(label); at != nil {
				u.more, _ = strconv.Atoi(label[at[2]:at[3]])
				label = label[:at[0]]
			}
			first, rest, _ := strings.Cut(label, " ")
			if tool == "" || dialog.FamilyOf(first) != dialog.FamilyUnknown {
				tool, label = first, rest
			}
			u.tool = tool
			u.subject, u.ends, _ = strings.Cut(label, unitSign)
			switch family := dialog.FamilyOf(tool); {
			case family == dialog.FamilyEdit, family == dialog.FamilyWrite, family == dialog.FamilyDelegate, family == dialog.FamilyAsk,
				strings.HasSuffix(tool, ":"), dialog.FaultOf(u.ends) == dialog.SureFault:
				u.rank = heavy
			case u.ends != "":
				u.rank = middle
			}
			out = append(out, u)
		}
	}
	return out
}

// contentKey returns the key of a table: see contentsKey.
func (r *reading) contentKey() uint32 {
	sum := fnv.New32a()
	for i := range r.messages {
		for _, part := range r.messages[i].Parts {
			_, _ = sum.Write([]byte(core.Handle(part)))
		}
	}
	return sum.Sum32() >> 8
}

// listContents decides which messages the table of contents is about, and returns its tokens: its share of the free room, and no more than
// unitShare of all messages.
func (pre *preface) listContents(hidden []bool, free float64) float64 {
	pre.listed, pre.listRoom, pre.left = nil, 0, ""
	room := int(min(pre.r.o.Shares.Index*free, unitShare*float64(core.TotalTokens(pre.r.messages))))
	if room <= 0 || !slices.Contains(hidden, true) {
		return 0
	}
	if pre.r.o.NoHandles {
		return pre.listLeft(hidden, room)
	}
	pre.listed = pre.r.formerUnits()
	for k := range pre.all {
		if u := &pre.all[k]; hidden[u.message] {
			pre.listed = append(pre.listed, *u)
		}
	}
	pre.listRoom = room
	return float64(pre.r.o.Counter.Count(core.Text(pre.tabulate(pre.listed, room))))
}

// contents returns the section with the table of contents: a unit that is whole in the extract needs no line.
func (x extraction) contents() string {
	if x.w.pre.listRoom == 0 {
		return x.w.pre.left
	}
	whole := func(u unit) bool {
		return u.message >= 0 && !slices.ContainsFunc(u.passages, func(p int) bool { return x.lost(x.r.c.Passages[p].Lines) })
	}
	return x.w.pre.tabulate(slices.DeleteFunc(slices.Clone(x.w.pre.listed), whole), x.w.pre.listRoom)
}

// tabulate returns a table of at most room tokens: with shorter lines if there is little, then without the light and small units. It is
// empty if none fits.
func (pre *preface) tabulate(units []unit, room int) string {
	const perToken = 2.8 // bytes, in lines full of names and numbers
	for scale := 1.0; scale > 0.3; scale *= 0.9 {
		text := tabulated(units, int(scale*perToken*float64(room))-len(contentsHand))
		if text == "" {
			break
		}
		if text = fmt.Sprintf(" "+contentsHand, pre.key) + text; pre.r.o.Counter.Count(core.Text(text)) < room {
			return text
		}
	}
	return ""
}

// tabulated returns lines of at most room bytes.
func tabulated(units []unit, room int) string {
	step, size := 0, math.MaxInt
	for ; step < len(cuts) && size > room; step++ {
		size = 0
		for k := range units {
			size += len(units[k].text(step, "")) + 1
		}
	}
	step--
	gone := make([]bool, len(units))
	if size > room {
		order := make([]int, len(units))
		for k := range order {
			order[k] = k
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(units[a].rank, units[b].rank), cmp.Compare(units[a].size, units[b].size))
		})
		for _, k := range order {
			if size <= room {
				break
			}
			gone[k] = true
			size -= len(units[k].text(step, "")) + 1
		}
	}
	var b strings.Builder
	units, gone = merged(units, gone, step)
	for k, grouped := 0, 0; k < len(units); k++ {
		u := &units[k]
		from := k
		for ; k < len(units) && gone[k]; k++ { //nolint:revive // the units that are folded
		}
		if k > from {
			b.WriteString(folded(units[from:k]))
			k--
			grouped = 0
			continue
		}
		if k > 0 && grouped > 0 && grouped < unitGroup && u.rank == light && units[k-1].rank == light {
			b.WriteString(unitNext + u.text(step, units[k-1].tool))
			grouped++
			continue
		}
		b.WriteString("\n" + u.text(step, ""))
		grouped = 1
	}
	return b.String()
}

// merged returns units, and which of them are gone, with one for neighbours whose lines would be equal but for their numbers.
func merged(units []unit, gone []bool, step int) ([]unit, []bool) {
	var out []unit
	var left []bool
	for k := range units {
		u := units[k]
		if n := len(out); n > 0 && u.rank > light && !gone[k] && !left[n-1] {
			was, now := out[n-1], u
			was.ref, was.more, was.size, now.ref, now.more, now.size = "", 0, 0, "", 0, 0
			if ref, ok := span(out[n-1].ref, u.ref); ok && was.text(step, "") == now.text(step, "") {
				out[n-1].ref, out[n-1].more, out[n-1].size = ref, out[n-1].more+u.more+1, out[n-1].size+u.size
				continue
			}
		}
		out, left = append(out, u), append(left, gone[k])
	}
	return out, left
}

// span returns the range from one number or range to another.
func span(a, b string) (string, bool) {
	from, _, _ := strings.Cut(a, "-")
	_, to, ranges := strings.Cut(b, "-")
	if !ranges {
		to = b
	}
	from, _, _ = strings.Cut(from, ".")
	to, _, _ = strings.Cut(to, ".")
	return from + "-" + to, from[0] == 'm' && to[0] == 'm'
}

// folded returns one line for neighbouring units, with the name of the most important one; none for few, whose numbers a reader can
// guess from the gap.
func folded(units []unit) string {
	all := units[0]
	best := slices.MaxFunc(units, func(a, b unit) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.size, b.size)) })
	all.tool, all.subject, all.ends = best.tool, best.subject, best.ends
	if all.more += len(units) - 1; all.more < unitFold {
		return ""
	}
	for k := range units[1:] {
		u := &units[k+1]
		all.size, all.more, all.rank = all.size+u.size, all.more+u.more, light
		ref, ok := span(all.ref, u.ref)
		if !ok {
			return ""
		}
		all.ref = ref
	}
	return "\n" + all.text(len(cuts)-1, "")
}
