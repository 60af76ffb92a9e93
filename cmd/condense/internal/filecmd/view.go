package filecmd

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/transcript"
)

func viewCommand(a *cli.App) *cobra.Command {
	var (
		format, to  string
		all, asJSON bool
		full        bool
		only        only
	)
	cmd := &cobra.Command{
		Use: "view FILE|-", Short: "Show what would be sent to the model", Args: cli.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if to != "" && (all || full || asJSON || only != nil) {
				return cli.Usage(cmd, "--to cannot be combined with --all, --only, --full or --json")
			}
			if to != "" && !slices.Contains(cli.FormatNames(), to) {
				return cli.Usage(cmd, "--to: no format %q; there are %s", to, strings.Join(cli.FormatNames(), ", "))
			}
			d, err := a.Read(cmd.Context(), args[0], format)
			if err != nil {
				return err
			}
			switch {
			case to != "":
				return writeView(a, d, to)
			case asJSON:
				return term.PrintJSON(a.Stdout, listing(d, all, only))
			}
			printView(a.Stdout, d, all, full, only)
			return nil
		},
	}
	a.InputFlags(cmd, &format, nil)
	cmd.Flags().StringVar(&to, "to", "", "write the view in this `format`: "+strings.Join(cli.OutputFormats(), ", "))
	cli.Complete(cmd, "to", cli.OutputFormats())
	cmd.Flags().Var(&only, "only", "list only these `parts`: "+strings.Join(onlyParts, ", ")+", separated by commas")
	cli.Complete(cmd, "only", onlyParts)
	cmd.Flags().BoolVar(&all, "all", false, "list hidden messages too")
	cmd.Flags().BoolVar(&full, "full", false, "print the whole text of each message")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// writeView writes only the view, even in a format that could record more.
func writeView(a *cli.App, d *transcript.Document, to string) error {
	if cli.RecordCondensations[to] && len(d.Journal.Condensations()) > 0 {
		j := history.New()
		if err := j.Append(d.Journal.View()...); err != nil {
			return err
		}
		d.Journal = j
	}
	return a.Write(d, &cli.Output{Stdout: a.Stdout}, to)
}

// A viewLine is a message of the timeline as JSON.
type viewLine struct {
	Number      int          `json:"number,omitempty"` // among the recorded ones
	HiddenBy    []string     `json:"hidden_by,omitempty"`
	InsertedBy  string       `json:"inserted_by,omitempty"`
	RewrittenBy string       `json:"rewritten_by,omitempty"`
	Dropped     bool         `json:"dropped,omitempty"` // by a rewind
	Message     core.Message `json:"message"`
}

func listing(d *transcript.Document, all bool, only only) []viewLine {
	lines := []viewLine{}
	n := 0
	timeline := d.Journal.Timeline()
	read := dialog.Read(plain.Each(timeline, func(e history.Entry) core.Message { return e.Message }))
	for i, e := range timeline {
		l := viewLine{HiddenBy: e.HiddenBy, InsertedBy: e.InsertedBy, RewrittenBy: e.RewrittenBy, Message: e.Message}
		l.Message.Source = nil
		if e.InsertedBy == "" {
			n++
			l.Number = n
		}
		if (all || len(e.HiddenBy) == 0) && only.leaves(&l.Message, read.Messages[i]) {
			lines = append(lines, l)
		}
	}
	if all {
		for _, e := range d.Journal.Dropped() {
			e.Message.Source = nil
			lines = append(lines, viewLine{InsertedBy: e.InsertedBy, Dropped: true, Message: e.Message})
		}
	}
	return lines
}

func printView(w io.Writer, d *transcript.Document, all, full bool, only only) {
	text, between := excerpt, " | "
	if full {
		text, between = plain.Text, "\n"
	}
	show := func(number, id string, role core.Role, note, text string) {
		if full {
			text = strings.ReplaceAll("\n"+text, "\n--- ", "\n --- ")[1:] // only headings begin so
			_ = term.PrintText(w, fmt.Sprintf("--- %s\n%s\n", strings.Join(strings.Fields(number+" "+string(role)+" "+note), " "), text))
			return
		}
		term.Printf(w, "%5s %-10s %-9s %s%s\n", number, id, role, note, text)
	}
	if d.System != "" && !only.choosesMessages() {
		show("", "", "system", "", text(d.System))
	}
	for _, l := range listing(d, all, only) {
		number := ""
		if l.Number > 0 {
			number = strconv.Itoa(l.Number)
		}
		note := ""
		switch {
		case l.Dropped:
			note = "dropped by a rewind: "
		case len(l.HiddenBy) > 0:
			note = "hidden by " + short(l.HiddenBy[len(l.HiddenBy)-1]) + ": "
		case l.Message.Kind != core.KindOriginal:
			note = string(l.Message.Kind) + ": "
		case l.RewrittenBy != "":
			note = "rewritten by " + short(l.RewrittenBy) + ": "
		}
		if l.Message.Protected {
			note = "protected: " + note
		}
		show(number, short(l.Message.ID), l.Message.Role, note, describe(l.Message.Parts, text, between))
	}
}

