package report

import (
	"math"
	"strconv"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/tokens"
)

// A kindRow is a line of the table of content types.
type kindRow struct {
	name
	Cells []kindCell
	Total kindCell
}

// A kindCell is how many tokens of a kind are left.
type kindCell struct {
	Defined bool
	Tokens  string
	Left    string // percent of those before
	Value   string // to sort by
}

// kinds returns the kinds that occur and what every strategy leaves of them. The first row
// is what was there before; cuts at which a strategy failed are in neither number.
func (b *builder) kinds(t *lab.Table) ([]tokens.Kind, []kindRow) {
	var kinds []tokens.Kind
	for _, k := range tokens.Kinds() {
		for i := range t.Lines {
			if t.Lines[i].KindsBefore[k] > 0 || t.Lines[i].KindsAfter[k] > 0 {
				kinds = append(kinds, k)
				break
			}
		}
	}
	var rows []kindRow
	for i := range t.Lines {
		x := &t.Lines[i]
		if x.Failed == x.Cuts {
			continue
		}
		row := kindRow{name: b.name(x.Strategy, x.Bound)}
		before, after := 0, 0
		for _, k := range kinds {
			row.Cells = append(row.Cells, left(x.KindsBefore[k], x.KindsAfter[k]))
			before += x.KindsBefore[k]
			after += x.KindsAfter[k]
		}
		row.Total = left(before, after)
		rows = append(rows, row)
	}
	return kinds, rows
}

func left(before, after int) kindCell {
	if before == 0 && after == 0 {
		return kindCell{}
	}
	c := kindCell{Defined: true, Tokens: thousands(after), Value: strconv.Itoa(after)}
	if before > 0 {
		c.Left = strconv.Itoa(int(math.Round(100*float64(after)/float64(before)))) + " %"
	}
	return c
}

// A roundRow is a line of the table of repeated condensations.
type roundRow struct {
	Strategy        string
	Round, Sessions int
	Cells           []cell
}

// roundColumns are the columns of that table.
var roundColumns = []string{"panel", "once", "user", "once_user", "first_user", "first_files"}

func roundRows(data []roundData) []roundRow {
	var out []roundRow
	for _, d := range data {
		row := roundRow{Strategy: d.Strategy, Round: d.Round, Sessions: d.Sessions}
		for _, name := range roundColumns {
			v, ok := d.Values[name]
			c := cell{Defined: ok}
			if ok {
				c.Value, c.Text = strconv.FormatFloat(v, 'g', -1, 64), number("share", v)
			}
			row.Cells = append(row.Cells, c)
		}
		out = append(out, row)
	}
	return out
}
