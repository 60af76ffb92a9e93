package filecmd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/lab/report"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// minDuplicate is the smallest repeated text to list, in bytes.
const minDuplicate = 200

// An inspection describes the content of a conversation. All sizes are tokens of the view.
type inspection struct {
	File       string      `json:"file"`
	Format     string      `json:"format"`
	Tokenizer  string      `json:"tokenizer"`
	Messages   int         `json:"messages"`
	Hidden     int         `json:"hidden"` // messages that condensations keep out of the view
	Tokens     int         `json:"tokens"`
	ByKind     []share     `json:"by_kind"`
	ByTool     []toolShare `json:"by_tool"`
	Largest    []large     `json:"largest"`
	Duplicates []duplicate `json:"duplicates"`
	// Opportunities are the possible savings of the passes of smart, with --opportunities.
	Opportunities []opportunity `json:"opportunities,omitempty"`
}

type share struct {
	Kind   tokens.Kind `json:"kind"`
	Parts  int         `json:"parts"`
	Tokens int         `json:"tokens"`
}

type toolShare struct {
	Tool         string `json:"tool"`
	Calls        int    `json:"calls"`
	Errors       int    `json:"errors"`
	CallTokens   int    `json:"call_tokens"`
	ResultTokens int    `json:"result_tokens"`
}

type large struct {
	ID      string    `json:"id"`
	Role    core.Role `json:"role"`
	Tokens  int       `json:"tokens"`
	Excerpt string    `json:"excerpt"`
}

type duplicate struct {
	Times   int      `json:"times"`
	Tokens  int      `json:"tokens"` // of all copies but one
	IDs     []string `json:"ids"`
	Excerpt string   `json:"excerpt"`
}

func inspectCommand(a *cli.App) *cobra.Command {
	var (
		format, tokenizer string
		top               int
		asJSON, chances   bool
		asHTML            bool
	)
	cmd := &cobra.Command{
		Use: "inspect FILE|-", Short: "Show what a conversation consists of", Args: cli.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if top < 0 {
				return cli.Usage(cmd, "--top: %d is negative", top)
			}
			if asHTML && (asJSON || chances) {
				return cli.Usage(cmd, "--html cannot be combined with --json or --opportunities")
			}
			encoding, err := tokens.Open(tokenizer)
			if err != nil {
				return cli.Usage(cmd, "--tokenizer: %w", err)
			}
			d, err := a.Read(cmd.Context(), args[0], format)
			if err != nil {
				return err
			}
			counter := tokens.NewCounter(encoding)
			in, err := cli.Await(cmd.Context(), func() (*inspection, error) { return inspect(args[0], d, counter, top), nil })
			if err != nil {
				return err
			}
			in.Tokenizer = tokenizer
			if asHTML {
				return writeInspectionHTML(a.Stdout, in, d, counter)
			}
			if chances {
				if in.Opportunities, err = opportunities(cmd.Context(), d.Journal.View(), counter); err != nil {
					return err
				}
			}
			if asJSON {
				return term.PrintJSON(a.Stdout, in)
			}
			printInspection(a.Stdout, in)
			if chances {
				term.Printf(a.Stdout, "\n")
				printOpportunities(a.Stdout, in.Opportunities, in.Tokens)
			}
			return nil
		},
	}
	a.InputFlags(cmd, &format, nil)
	cmd.Flags().StringVar(&tokenizer, "tokenizer", "o200k_base", "`name` of the encoding to count with")
	cli.Complete(cmd, "tokenizer", tokens.Names())
	cmd.Flags().IntVar(&top, "top", 10, "how many of the largest messages and duplicates to list")
	cmd.Flags().BoolVar(&chances, "opportunities", false, "report what each pass of the strategy smart would save")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&asHTML, "html", false, "write a page with numbers and every message; it contains the text of the conversation")
	return cmd
}