// short abbreviates a UUID.
func short(id string) string {
	if len(id) > 10 {
		return id[:9] + "…"
	}
	return id
}

// describe describes parts, with text for each text.
func describe(parts []core.Part, text func(string) string, between string) string {
	var s []string
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			s = append(s, text(string(p)))
		case core.ToolCall:
			s = append(s, "call "+plain.Line(p.Name)+" "+text(p.Args))
		case core.ToolResult:
			verb := "result "
			if p.IsError {
				verb = "error "
			}
			s = append(s, verb+describe(p.Content, text, between))
		case core.Image:
			s = append(s, "[image "+plain.Line(p.MediaType)+"]")
		case core.Reasoning:
			s = append(s, "[reasoning] "+text(p.Text))
		case core.Opaque:
			s = append(s, "["+plain.Line(p.Kind)+"]")
		}
	}
	return strings.Join(s, between)
}

// excerpt returns the beginning of s as one clean line.
func excerpt(s string) string {
	const most = 100
	var b strings.Builder
	for _, r := range s {
		if unicode.IsSpace(r) {
			if n := b.Len(); n > 0 && b.String()[n-1] != ' ' {
				b.WriteByte(' ')
			}
			continue
		}
		if b.Len() >= most {
			return plain.Line(b.String()) + "…"
		}
		b.WriteRune(r)
	}
	return plain.Line(strings.TrimRight(b.String(), " "))
}

// An only is the flag that restricts the output of view. Nil means everything.
type only []string

// The values of --only.
const (
	onlyUser      = "user"
	onlySummary   = "summary"
	onlyNoResults = "no-results"
	onlyNoParams  = "no-params"
)

var onlyParts = []string{onlyUser, onlySummary, onlyNoResults, onlyNoParams}

// Set implements pflag.Value.
func (o *only) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); !slices.Contains(onlyParts, name) {
			return fmt.Errorf("want %s%s", strings.Join(onlyParts, ", "), suggest.DidYouMean(name, onlyParts))
		}
		*o = append(*o, name)
	}
	return nil
}

func (o *only) String() string { return strings.Join(*o, ",") }

// Type implements pflag.Value: the value's name in --help.
func (o *only) Type() string { return "part" }

// choosesMessages reports whether whole messages are left out.
func (o *only) choosesMessages() bool {
	return slices.Contains(*o, onlyUser) || slices.Contains(*o, onlySummary)
}

// leaves removes the parts of m that are not listed, given its parts as read, and reports whether anything remains.
func (o *only) leaves(m *core.Message, read []dialog.Part) bool {
	user := slices.Contains(*o, onlyUser) && m.Role == core.RoleUser && m.Kind == core.KindOriginal
	summary := slices.Contains(*o, onlySummary) && m.Kind != core.KindOriginal
	if o.choosesMessages() && !user && !summary {
		return false
	}
	before := len(m.Parts)
	var parts []core.Part
	for j, p := range m.Parts {
		switch p := p.(type) {
		case core.Text:
			if t := o.text(m, p, read[j].Passages); t != "" || p == "" {
				parts = append(parts, t)
			}
		case core.ToolResult:
			if slices.Contains(*o, onlyNoResults) || slices.Contains(*o, onlyUser) {
				continue // API formats have results in user messages
			}
			parts = append(parts, p)
		case core.ToolCall:
			if slices.Contains(*o, onlyNoParams) {
				p.Args = ""
			}
			parts = append(parts, p)
		case core.Image, core.Reasoning, core.Opaque:
			parts = append(parts, p)
		}
	}
	m.Parts = parts
	return len(parts) > 0 || before == 0
}

// text returns the listed part of a text, which can hold calls, results and additions by a program.
func (o *only) text(m *core.Message, t core.Text, passages []dialog.Passage) core.Text {
	if len(*o) == 0 || m.Kind != core.KindOriginal || m.Role == core.RoleSystem {
		return t
	}
	var b strings.Builder
	for _, s := range passages {
		result := s.Kind == dialog.KindToolResult || s.Kind == dialog.KindError || s.Kind == dialog.KindHeader
		switch {
		case slices.Contains(*o, onlyUser) && m.Role == core.RoleUser && s.Kind != dialog.KindUser:
		case slices.Contains(*o, onlyNoResults) && result:
		case slices.Contains(*o, onlyNoParams) && s.Kind == dialog.KindToolCall && s.Use != nil:
			b.WriteString("<" + s.Use.Name + ">\n")
		default:
			b.WriteString(s.Text)
		}
	}
	if strings.TrimSpace(b.String()) == "" {
		return ""
	}
	return core.Text(b.String())
}
