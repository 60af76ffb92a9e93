package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// ConversationOptions adjust the page of one conversation. A nil pointer and the zero value
// of every field mean the defaults.
type ConversationOptions struct {
	Name     string // of the file
	Encoding string // that the counter counts with
	// Tables are added to the page.
	Tables []Table
	// MaxText is the maximum number of bytes that the messages add to the page, compressed; default
	// 12 MiB. Above it, only the beginning and the end of long texts are included.
	MaxText int
}

// A Table is a table of the page.
type Table struct {
	Title   string
	Columns []Column
	Rows    [][]any // int, float64 or string, as many as there are columns
}

// A Column of a Table.
type Column struct {
	Name   string
	Number bool
}

// WriteConversation writes d as a self-contained page: its tokens by kind and over time, and every message
// with its state: kept, rewritten, hidden or inserted by a condensation. Sizes are tokens by c. The page
// contains the text of the conversation.
func WriteConversation(w io.Writer, d *transcript.Document, c *tokens.Counter, opts *ConversationOptions) error {
	var o ConversationOptions
	if opts != nil {
		o = *opts
	}
	if o.MaxText <= 0 {
		o.MaxText = 12 << 20
	}
	timeline := d.Journal.Timeline()
	p := &conversationPage{
		head: newHead("What is in "+cmp.Or(o.Name, "this conversation"), &Options{}), Options: o, Document: d,
	}
	script := &conversationData{Kind: "conversation", Kinds: []tokens.Kind{}, Condensations: []mark{}}
	p.measure(script, timeline, c)
	for _, most := range []int{maxPart, maxPart / 8, maxPart / 64} {
		pack := newPacker()
		pack.most = most
		script.Items = items(pack, timeline, c)
		element, size, err := block("data", script)
		if err != nil {
			return err
		}
		p.Data, p.Cut, p.MaxPart = element, pack.cut, thousands(most)
		if size <= o.MaxText {
			break
		}
	}
	return write(w, "conversation.html", p)
}

// A conversationPage is the data of the template of a conversation.
type conversationPage struct {
	head
	Options  ConversationOptions
	Document *transcript.Document

	Messages, Sent, Hidden, Inserted int
	Before, After                    int // tokens: of all messages, of the view
	Kinds                            []tokens.Kind
	KindRows                         []kindCount
	Steps                            []step
	Condensations                    []mark
	Cut                              int
	MaxPart                          string
}

// A kindCount is the number of tokens of a kind.
type kindCount struct {
	Kind        tokens.Kind
	Said, Sent  int
	Share, Left string
}

// A step is the number of tokens after a number of messages.
type step struct {
	At     int                 `json:"at"`
	Tokens map[tokens.Kind]int `json:"tokens"`
}

// Total returns the sum of all kinds.
func (s step) Total() int {
	n := 0
	for _, v := range s.Tokens {
		n += v
	}
	return n
}

// Of returns the tokens of a kind.
func (s step) Of(k tokens.Kind) int { return s.Tokens[k] }

// A mark is a condensation on the timeline, after the last message that it changes.
type mark struct {
	At      int    `json:"at"`
	Label   string `json:"label"`
	By      string `json:"-"`
	Hidden  int    `json:"-"`
	Rewrote int    `json:"-"`
	Put     int    `json:"-"`
	Before  int    `json:"-"`
	After   int    `json:"-"`
}

// A conversationData is the data of the script.
type conversationData struct {
	Kind          string             `json:"kind"`
	Kinds         []tokens.Kind      `json:"kinds"`
	Series        []step             `json:"series"`
	Condensations []mark             `json:"condensations"`
	Items         []conversationItem `json:"items"`
}

// A conversationItem is a message of the timeline.
type conversationItem struct {
	At     int              `json:"at"` // -1: inserted by a condensation
	State  string           `json:"state"`
	Role   core.Role        `json:"role"`
	Kind   core.Kind        `json:"kind,omitempty"`
	Parts  []lab.DetailPart `json:"parts"`
	After  []lab.DetailPart `json:"after,omitempty"`
	Before int              `json:"before"`
	Tokens int              `json:"tokens"`
	Needs  []int            `json:"needs"` // none
}

// Maximum number of points, and of rows, of the figure over time.
const (
	maxPoints = 400
	maxSteps  = 20
)