func inspect(path string, d *transcript.Document, counter *tokens.Counter, top int) *inspection {
	view := d.Journal.View()
	in := &inspection{
		File: path, Format: d.Format, Messages: len(view),
		ByKind: []share{}, ByTool: []toolShare{}, Largest: []large{}, Duplicates: []duplicate{},
	}
	in.Hidden = len(plain.Only(d.Journal.Timeline(), func(e history.Entry) bool { return len(e.HiddenBy) > 0 }))
	kinds := map[tokens.Kind]*share{}
	add := func(k tokens.Kind, n int) {
		if kinds[k] == nil {
			kinds[k] = &share{Kind: k}
		}
		kinds[k].Parts++
		kinds[k].Tokens += n
		in.Tokens += n
	}
	system, tooling := counter.Overhead(d.System, d.Tools)
	for _, n := range []int{system, tooling} {
		if n > 0 {
			add(tokens.KindSystem, n)
		}
	}
	tools := &toolTable{counter, map[string]*toolShare{}, map[string]string{}}
	copies := &copies{counter, map[[sha256.Size]byte]*duplicate{}, nil, map[*duplicate]string{}}
	read := dialog.Read(view)
	for i := range view {
		m := &view[i]
		n := 0
		by := counter.Breakdown(*m)
		dialog.Regroup(new(dialog.Reader), by, counter, *m)
		said := slices.ContainsFunc(read.Messages[i], func(p dialog.Part) bool {
			return slices.ContainsFunc(p.Passages, func(s dialog.Passage) bool { return s.Kind == dialog.KindUser })
		})
		for _, k := range []tokens.Kind{tokens.KindToolResult, tokens.KindInjected, tokens.KindEnvironment} {
			if m.Role == core.RoleUser && !said && by[k] > 0 { // the frame of a message is the user's only with words
				by[k], by[tokens.KindUser] = by[k]+by[tokens.KindUser], 0
			}
		}
		for k, size := range by {
			if size > 0 {
				add(k, size)
				n += size
			}
		}
		in.Largest = append(in.Largest, large{ID: m.ID, Role: m.Role, Tokens: n})
		tools.add(m, read.Messages[i])
		copies.add(m.ID, m.Parts)
	}
	for _, k := range tokens.Kinds() {
		if s := kinds[k]; s != nil {
			in.ByKind = append(in.ByKind, *s)
		}
	}
	in.ByTool = append(in.ByTool, tools.sorted()...)
	at := plain.Index(view, func(m core.Message) string { return m.ID })
	slices.SortStableFunc(in.Largest, func(a, b large) int { return cmp.Compare(b.Tokens, a.Tokens) })
	in.Largest = in.Largest[:min(top, len(in.Largest))]
	for i := range in.Largest {
		in.Largest[i].Excerpt = excerpt(describe(view[at[in.Largest[i].ID]].Parts, excerpt, " | "))
	}
	in.Duplicates = append(in.Duplicates, copies.found()...)
	in.Duplicates = in.Duplicates[:min(top, len(in.Duplicates))]
	return in
}

// A toolTable adds up calls and results by tool.
type toolTable struct {
	counter *tokens.Counter
	rows    map[string]*toolShare
	names   map[string]string // tool of a call ID
}

func (t *toolTable) row(tool string) *toolShare {
	if t.rows[tool] == nil {
		t.rows[tool] = &toolShare{Tool: tool}
	}
	return t.rows[tool]
}

// add counts a message, given its parts as read.
func (t *toolTable) add(m *core.Message, parts []dialog.Part) {
	for j, p := range m.Parts {
		switch p := p.(type) {
		case core.Text:
			for _, s := range parts[j].Passages {
				t.inText(&s)
			}
		case core.ToolCall:
			t.names[p.ID] = p.Name
			r := t.row(p.Name)
			r.Calls++
			r.CallTokens += t.counter.Count(p)
		case core.ToolResult:
			name, ok := t.names[p.CallID]
			if !ok {
				name = "(unknown)"
			}
			r := t.row(name)
			r.ResultTokens += t.counter.Count(p)
			if p.IsError {
				r.Errors++
			}
		case core.Image, core.Reasoning, core.Opaque:
		}
	}
}

