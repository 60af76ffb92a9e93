package smart

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// unifiedDiff returns the hunks of a unified diff without context that turns a into b, with the
// line numbers of GNU diff -U0. It is a patience diff: it matches the lines that occur once in
// both texts, in their longest common order, and then recurses between them. Where there is no
// such line, everything is replaced, so the diff is correct but not always the smallest. The cost
// is n log n in the number of lines.
func unifiedDiff(a, b string) string {
	d := differ{a: splitLines(a), b: splitLines(b)}
	d.walk(0, len(d.a), 0, len(d.b))
	var out strings.Builder
	for _, h := range d.hunks {
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", hunkRange(h.a0, h.a1), hunkRange(h.b0, h.b1))
		for _, l := range d.a[h.a0:h.a1] {
			diffLine(&out, '-', l)
		}
		for _, l := range d.b[h.b0:h.b1] {
			diffLine(&out, '+', l)
		}
	}
	return out.String()
}

const noNewline = "\\ No newline at end of file\n"

func diffLine(out *strings.Builder, sign byte, line string) {
	out.WriteByte(sign)
	out.WriteString(line)
	if !strings.HasSuffix(line, "\n") {
		out.WriteString("\n" + noNewline)
	}
}

func hunkRange(from, to int) string {
	switch n := to - from; n {
	case 0:
		return strconv.Itoa(from) + ",0"
	case 1:
		return strconv.Itoa(from + 1)
	default:
		return strconv.Itoa(from+1) + "," + strconv.Itoa(n)
	}
}

func splitLines(s string) []string { return slices.Collect(strings.Lines(s)) }

type hunk struct{ a0, a1, b0, b1 int }

type differ struct {
	a, b  []string
	hunks []hunk
}

// walk finds the hunks of a[a0:a1] and b[b0:b1].
func (d *differ) walk(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && d.a[a1-1] == d.b[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	if a0 == a1 && b0 == b1 {
		return
	}
	anchors := d.anchors(a0, a1, b0, b1)
	if len(anchors) == 0 {
		d.hunks = append(d.hunks, hunk{a0, a1, b0, b1})
		return
	}
	for _, m := range anchors {
		d.walk(a0, m[0], b0, m[1])
		a0, b0 = m[0]+1, m[1]+1
	}
	d.walk(a0, a1, b0, b1)
}

// anchors returns the lines that occur once in both, as pairs of indices, in their longest common
// order.
func (d *differ) anchors(a0, a1, b0, b1 int) [][2]int {
	type seen struct{ inA, inB, a, b int }
	lines := make(map[string]*seen, a1-a0)
	for i := a0; i < a1; i++ {
		s := lines[d.a[i]]
		if s == nil {
			s = &seen{}
			lines[d.a[i]] = s
		}
		s.inA, s.a = s.inA+1, i
	}
	for i := b0; i < b1; i++ {
		if s := lines[d.b[i]]; s != nil {
			s.inB, s.b = s.inB+1, i
		}
	}
	var unique [][2]int
	for i := a0; i < a1; i++ {
		if s := lines[d.a[i]]; s.inA == 1 && s.inB == 1 {
			unique = append(unique, [2]int{s.a, s.b})
		}
	}
	return increasing(unique)
}

// increasing returns the longest run of pairs whose second numbers ascend; the first ones
// ascend already.
func increasing(pairs [][2]int) [][2]int {
	var tails []int // index of the last pair of the best run of each length
	before := make([]int, len(pairs))
	for i, p := range pairs {
		n := sort.Search(len(tails), func(k int) bool { return pairs[tails[k]][1] > p[1] })
		before[i] = -1
		if n > 0 {
			before[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	out := make([][2]int, len(tails))
	if len(tails) > 0 {
		for i, k := len(tails)-1, tails[len(tails)-1]; k >= 0; i, k = i-1, before[k] {
			out[i] = pairs[k]
		}
	}
	return out
}

var errHunk = errors.New("not a unified diff of this text")

// patch applies a diff that [unifiedDiff] made to a.
func patch(a, diff string) (string, error) {
	lines := splitLines(a)
	var out strings.Builder
	next := 0
	for diff != "" {
		var head string
		head, diff, _ = strings.Cut(diff, "\n")
		var from, to string
		if n, _ := fmt.Sscanf(head, "@@ -%s +%s @@", &from, &to); n != 2 {
			return "", errHunk
		}
		start, count, err := parseHunkRange(from)
		if err != nil || start < next || start+count > len(lines) {
			return "", errHunk
		}
		for ; next < start; next++ {
			out.WriteString(lines[next])
		}
		for diff != "" && !strings.HasPrefix(diff, "@@ ") {
			var line string
			i := strings.IndexByte(diff, '\n') + 1
			line, diff = diff[:i], diff[i:]
			if rest, ok := strings.CutPrefix(diff, noNewline); ok {
				line, diff = strings.TrimSuffix(line, "\n"), rest
			}
			switch {
			case strings.HasPrefix(line, "+"):
				out.WriteString(line[1:])
			case strings.HasPrefix(line, "-") && next < len(lines) && lines[next] == line[1:]:
				next++
			default:
				return "", errHunk
			}
		}
		if next != start+count {
			return "", errHunk
		}
	}
	for ; next < len(lines); next++ {
		out.WriteString(lines[next])
	}
	return out.String(), nil
}

func parseHunkRange(s string) (start, count int, err error) {
	first, n, several := strings.Cut(s, ",")
	if start, err = strconv.Atoi(first); err != nil {
		return 0, 0, err
	}
	count = 1
	if several {
		if count, err = strconv.Atoi(n); err != nil {
			return 0, 0, err
		}
	}
	if count > 0 {
		start--
	}
	return start, count, nil
}