// measure sets the numbers of p and d.
func (p *conversationPage) measure(d *conversationData, timeline []history.Entry, c *tokens.Counter) {
	said, sent := map[tokens.Kind]int{}, map[tokens.Kind]int{}
	if system, tools := c.Overhead(p.Document.System, p.Document.Tools); system+tools > 0 {
		said[tokens.KindSystem] = system + tools
		sent[tokens.KindSystem] = system + tools
	}
	series := []step{{0, maps.Clone(said)}}
	at := map[string]int{} // message ID to the number of messages up to it
	for i := range timeline {
		e := &timeline[i]
		if len(e.HiddenBy) == 0 {
			p.Sent++
			add(sent, breakdown(c, e.Message))
		} else {
			p.Hidden++
		}
		if e.InsertedBy != "" {
			p.Inserted++
			at[e.Message.ID] = p.Messages
			continue
		}
		p.Messages++
		at[e.Message.ID] = p.Messages
		add(said, breakdown(c, e.Original))
		series = append(series, step{p.Messages, maps.Clone(said)})
	}
	for _, k := range tokens.Kinds() {
		if said[k] == 0 && sent[k] == 0 {
			continue
		}
		p.Before += said[k]
		p.After += sent[k]
		p.Kinds = append(p.Kinds, k)
		p.KindRows = append(p.KindRows, kindCount{Kind: k, Said: said[k], Sent: sent[k]})
	}
	for i := range p.KindRows {
		k := &p.KindRows[i]
		k.Share = share(k.Sent, p.After)
		k.Left = share(k.Sent, k.Said)
	}
	d.Kinds, d.Series, p.Steps = p.Kinds, sample(series, maxPoints), sample(series, maxSteps)
	for _, x := range p.Document.Journal.Condensations() {
		m := mark{
			By: cmp.Or(x.Provider, "unnamed"), Hidden: len(x.Edit.Hide), Rewrote: len(x.Edit.Rewrite), Put: len(x.Edit.Insert),
			Before: x.TokensBefore, After: x.TokensAfter,
		}
		for _, id := range x.Edit.Hide {
			m.At = max(m.At, at[id])
		}
		for _, r := range x.Edit.Rewrite {
			m.At = max(m.At, at[r.ID])
		}
		m.Label = line(m.By, 24)
		p.Condensations = append(p.Condensations, m)
		d.Condensations = append(d.Condensations, m)
	}
}

func breakdown(c *tokens.Counter, m core.Message) map[tokens.Kind]int {
	by := c.Breakdown(m)
	dialog.Regroup(new(dialog.Reader), by, c, m)
	return by
}

func add(to, n map[tokens.Kind]int) {
	for k, v := range n {
		to[k] += v
	}
}

func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fixed(100*float64(n)/float64(of), 1) + " %"
}

// sample returns at most n of the steps, including the first and the last.
func sample(s []step, n int) []step {
	if len(s) <= n {
		return s
	}
	out := make([]step, 0, n)
	for i := range n {
		out = append(out, s[i*(len(s)-1)/(n-1)])
	}
	return out
}

// items returns the messages of the timeline.
func items(p *packer, timeline []history.Entry, c *tokens.Counter) []conversationItem {
	out := make([]conversationItem, 0, len(timeline))
	n := 0
	for i := range timeline {
		e := &timeline[i]
		x := conversationItem{At: n, State: lab.StateKept, Role: e.Message.Role, Kind: e.Message.Kind, Needs: []int{}}
		if e.InsertedBy != "" {
			x.At, x.State = -1, lab.StateNew
		} else {
			n++
			x.Before = core.MessageTokens(c, e.Original)
		}
		if len(e.HiddenBy) == 0 {
			x.Tokens = core.MessageTokens(c, e.Message)
		}
		x.Parts = p.parts(lab.DetailParts(e.Original.Parts))
		switch {
		case len(e.HiddenBy) > 0:
			x.State = lab.StateHidden
		case e.RewrittenBy != "":
			x.State, x.After = lab.StateRewritten, p.parts(lab.DetailParts(e.Message.Parts))
		}
		out = append(out, x)
	}
	return out
}

// An itemData is a value of a Table, for the template.
type itemData struct {
	First, Number bool
	Value, Text   string
}

func item(t Table, column int, v any) itemData {
	out := itemData{First: column == 0, Number: column < len(t.Columns) && t.Columns[column].Number, Value: fmt.Sprint(v)}
	switch v := v.(type) {
	case int:
		out.Text = thousands(v)
	case float64:
		out.Text = fixed(v, 1)
	default:
		out.Text = line(out.Value, 300)
	}
	return out
}