// inText counts a call or a result that is in a text.
func (t *toolTable) inText(s *dialog.Passage) {
	if s.Use == nil {
		return
	}
	name := s.Use.Name
	if !s.Use.Called && s.Use.Info.Family == "" {
		name = "(in text)" // a result whose call is unknown
	}
	switch s.Kind {
	case dialog.KindToolCall:
		r := t.row(name)
		r.Calls++
		r.CallTokens += t.counter.Count(core.Text(s.Text))
	case dialog.KindToolResult, dialog.KindError:
		r := t.row(name)
		r.ResultTokens += t.counter.Count(core.Text(s.Text))
		if s.Use.IsError() {
			r.Errors++
		}
	case dialog.KindUser, dialog.KindInjected, dialog.KindAssistant, dialog.KindReasoning, dialog.KindProjectRules, dialog.KindEnvironment,
		dialog.KindHeader, dialog.KindSystem, dialog.KindSummary, dialog.KindOther:
	}
}

func (t *toolTable) sorted() []toolShare {
	out := plain.Each(slices.Sorted(maps.Keys(t.rows)), func(name string) toolShare { return *t.rows[name] })
	slices.SortStableFunc(out, func(a, b toolShare) int {
		return cmp.Compare(b.CallTokens+b.ResultTokens, a.CallTokens+a.ResultTokens)
	})
	return out
}

// copies finds texts that appear more than once in a conversation.
type copies struct {
	counter *tokens.Counter
	seen    map[[sha256.Size]byte]*duplicate
	order   []*duplicate
	text    map[*duplicate]string
}

func (c *copies) add(id string, parts []core.Part) {
	for _, p := range parts {
		switch p := p.(type) {
		case core.ToolResult:
			c.add(id, p.Content)
		case core.Text:
			if len(p) < minDuplicate {
				continue
			}
			key := sha256.Sum256([]byte(p))
			d := c.seen[key]
			if d == nil {
				d = &duplicate{}
				c.seen[key] = d
				c.order = append(c.order, d)
				c.text[d] = string(p)
			}
			d.Times++
			d.IDs = append(d.IDs, id)
		case core.ToolCall, core.Image, core.Reasoning, core.Opaque:
		}
	}
}

func (c *copies) found() []duplicate {
	var out []duplicate
	for _, d := range c.order {
		if d.Times > 1 {
			text := c.text[d]
			d.Tokens = (d.Times - 1) * c.counter.Count(core.Text(text))
			d.Excerpt = excerpt(text)
			out = append(out, *d)
		}
	}
	slices.SortStableFunc(out, func(a, b duplicate) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return out
}

func printInspection(w io.Writer, in *inspection) {
	term.Printf(w, "%s (%s): %s messages, %s tokens (%s)", in.File, in.Format, size.Group(in.Messages), size.Group(in.Tokens), in.Tokenizer)
	if in.Hidden > 0 {
		term.Printf(w, ", %s more hidden", size.Group(in.Hidden))
	}
	term.Printf(w, "\n\n")
	percent := func(n int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(1, in.Tokens))) }
	show := func(t *term.Table) { _ = term.PrintText(w, t.Text("  ")+"\n") } // like Printf, it ignores a broken pipe
	t := term.NewTable("kind", ">parts", ">tokens", ">share")
	for _, s := range in.ByKind {
		t.Row(s.Kind, s.Parts, s.Tokens, percent(s.Tokens))
	}
	show(t)
	if len(in.ByTool) > 0 {
		t = term.NewTable("tool", ">calls", ">errors", ">calls' tokens", ">results' tokens", ">share")
		for _, s := range in.ByTool {
			t.Row(s.Tool, s.Calls, s.Errors, s.CallTokens, s.ResultTokens, percent(s.CallTokens+s.ResultTokens))
		}
		show(t)
	}
	if len(in.Largest) > 0 {
		t = term.NewTable("largest messages", "role", ">tokens", "begins")
		for _, l := range in.Largest {
			t.Row(short(l.ID), l.Role, l.Tokens, l.Excerpt)
		}
		show(t)
	}
	if len(in.Duplicates) == 0 {
		term.Printf(w, "no text of %d bytes or more appears twice\n", minDuplicate)
		return
	}
	t = term.NewTable("same text", ">times", ">tokens to save", "begins")
	for _, d := range in.Duplicates {
		t.Row(short(d.IDs[0])+" …", d.Times, d.Tokens, d.Excerpt)
	}
	show(t)
}

