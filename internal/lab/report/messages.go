package report

import (
	"cmp"
	"html/template"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/score"
)

// maxPart is the maximum number of bytes of a part. Of a longer part, the page has the beginning and the
// end.
const maxPart = 16_000

// A messageData is an original message, which all views of a session share.
type messageData struct {
	Role   core.Role        `json:"role"`
	Kind   core.Kind        `json:"kind,omitempty"`
	Parts  []lab.DetailPart `json:"parts"`
	Tokens int              `json:"tokens"`
}

// A viewData holds the states of the messages in one view: the rest of a Detail.
type viewData struct {
	Row     int        `json:"row"` // index of the rows of the page
	Entries []entry    `json:"entries"`
	Cut     string     `json:"cut"`
	Found   []needKept `json:"found"` // by the index of sessionBlock.Needs[Cut]
}

// An entry is a message of a view.
type entry struct {
	At     int              `json:"at"` // -1: new
	State  string           `json:"state"`
	Tokens int              `json:"tokens"`          // after
	After  []lab.DetailPart `json:"after,omitempty"` // if rewritten
	New    *messageData     `json:"new,omitempty"`
}

// A needData is the part of a [score.Need] that all views share.
type needData struct {
	Kind     string  `json:"kind"`
	Text     string  `json:"text"`
	Weight   float64 `json:"weight"`
	Far      bool    `json:"far,omitempty"`
	Last     int     `json:"last"`
	By       int     `json:"by"`
	Messages []int   `json:"messages"`
}

// A needKept says how a view keeps a need.
type needKept struct {
	Need    int           `json:"need"`
	Verdict score.Verdict `json:"verdict"`
}

// A sessionBlock holds the messages and all views of one session.
type sessionBlock struct {
	Messages map[int]*messageData  `json:"messages"`
	Needs    map[string][]needData `json:"needs"` // by cut
	Views    []viewData            `json:"views"`
}

type needKey struct {
	kind score.UnitKind
	text string
}

// A packer builds the blocks of the sessions.
type packer struct {
	blocks map[string]*sessionBlock
	needs  map[string]map[string]map[needKey]int // by session and cut
	most   int                                   // bytes of a part
	cut    int                                   // number of shortened parts
}

func newPacker() *packer {
	return &packer{blocks: map[string]*sessionBlock{}, needs: map[string]map[string]map[needKey]int{}, most: maxPart}
}

// add adds d, the detail of the given row of the page, to the block of its session.
func (p *packer) add(d *lab.Detail, row int) {
	b := p.blocks[d.Row.Session]
	if b == nil {
		b = &sessionBlock{Messages: map[int]*messageData{}, Needs: map[string][]needData{}}
		p.blocks[d.Row.Session], p.needs[d.Row.Session] = b, map[string]map[needKey]int{}
	}
	v := viewData{Row: row, Cut: Visible(d.Row.Cut), Entries: p.entries(b, d.Messages)}
	known := p.needs[d.Row.Session][d.Row.Cut]
	if known == nil {
		known = map[needKey]int{}
		p.needs[d.Row.Session][d.Row.Cut] = known
	}
	for i := range d.Needs {
		n := &d.Needs[i]
		k := needKey{n.Kind, n.Text}
		at, ok := known[k]
		if !ok {
			at = len(b.Needs[v.Cut])
			known[k] = at
			b.Needs[v.Cut] = append(b.Needs[v.Cut], needData{needKinds[n.Kind], line(n.Text, 200), n.Weight, n.Far, n.Last, n.By, n.Messages})
		}
		v.Found = append(v.Found, needKept{at, cmp.Or(n.Verdict, score.Missing)})
	}
	b.Views = append(b.Views, v)
}

// needKinds are the names of the kinds in a page.
var needKinds = map[score.UnitKind]string{
	score.UnitPath: "path", score.UnitIdentifier: "identifier", score.UnitNumber: "number",
	score.UnitQuoted: "quote", score.UnitName: "name",
}

func (p *packer) entries(b *sessionBlock, messages []lab.DetailMessage) []entry {
	out := make([]entry, 0, len(messages))
	for i := range messages {
		m := &messages[i]
		e := entry{At: m.At, State: m.State, Tokens: m.TokensAfter}
		if m.At < 0 {
			e.New = &messageData{m.Role, m.Kind, p.parts(m.Parts), m.TokensAfter}
		} else if b.Messages[m.At] == nil {
			b.Messages[m.At] = &messageData{m.Role, m.Kind, p.parts(m.Parts), m.TokensBefore}
		}
		if m.State == lab.StateRewritten {
			e.After = p.parts(m.After)
		}
		out = append(out, e)
	}
	return out
}

func (p *packer) parts(parts []lab.DetailPart) []lab.DetailPart {
	out := make([]lab.DetailPart, 0, len(parts))
	for _, x := range parts {
		text, left := cut(x.Text, p.most)
		if left > 0 {
			p.cut++
		}
		out = append(out, lab.DetailPart{Type: x.Type, Name: line(x.Name, 200), Text: Visible(text), Error: x.Error})
	}
	return out
}

// An embedding describes the details that are in the page.
type embedding struct {
	elements []template.HTML
	Views    int // that are included
	LeftOut  int // views that are left out because of their size
	Cut      int // number of shortened parts of messages
	Bytes    int // added to the page
	Sessions int
}

// embedDetails builds the blocks of details, and sets d.Blocks. Sessions are in the order of details. Sessions that
// would exceed most bytes are left out.
func embedDetails(d *data, r *lab.Report, details []*lab.Detail, most int) (*embedding, error) {
	rowOf := rowIndex(d, r)
	p := newPacker()
	out := &embedding{}
	var order []string
	for _, x := range details {
		row, ok := rowOf[keyOf(&x.Row)]
		if !ok {
			return nil, errNoRow(&x.Row)
		}
		if row < 0 {
			out.LeftOut++
			continue
		}
		if p.blocks[x.Row.Session] == nil {
			order = append(order, x.Row.Session)
		}
		p.add(x, row)
	}
	out.Cut = p.cut
	for i, name := range order {
		b := p.blocks[name]
		slices.SortFunc(b.Views, func(x, y viewData) int { return cmp.Compare(x.Row, y.Row) })
		id := blockID(i)
		element, size, err := block(id, b)
		if err != nil {
			return nil, err
		}
		if out.Bytes+size > most {
			out.LeftOut += len(b.Views)
			continue
		}
		out.Bytes += size
		out.Views += len(b.Views)
		out.Sessions++
		out.elements = append(out.elements, element)
		for _, v := range b.Views {
			d.Blocks[v.Row] = id
		}
	}
	return out, nil
}
