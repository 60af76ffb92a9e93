// Package exports reads what programs record or export of conversations and cannot take back changed.
//
// A format is a function that finds the records of a file and one that says what a record is; the rest is here. No format is documented
// by its maker: each follows at least two public files of different authors, and code that reads them.
package exports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/request"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
	"github.com/condensehq/condense/transcript/internal/session"
)

// A reader makes messages of records.
type reader struct {
	session session.Reader
	pairs   request.Pairs
	sep     string // between two records
	loose   bool   // the records are no JSON, or not pieces of the file: all of it is kept beside the messages
}

// read returns the function of a codec: find yields the records, in order, and decode adds the messages of one.
func read(find func(data []byte, r *reader) ([][]byte, error), decode func(r *reader, raw []byte) error) func([]byte, *codec.File) error {
	return func(data []byte, f *codec.File) error {
		r := &reader{session: session.Reader{File: f, Data: data, Taken: codec.IDs{}}, sep: ","}
		records, err := find(data, r)
		if err != nil {
			return err
		}
		for _, raw := range records {
			err := decode(r, raw)
			if bad := (*syntax.Error)(nil); errors.As(err, &bad) && !r.loose {
				return bad.In(data, raw, r.session.Records+1)
			}
			if err != nil {
				return err
			}
		}
		r.session.Close(r.sep)
		return nil
	}
}

// add adds the messages of the record raw, of which role said parts.
func (r *reader) add(raw []byte, id string, when time.Time, program bool, role core.Role, parts ...core.Part) error {
	if f := r.session.File; role == core.RoleSystem && len(r.session.Places) == 0 {
		f.System = blocks.Join(append([]core.Part{core.Text(f.System)}, parts...))
		return nil
	}
	return r.put(raw, id, when, split(role, program, parts))
}

// split returns parts as messages: results become messages of their own.
func split(role core.Role, program bool, parts []core.Part) (all []core.Message) {
	for _, p := range parts {
		of := role
		if _, ok := p.(core.ToolResult); ok {
			of = core.RoleTool
		} else if t, ok := p.(core.Text); ok && t == "" {
			continue
		}
		if n := len(all); n == 0 || all[n-1].Role != of {
			all = append(all, core.Message{Role: of, Program: program && of == core.RoleUser})
		}
		all[len(all)-1].Parts = append(all[len(all)-1].Parts, p)
	}
	return all
}

func (r *reader) put(raw []byte, id string, when time.Time, all []core.Message) error {
	if len(all) == 0 {
		return nil
	}
	if all = r.session.Take(raw, id, when, !r.loose, all); r.loose {
		all[0].Source = nil
	}
	return r.session.File.Add(all...)
}

// at returns the member of raw at the end of path.
func at(raw []byte, path ...string) []byte {
	for _, name := range path {
		raw = rawjson.Field(raw, name)
	}
	return raw
}

func text(raw []byte, path ...string) string { return rawjson.Text(at(raw, path...)) }

// seconds returns the time that is raw seconds after 1970, with a fraction.
func seconds(raw []byte) time.Time {
	var s float64
	if json.Unmarshal(raw, &s) != nil || s <= 0 || s > 1e11 {
		return time.Time{}
	}
	return time.UnixMilli(int64(s * 1000)).UTC()
}