// writeInspectionHTML writes an inspection as a self-contained page.
func writeInspectionHTML(w io.Writer, in *inspection, d *transcript.Document, counter *tokens.Counter) error {
	text := func(name string) report.Column { return report.Column{Name: name} }
	number := func(name string) report.Column { return report.Column{Name: name, Number: true} }
	tools := report.Table{
		Title:   "By tool",
		Columns: []report.Column{text("tool"), number("calls"), number("errors"), number("calls’ tokens"), number("results’ tokens")},
		Rows:    plain.Each(in.ByTool, func(s toolShare) []any { return []any{s.Tool, s.Calls, s.Errors, s.CallTokens, s.ResultTokens} }),
	}
	messages := report.Table{
		Title:   "Largest",
		Columns: []report.Column{text("message"), text("role"), number("tokens"), text("begins")},
		Rows:    plain.Each(in.Largest, func(l large) []any { return []any{short(l.ID), string(l.Role), l.Tokens, l.Excerpt} }),
	}
	copies := report.Table{
		Title:   "Repeated text",
		Columns: []report.Column{text("message"), number("times"), number("tokens to save"), text("begins")},
		Rows:    plain.Each(in.Duplicates, func(c duplicate) []any { return []any{short(c.IDs[0]), c.Times, c.Tokens, c.Excerpt} }),
	}
	return report.WriteConversation(w, d, counter, &report.ConversationOptions{
		Name: in.File, Encoding: in.Tokenizer, Tables: []report.Table{tools, messages, copies},
	})
}

// An opportunity is the possible saving of one pass of the strategy smart.
type opportunity struct {
	Pass    string         `json:"pass"`
	Class   string         `json:"class"`
	Looked  int            `json:"looked"`
	Changed int            `json:"changed"`
	Saved   int            `json:"saved"`
	ByKind  map[string]int `json:"by_kind,omitempty"`
	MS      float64        `json:"ms"`
}

// opportunities runs every pass on a copy of the view.
func opportunities(ctx context.Context, view []core.Message, counter *tokens.Counter) ([]opportunity, error) {
	messages := make([]core.Message, len(view))
	copy(messages, view)
	for i := range messages {
		messages[i].Tokens = core.MessageTokens(counter, messages[i])
	}
	req := &core.Request{Messages: messages, Counter: counter, Budget: core.Budget{Target: 1}, Trigger: core.TriggerManual}
	found, err := smart.Opportunities(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("opportunities: %w", err)
	}
	out := plain.Each(found, func(o smart.Opportunity) opportunity {
		return opportunity{
			Pass: o.Name, Class: o.Class, Looked: o.Looked, Changed: o.Changed,
			Saved: max(0, o.TokensBefore-o.TokensAfter), ByKind: o.Saved, MS: float64(o.Duration.Microseconds()) / 1000,
		}
	})
	return out, nil
}

func printOpportunities(w io.Writer, list []opportunity, total int) {
	t := term.NewTable("pass of smart", "class", ">looked at", ">would change", ">tokens to save", ">share")
	for _, o := range list {
		t.Row(o.Pass, o.Class, o.Looked, o.Changed, o.Saved, fmt.Sprintf("%.1f %%", 100*float64(o.Saved)/float64(max(1, total))))
	}
	_ = term.PrintText(w, t.Text("  ")+"\n")
	term.Printf(w, "the most that each pass would save alone, with its defaults; together they save less than the sum. The passes value,\nwindow and score are not listed: they remove as much as the target requires\n")
}
