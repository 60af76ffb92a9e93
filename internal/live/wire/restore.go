package wire

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// A Round is the part of an answer by a [Splice] that the client does not see and so sends back without: calls of the
// gateway's tool and their results.
type Round struct {
	Said     Hash     `json:"said"`              // of the text that the client was given
	Own      []string `json:"own,omitempty"`     // the calls that it was given: see [keyOf]
	Messages [][]byte `json:"messages"`          // the answer, with results between its parts
	Results  [][]byte `json:"results,omitempty"` // of calls in the last part: they go with the client's results
}

// NewRound returns the round of an answer. Messages are the answer with its results; results are the results of its
// last part's calls, as [Result] makes them.
func NewRound(api API, messages, results [][]byte, calls []Call) (*Round, error) {
	all, err := ParseMessages(api, messages)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m Message) bool { return m.Role != "assistant" })
	if len(all) == 0 {
		return nil, errors.New("the answer says nothing")
	}
	r := &Round{Messages: messages, Results: results}
	r.Said, r.Own = said(Of(api), all)
	r.Own = slices.DeleteFunc(r.Own, func(key string) bool { return slices.ContainsFunc(calls, func(c Call) bool { return c.key == key }) })
	return r, nil
}

// ParseMessages reads messages.
func ParseMessages(api API, messages [][]byte) ([]Message, error) {
	all := make([]Message, len(messages))
	var err error
	for i, raw := range messages {
		if all[i], err = parseMessage(Of(api), raw); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// said returns a hash of the text of messages, without space, and the keys of their calls in order.
func said(d *Dialect, messages []Message) (Hash, []string) {
	var text strings.Builder
	var keys []string
	for i := range messages {
		text.WriteString(TextOf(d.API, messages[i].Raw))
		keys = append(keys, d.tool.calls(d, &messages[i])...)
	}
	slices.Sort(keys)
	return half(sha256.Sum256([]byte(strings.Join(strings.Fields(text.String()), "")))), keys
}

// TextOf returns the text of a message of the model, without its thinking.
func TextOf(api API, message []byte) string {
	d := Of(api)
	content := rawjson.Field(message, d.edit.content)
	if rawjson.IsString(content) {
		return rawjson.Text(content)
	}
	if StripThinking(api, message) == nil {
		return ""
	}
	var text strings.Builder
	for block := range rawjson.Elements(content) {
		if d.edit.says(block) {
			text.WriteString(rawjson.Text(rawjson.Field(block, "text")))
		}
	}
	return text.String()
}

// Restore returns the messages of r with the rounds of each answer reinserted, as the vendor knows it; nil if no
// answer has one. Rounds returns the rounds recorded for the answer at an index, of which the matching one counts:
// the client may have repeated its request.
func Restore(r *Request, rounds func(i int) []*Round) [][]byte {
	d := Of(r.API)
	var out [][]byte
	found := false
	for i := 0; i < len(r.Messages); {
		run := r.run(i)
		var fit *Round
		if run[0].Role == "assistant" && i > 0 {
			fit = fitting(d, run, rounds(i))
		}
		i += len(run)
		if fit == nil {
			out = append(out, plain.Each(run, func(m Message) []byte { return m.Raw })...)
			continue
		}
		found = true
		out = append(out, fit.answer(d, run)...)
		var more [][]byte
		more, i = fit.results(d, r, i)
		out = append(out, more...)
	}
	if !found {
		return nil
	}
	return out
}

// results returns the results that follow the answer, up to the client's message i: the results of the last part's calls,
// merged with the client's results if the API puts all results into one message or matches them to calls by their order.
func (o *Round) results(d *Dialect, r *Request, i int) ([][]byte, int) {
	switch {
	case len(o.Results) == 0:
		return nil, i
	case d.tool.turn == "":
		return o.Results, i
	}
	var next []byte
	if i < len(r.Messages) && r.Messages[i].Role == "user" {
		next = r.Messages[i].Raw
		i++
	}
	return [][]byte{o.merged(d, next)}, i
}

// run returns the messages of the answer that begins at i, or the message there.
func (r *Request) run(i int) []Message {
	end := i + 1
	for r.Messages[i].Role == "assistant" && end < len(r.Messages) && r.Messages[end].Role == "assistant" {
		end++
	}
	return r.Messages[i:end]
}

// Apart reports whether the answer that begins at i is one of rounds that has nothing to put back.
func (r *Request) Apart(i int, rounds []*Round) bool {
	fit := fitting(Of(r.API), r.run(i), rounds)
	return fit != nil && fit.Messages == nil
}

func fitting(d *Dialect, run []Message, rounds []*Round) *Round {
	if len(rounds) == 0 {
		return nil
	}
	text, ids := said(d, run)
	for _, o := range slices.Backward(rounds) {
		if slices.Equal(o.Own, ids) && (len(ids) > 0 || o.Said == text) {
			return o
		}
	}
	return nil
}

// answer returns the replacement of the client's messages. If the client leaves out thinking, it is not restored; the
// client's cache marker stays.
func (o *Round) answer(d *Dialect, run []Message) [][]byte {
	bare := !slices.ContainsFunc(run, func(m Message) bool { return m.Thinking })
	var out [][]byte
	for _, raw := range o.Messages {
		if bare {
			if raw = StripThinking(d.API, raw); raw == nil {
				continue
			}
		}
		out = append(out, raw)
	}
	last := &run[len(run)-1]
	if n := len(out) - 1; n >= 0 && last.Markers > 0 && d.edit.mark != nil {
		out[n] = d.edit.mark(out[n], last.TTL())
	}
	return out
}

// merged returns a message of the user with the results added in the order of the calls before it; for nil, a message
// of its own.
func (o *Round) merged(d *Dialect, next []byte) []byte {
	if next == nil {
		return ResultMessages(d.API, o.Results)[0]
	}
	content := rawjson.Field(next, d.edit.content)
	blocks := slices.Collect(rawjson.Elements(content))
	answers := d.tool.answers
	if answers == nil { // pairs by the names of functions
		return rawjson.ReplaceValue(next, content, rawjson.Array(slices.Concat(o.Results, blocks)))
	}
	var order []string
	for b := range rawjson.Elements(rawjson.Field(o.Messages[len(o.Messages)-1], "content")) {
		if c, ok := d.tool.call(d, b); ok {
			order = append(order, c.key)
		}
	}
	place := func(result []byte) int { return slices.Index(order, answers(result)) }
	if rawjson.IsString(content) {
		blocks = [][]byte{rawjson.Append(nil, `{"type":"text","text":?}`, content)}
	}
	left := o.Results
	var out [][]byte
	for i, b := range blocks {
		result := answers(b) != ""
		for len(left) > 0 && (!result || place(b) > place(left[0])) {
			out, left = append(out, left[0]), left[1:]
		}
		if out = append(out, b); !result {
			out = append(out, blocks[i+1:]...)
			break
		}
	}
	return rawjson.ReplaceValue(next, content, rawjson.Array(append(out, left...)))
}

// Result returns the result of a call of the gateway's tool: a block of content, or a message.
func Result(api API, tool, call, text string, failed bool) []byte {
	return Of(api).tool.result(tool, call, text, failed)
}

// ResultMessages returns results as messages.
func ResultMessages(api API, results [][]byte) [][]byte {
	if turn := Of(api).tool.turn; turn != "" {
		return [][]byte{rawjson.Append(nil, turn, rawjson.Array(results))}
	}
	return results
}

// A Tool is one that the gateway offers: texts and a JSON schema, with the same bytes in every request.
type Tool struct {
	Name, Description string
	Schema            []byte
}

// functions returns the list of functions that a body declares. For OpenAI's newest models pi does so in the first item of the history.
func (d *Dialect) functions(body []byte) []byte {
	list := d.tool.declared(at(body, d.tool.list...))
	if item := firstOf(rawjson.Field(body, "input")); !rawjson.IsArray(list) && textAt(item, "type") == "additional_tools" {
		return rawjson.Field(item, "tools")
	}
	return list
}

// AddTool returns the body of r with a tool after the client's own and, unless messages is nil, with other messages.
// It returns nil if the tool does not fit: the request has no tools, has one of that name, or wants several answers.
func (r *Request) AddTool(t *Tool, messages [][]byte) []byte {
	n, d := 0, Of(r.API)
	for raw := range rawjson.Elements(d.functions(r.Body)) {
		for _, o := range [][]byte{raw, rawjson.Field(raw, "function"), rawjson.Field(raw, "toolSpec")} {
			if rawjson.IsObject(o) && rawjson.Text(rawjson.Field(o, "name")) == t.Name {
				return nil
			}
		}
		n++
	}
	several := slices.ContainsFunc(d.tool.choices, func(path []string) bool { return rawjson.Int(at(r.Body, path...)) > 1 })
	if n == 0 || several {
		return nil
	}
	body := r.Body
	if messages != nil {
		body = r.With(messages)
	}
	body = slices.Clip(body)
	tools := d.functions(body)
	list := bytes.TrimRight(tools[:len(tools)-1], " \t\r\n") // of an array that was parsed
	own := rawjson.Append([]byte{','}, d.tool.form, t.Name, t.Description, t.Schema)
	return rawjson.ReplaceValue(body, tools, slices.Concat(list, own, tools[len(list):]))
}