// lines finds the objects of a file of lines, after lines that are no JSON, which a shell or a wrapper may have put before them.
func lines(data []byte, r *reader) (records [][]byte, err error) {
	for rest := data; len(rest) > 0 && rest[0] != '{'; data = rest {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	r.sep = jsonl.LineBreak(data)
	rows, warnings, err := jsonl.Rows(data)
	r.session.File.Warnings = append(r.session.File.Warnings, warnings...)
	for _, row := range rows {
		records = append(records, row.Raw)
	}
	return records, err
}

// list finds the elements of the first member of the names that is an array, or of the file itself if it is one.
func list(names ...string) func([]byte, *reader) ([][]byte, error) {
	return func(data []byte, _ *reader) ([][]byte, error) {
		if err := syntax.Validate(data); err != nil {
			return nil, err
		}
		array := data[rawjson.SkipSpace(data, 0):]
		for _, name := range slices.Backward(names) {
			if v := rawjson.Field(data, name); rawjson.IsArray(v) {
				array = v
			}
		}
		if !rawjson.IsArray(array) {
			return nil, syntax.NoMessages(data, names[0], rawjson.Field(data, names[0]))
		}
		return slices.Collect(rawjson.Elements(array)), nil
	}
}

// first returns the first record of a JSON file: of the named member, or of the file if it is an array.
func first(data []byte, names ...string) []byte {
	array := data[rawjson.SkipSpace(data, 0):]
	for _, name := range names {
		if v := rawjson.Field(array, name); rawjson.IsArray(v) {
			array = v
			break
		}
	}
	for e := range rawjson.Elements(array) {
		return e
	}
	return nil
}

// content returns the parts of a string, a block or an array of them.
func (r *reader) content(raw []byte) (parts []core.Part) {
	switch {
	case rawjson.IsString(raw):
		return []core.Part{core.Text(rawjson.Text(raw))}
	case rawjson.IsObject(raw):
		return []core.Part{r.block(raw)}
	}
	for e := range rawjson.Elements(raw) {
		parts = append(parts, r.content(e)...)
	}
	return parts
}

// block returns the part that raw is, in the forms of Anthropic, MCP and goose. Programs that leave out the IDs of calls have them in order.
func (r *reader) block(raw []byte) core.Part {
	kind := text(raw, "type") + text(raw, "content_type")
	switch kind {
	case "text", "input_text", "output_text":
		return core.Text(text(raw, "text"))
	case "thinking":
		return core.Reasoning{Text: text(raw, "thinking")}
	case "image":
		if data := text(raw, "data"); data != "" {
			return core.Image{MediaType: text(raw, "mimeType"), Data: data}
		}
	case "tool_use":
		return r.call(text(raw, "id"), text(raw, "name"), at(raw, "input"))
	case "tool_result":
		return r.result(text(raw, "tool_use_id"), text(raw, "name"), rawjson.IsTrue(at(raw, "is_error")), at(raw, "content"))
	case "toolRequest":
		return r.call(text(raw, "id"), text(raw, "toolCall", "value", "name"), at(raw, "toolCall", "value", "arguments"))
	case "toolResponse":
		said, failed := at(raw, "toolResult", "value"), text(raw, "toolResult", "status") == "error"
		if inner := at(said, "content"); inner != nil {
			said, failed = inner, failed || rawjson.IsTrue(at(said, "isError"))
		} else if failed {
			said = at(raw, "toolResult", "error")
		}
		return r.result(text(raw, "id"), "", failed, said)
	}
	return core.Opaque{Kind: kind, JSON: string(raw)}
}

func (r *reader) call(id, name string, args []byte) core.Part {
	return core.ToolCall{ID: r.pairs.Call(id, name), Name: name, Args: string(args)}
}

func (r *reader) result(id, name string, failed bool, said []byte) core.Part {
	result := core.ToolResult{CallID: r.pairs.Result(id, name), IsError: failed}
	for _, p := range (&reader{}).content(said) {
		switch p.(type) {
		case core.Text, core.Image, core.Opaque:
			result.Content = append(result.Content, p)
		default:
		}
	}
	return result
}

// quoted returns an object with one text, as the arguments of a call whose form the file does not keep.
func quoted(name, value string) []byte {
	return fmt.Appendf(nil, `{%s:%s}`, rawjson.AppendQuote(nil, name), rawjson.AppendQuote(nil, value))
}

// saying returns text as a JSON string.
func saying(text string) []byte { return rawjson.AppendQuote(nil, strings.TrimRight(text, "\n")) }

// sections returns the pieces of a text that begin with the lines for which begins is true.
func (r *reader) sections(data []byte, begins func(line string) bool) (records [][]byte) {
	r.loose = true
	begin, at := -1, 0
	for line := range bytes.Lines(data) {
		if begins(strings.TrimRight(string(line), "\r\n")) {
			if begin >= 0 {
				records = append(records, data[begin:at])
			}
			begin = at
		}
		at += len(line)
	}
	if begin >= 0 {
		records = append(records, data[begin:])
	}
	return records
}
