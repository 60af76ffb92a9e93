package main

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/transcript"
)

func (a *app) viewCommand() *cobra.Command {
	var (
		format, to  string
		all, asJSON bool
		only        only
	)
	cmd := &cobra.Command{
		Use:   "view FILE|-",
		Short: "Show what would be sent to the model",
		Long: `view lists the messages that would be sent to the model, a line each: number, ID, role, and how they begin.
With --to they are written in a format that a model's API takes; with --all the hidden ones are listed too,
with what hides them, and at the end what rewinds dropped.`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if to != "" && (all || asJSON || only != nil) {
				return usage(cmd, "--to cannot be combined with --all, --only or --json")
			}
			if to != "" && !slices.Contains(formatNames(), to) {
				return usage(cmd, "--to: no format %q; there are %s", to, strings.Join(formatNames(), ", "))
			}
			d, err := a.read(cmd.Context(), args[0], format)
			if err != nil {
				return err
			}
			switch {
			case to != "":
				return a.writeView(d, to)
			case asJSON:
				return printJSON(a.stdout, listing(d, all, only))
			}
			printView(a.stdout, d, all, only)
			return nil
		},
	}
	a.inputFlags(cmd, &format, nil)
	cmd.Flags().StringVar(&to, "to", "", "write the view in this `format`: "+strings.Join(outputFormats(), ", "))
	complete(cmd, "to", outputFormats())
	cmd.Flags().Var(&only, "only", "list only `part` of it: "+strings.Join(onlyParts, ", ")+"; several are separated by commas")
	complete(cmd, "only", onlyParts)
	cmd.Flags().BoolVar(&all, "all", false, "list hidden messages too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// writeView writes the view alone, also in formats that could record more.
func (a *app) writeView(d *transcript.Document, to string) error {
	if recordCondensations[to] && len(d.Journal.Condensations()) > 0 {
		j := history.New()
		if err := j.Append(d.Journal.View()...); err != nil {
			return err
		}
		d.Journal = j
	}
	return a.write(d, &output{stdout: a.stdout}, to)
}

// A viewLine is a message of the timeline as JSON.
type viewLine struct {
	Number      int          `json:"number,omitempty"` // among those recorded
	HiddenBy    []string     `json:"hidden_by,omitempty"`
	InsertedBy  string       `json:"inserted_by,omitempty"`
	RewrittenBy string       `json:"rewritten_by,omitempty"`
	Dropped     bool         `json:"dropped,omitempty"` // by a rewind
	Message     core.Message `json:"message"`
}

func listing(d *transcript.Document, all bool, only only) []viewLine {
	lines := []viewLine{}
	n := 0
	for _, e := range d.Journal.Timeline() {
		l := viewLine{HiddenBy: e.HiddenBy, InsertedBy: e.InsertedBy, RewrittenBy: e.RewrittenBy, Message: e.Message}
		l.Message.Source = nil
		if e.InsertedBy == "" {
			n++
			l.Number = n
		}
		if (all || len(e.HiddenBy) == 0) && only.leaves(&l.Message) {
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

func printView(w io.Writer, d *transcript.Document, all bool, only only) {
	if d.System != "" && !only.choosesMessages() {
		printf(w, "%5s %-10s %-9s %s\n", "", "", "system", excerpt(d.System))
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
		printf(w, "%5s %-10s %-9s %s%s\n", number, short(l.Message.ID), l.Message.Role, note, describe(l.Message.Parts))
	}
}

// short abbreviates a UUID.
func short(id string) string {
	if len(id) > 10 {
		return id[:9] + "…"
	}
	return id
}

// describe says in a line what parts hold.
func describe(parts []core.Part) string {
	var s []string
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			s = append(s, excerpt(string(p)))
		case core.ToolCall:
			s = append(s, "call "+p.Name+" "+excerpt(p.Args))
		case core.ToolResult:
			verb := "result "
			if p.IsError {
				verb = "error "
			}
			s = append(s, verb+describe(p.Content))
		case core.Image:
			s = append(s, "[image "+p.MediaType+"]")
		case core.Reasoning:
			s = append(s, "[reasoning] "+excerpt(p.Text))
		case core.Opaque:
			s = append(s, "["+p.Kind+"]")
		}
	}
	return strings.Join(s, " | ")
}

// excerpt returns the beginning of s as one line that no terminal stumbles over.
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
