package main

import (
	"io"

	"github.com/condensehq/condense/compare/htmlreport"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// writeInspectionHTML writes what d consists of as a page that stands alone.
func writeInspectionHTML(w io.Writer, in *inspection, d *transcript.Document, counter *tokens.Counter) error {
	text := func(name string) htmlreport.Column { return htmlreport.Column{Name: name} }
	number := func(name string) htmlreport.Column { return htmlreport.Column{Name: name, Number: true} }
	tools := htmlreport.Table{Title: "By tool", Columns: []htmlreport.Column{
		text("tool"), number("calls"), number("errors"), number("calls’ tokens"), number("results’ tokens"),
	}}
	for _, s := range in.ByTool {
		tools.Rows = append(tools.Rows, []any{s.Tool, s.Calls, s.Errors, s.CallTokens, s.ResultTokens})
	}
	messages := htmlreport.Table{Title: "Largest", Columns: []htmlreport.Column{text("message"), text("role"), number("tokens"), text("begins")}}
	for _, l := range in.Largest {
		messages.Rows = append(messages.Rows, []any{short(l.ID), string(l.Role), l.Tokens, l.Excerpt})
	}
	copies := htmlreport.Table{Title: "Repeated text", Columns: []htmlreport.Column{text("message"), number("times"), number("tokens to save"), text("begins")}}
	for _, c := range in.Duplicates {
		copies.Rows = append(copies.Rows, []any{short(c.IDs[0]), c.Times, c.Tokens, c.Excerpt})
	}
	return htmlreport.WriteConversation(w, d, counter, &htmlreport.ConversationOptions{
		Name: in.File, Encoding: in.Tokenizer, Tables: []htmlreport.Table{tools, messages, copies},
	})
}
