package main

import (
	"io"

	"github.com/condensehq/condense/internal/lab/report"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// writeInspectionHTML writes what d consists of as a page that stands alone.
func writeInspectionHTML(w io.Writer, in *inspection, d *transcript.Document, counter *tokens.Counter) error {
	text := func(name string) report.Column { return report.Column{Name: name} }
	number := func(name string) report.Column { return report.Column{Name: name, Number: true} }
	tools := report.Table{Title: "By tool", Columns: []report.Column{
		text("tool"), number("calls"), number("errors"), number("calls’ tokens"), number("results’ tokens"),
	}}
	for _, s := range in.ByTool {
		tools.Rows = append(tools.Rows, []any{s.Tool, s.Calls, s.Errors, s.CallTokens, s.ResultTokens})
	}
	messages := report.Table{Title: "Largest", Columns: []report.Column{text("message"), text("role"), number("tokens"), text("begins")}}
	for _, l := range in.Largest {
		messages.Rows = append(messages.Rows, []any{short(l.ID), string(l.Role), l.Tokens, l.Excerpt})
	}
	copies := report.Table{Title: "Repeated text", Columns: []report.Column{text("message"), number("times"), number("tokens to save"), text("begins")}}
	for _, c := range in.Duplicates {
		copies.Rows = append(copies.Rows, []any{short(c.IDs[0]), c.Times, c.Tokens, c.Excerpt})
	}
	return report.WriteConversation(w, d, counter, &report.ConversationOptions{
		Name: in.File, Encoding: in.Tokenizer, Tables: []report.Table{tools, messages, copies},
	})
}
