package native

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/outline"
	"github.com/condensehq/condense/internal/testkit/golden"
	"github.com/condensehq/condense/internal/testkit/roo"
	"github.com/condensehq/condense/model"
)

// A rooChunk is what a recorded model said at a time.
type rooChunk struct {
	Type         string  `json:"type"`
	Text         string  `json:"text"`
	TotalCost    float64 `json:"totalCost"`
	InputTokens  float64 `json:"inputTokens"`
	OutputTokens float64 `json:"outputTokens"`
	Error        *thrown `json:"error"`
}

// rooHandler is a recorded model.
type rooHandler struct {
	Stream          []json.RawMessage `json:"stream"`
	CreateThrows    *thrown           `json:"createThrows"`
	NoCreateMessage bool              `json:"noCreateMessage"`
	NullHandler     bool              `json:"nullHandler"`
	SupportsImages  bool              `json:"supportsImages"`

	asks []*model.Prompt
}

func (h *rooHandler) Info() model.Info { return model.Info{Images: h.SupportsImages} }

// thrown is what a recorded model threw.
type thrown struct {
	Kind    string          `json:"kind"`
	Message string          `json:"message"`
	Name    string          `json:"name"`
	Props   map[string]any  `json:"props"`
	Value   json.RawMessage `json:"value"`
}

// A thrownError is the same as an error.
type thrownError struct{ message string }

func (e *thrownError) Error() string { return e.message }

func (t *thrown) err() error {
	if t.Kind == "Error" {
		return &thrownError{t.Message}
	}
	if s, ok := stringOf(t.Value); ok {
		return &thrownError{s}
	}
	return &thrownError{"[object Object]"}
}

// errNoHandler is where Roo-Code throws a TypeError because it has no model at all.
var errNoHandler = errors.New("no handler")

func (h *rooHandler) Generate(_ context.Context, p *model.Prompt) (*model.Answer, error) {
	switch {
	case h.NullHandler:
		return nil, errNoHandler
	case h.NoCreateMessage:
		return nil, core.ErrUnavailable
	}
	h.asks = append(h.asks, p)
	a := &model.Answer{Usage: core.Usage{Calls: 1}}
	if h.CreateThrows != nil {
		return a, h.CreateThrows.err()
	}
	for _, raw := range h.Stream {
		var c rooChunk
		if json.Unmarshal(raw, &c) != nil {
			continue // of a type that says nothing here
		}
		switch c.Type {
		case "text":
			a.Text += c.Text
		case "usage":
			a.Usage = core.Usage{Calls: 1, InputTokens: int(c.InputTokens), OutputTokens: int(c.OutputTokens), USD: c.TotalCost}
		case "throw":
			return a, c.Error.err()
		}
	}
	return a, nil
}

// rooOptions are the options of summarizeConversation and manageContext.
type rooOptions struct {
	SystemPrompt           string                     `json:"systemPrompt"`
	Handler                *rooHandler                `json:"handler"`
	IsAutomaticTrigger     bool                       `json:"isAutomaticTrigger"`
	EnvironmentDetails     string                     `json:"environmentDetails"`
	CustomCondensingPrompt string                     `json:"customCondensingPrompt"`
	FilesReadByRoo         []string                   `json:"filesReadByRoo"`
	Cwd                    string                     `json:"cwd"`
	Definitions            map[string]json.RawMessage `json:"definitions"`
	Metadata               json.RawMessage            `json:"metadata"`
	TotalTokens            float64                    `json:"totalTokens"`
	ContextWindow          float64                    `json:"contextWindow"`
	MaxTokens              *float64                   `json:"maxTokens"`
	AutoCondenseContext    bool                       `json:"autoCondenseContext"`
	AutoCondenseContextPct float64                    `json:"autoCondenseContextPercent"`
	ProfileThresholds      map[string]float64         `json:"profileThresholds"`
	CurrentProfileID       string                     `json:"currentProfileId"`
	Version                string                     `json:"version"`
	PrevContextTokens      float64                    `json:"prevContextTokens"`
	CondensingHandler      *rooHandler                `json:"condensingHandler"`
}

// rooResult is what these functions answer, as far as it is ours to answer.
type rooResult struct {
	Messages      json.RawMessage `json:"messages,omitempty"`
	Summary       *string         `json:"summary,omitempty"`
	Cost          float64         `json:"cost"`
	NewTokens     int             `json:"newContextTokens,omitempty"`
	CondenseID    string          `json:"condenseId,omitempty"`
	Error         string          `json:"error,omitempty"`
	ErrorKey      string          `json:"errorKey,omitempty"`
	ErrorParams   map[string]any  `json:"errorParams,omitempty"`
	Same          *bool           `json:"messagesSame,omitempty"`
	Requests      []any           `json:"requests,omitzero"`
	OtherRequests []any           `json:"condensingRequests,omitzero"`
	PrevTokens    *float64        `json:"prevContextTokens,omitempty"`
	TruncationID  string          `json:"truncationId,omitempty"`
	Removed       *int            `json:"messagesRemoved,omitempty"`
	AfterTokens   int             `json:"newContextTokensAfterTruncation,omitempty"`

	stored []*roo.Message
	copied bool // stored is another array, if with the same messages
	err    error
}

// notOurs are the members of recorded results that no part of this module produces: what
// Roo tells its makers, how it groups its calls of the counter, and how it prints the
// error of an SDK.
var notOurs = &golden.Options{Ignore: []string{"telemetry", "countTokensTrace", "errorDetails"}}

// rooErrors are the errors of the provider as Roo words them.
var rooErrors = []struct {
	is        error
	key, text string
}{
	{errNotEnough, "condense_not_enough_messages", "Not enough messages to condense context"},
	{errRecently, "condensed_recently", "Context was condensed recently; skipping this attempt"},
	{model.ErrNoText, "condense_failed", "Failed to condense context"},
	{core.ErrUnavailable, "condense_handler_invalid", "API handler for condensing context is invalid"},
	{errGrew, "condense_context_grew", "Context size increased during condensing; skipping this attempt"},
}

var errGrew = errors.New("grew")

func (r *rooResult) fail(err error) {
	r.err = err
	refused := new(thrownError)
	if errors.As(err, &refused) {
		r.ErrorKey, r.Error = "common:errors.condense_api_failed", "Condensing API call failed: "+refused.message
		r.ErrorParams = map[string]any{"message": refused.message}
		return
	}
	for _, e := range rooErrors {
		if errors.Is(err, e.is) {
			r.ErrorKey, r.Error = "common:errors."+e.key, e.text
			return
		}
	}
	r.Error = err.Error()
}

// chars4 is the counter of the recordings.
type chars4 struct{}

func (chars4) text(s string) int { return (len(utf16.Encode([]rune(s))) + 3) / 4 }

func (c chars4) Count(parts ...core.Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			n += c.text(string(p))
		case core.Image:
			n += 50
		case core.ToolCall:
			n += c.text(p.Name + " " + cmp.Or(p.Args, "null"))
		case core.ToolResult:
			n += c.Count(p.Content...)
		case core.Reasoning, core.Opaque:
		}
	}
	return n
}

// A rooIDs hands out the UUIDs of the recordings.
type rooIDs int

func (n *rooIDs) next() string {
	*n++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", int(*n))
}

// summarizeAsRoo is Roo-Code's summarizeConversation, made of a rooProvider and of
// Roo's tags.
func summarizeAsRoo(messages []*roo.Message, o *rooOptions, ids *rooIDs) rooResult {
	settings := "fresh_start"
	if h := o.Handler; o.Version != "" && h.NullHandler {
		h.NullHandler, h.NoCreateMessage = false, true // v3.28 looked before it called
	}
	if o.Version != "" {
		settings = "keep_recent"
	}
	c, _ := presetConfig(settings)
	c.PromptText = o.CustomCondensingPrompt
	handler := o.Handler
	if h := o.CondensingHandler; h != nil && !h.NoCreateMessage && !h.NullHandler {
		handler = h
	}
	p, err := New(c, handler)
	if err != nil {
		panic(err)
	}
	p.c.readFirst = o.Version != "3.28.2"
	p.fold = func(_ context.Context, req *core.Request, chars int) ([]string, error) {
		return foldStandIns(req, chars, o.Definitions), nil
	}
	r := newRooReader()
	req := &core.Request{
		Messages: r.read(messages), System: o.SystemPrompt, Trigger: core.TriggerManual, Environment: o.EnvironmentDetails,
		FilesRead: o.FilesReadByRoo, Dir: o.Cwd, Counter: chars4{},
	}
	if o.IsAutomaticTrigger {
		req.Trigger = core.TriggerAutomatic
	}
	res, err := rooProvider{p}.condense(context.Background(), req)
	out := rooResult{stored: messages, Requests: requestsOf(o.Handler, r, o), OtherRequests: nil}
	if o.CondensingHandler != nil {
		out.OtherRequests = requestsOf(o.CondensingHandler, r, o)
	}
	if res != nil {
		out.Cost = res.Usage.USD
	}
	if err != nil {
		out.fail(err)
		return out
	}
	i := slices.IndexFunc(res.Messages, func(m core.Message) bool { return m.ID == "" })
	summary := res.Messages[i]
	text := strings.TrimPrefix(string(summary.Parts[0].(core.Text)), p.c.heading)
	size := chars4{}.text(o.SystemPrompt) + chars4{}.Count(summary.Parts...)
	if o.Version != "" {
		return rooLegacyResult(out, o, messages, res, i, text)
	}
	var meta struct {
		Tools []json.RawMessage `json:"tools"`
	}
	_ = json.Unmarshal(o.Metadata, &meta)
	if len(meta.Tools) > 0 {
		size += chars4{}.text(compactTools(o.Metadata))
	}
	out.NewTokens, out.Summary, out.CondenseID = size, &text, ids.next()
	out.stored = nil
	ts := float64(recordedNow)
	for _, m := range messages {
		if m.Tag(roo.CondenseParent) == "" {
			m = m.With(roo.CondenseParent, out.CondenseID)
		}
		out.stored = append(out.stored, m)
	}
	if last, ok := messages[len(messages)-1].TS(); ok {
		ts = last
	}
	out.stored = append(out.stored, mustMessage(map[string]any{
		"role": summary.Role, "content": r.write(summary.Parts), "ts": ts + 1, "isSummary": true, "condenseId": out.CondenseID,
	}))
	return out
}

// rooLegacyResult is how v3.28 stored a summary, which is message i of res, and what it
// held against it.
func rooLegacyResult(out rooResult, o *rooOptions, messages []*roo.Message, res *core.Result, i int, text string) rooResult {
	recent := res.Messages[i+1:]
	size := chars4{}.text(o.SystemPrompt)
	for _, m := range recent {
		size += chars4{}.Count(m.Parts...)
	}
	if res.Usage.OutputTokens > 0 {
		size += res.Usage.OutputTokens
	} else {
		size += chars4{}.text(text)
	}
	if float64(size) >= o.PrevContextTokens {
		out.fail(errGrew)
		return out
	}
	kept := messages[len(messages)-len(recent):]
	summary := map[string]any{"role": res.Messages[i].Role, "content": text, "isSummary": true}
	if ts, ok := kept[0].TS(); ok {
		summary["ts"] = ts
	}
	out.NewTokens, out.Summary = size, &text
	out.stored = append([]*roo.Message{messages[0], mustMessage(summary)}, kept...)
	return out
}

// compactTools returns the list of tools as JSON without space.
func compactTools(metadata json.RawMessage) string {
	var meta map[string]json.RawMessage
	var b bytes.Buffer
	if err := errors.Join(json.Unmarshal(metadata, &meta), json.Compact(&b, meta["tools"])); err != nil {
		panic(err)
	}
	return b.String()
}

func mustMessage(m map[string]any) *roo.Message {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	parsed, err := roo.ParseMessage(data)
	if err != nil {
		panic(err)
	}
	return parsed
}

// foldStandIns folds what a vector says is in the files.
func foldStandIns(req *core.Request, chars int, definitions map[string]json.RawMessage) []string {
	folded := outline.Pack(req.FilesRead, chars, func(path string) (string, error) {
		text, ok := stringOf(definitions[path]) // null says that there is nothing, an object that the parser throws
		if !ok {
			return "", errors.New("nothing")
		}
		return text, nil
	})
	var blocks []string
	for _, b := range folded.Blocks {
		blocks = append(blocks, b.Text)
	}
	return blocks
}

// requestsOf returns what a handler was asked, with the built-in prompts under the names
// that Roo's have in the recordings: they are in our own words.
func requestsOf(h *rooHandler, r *rooReader, o *rooOptions) []any {
	ours := map[string]string{
		strings.TrimSpace(systemPrompt):   "<<SUMMARY_PROMPT>>",
		strings.TrimSpace(handoverPrompt): "<<CONDENSE_PROMPT>>",
		begin:                             "Summarize the conversation so far, as described in the prompt instructions.",
	}
	if o.Version != "" {
		ours[strings.TrimSpace(handoverPrompt)] = "<<LEGACY_SUMMARY_PROMPT>>"
	}
	r.alone["Please continue from the following summary:"] = true
	r.alone[strings.TrimSpace(o.CustomCondensingPrompt)] = true
	requests := []any{}
	for _, p := range h.asks {
		messages := []any{}
		for _, m := range p.Messages {
			content := r.content(m.Parts)
			if t, ok := m.Parts[0].(core.Text); ok && ours[string(t)] != "" {
				content = ours[string(t)]
			}
			messages = append(messages, map[string]any{"role": m.Role, "content": content})
		}
		request := map[string]any{"systemPrompt": cmp.Or(ours[p.System], p.System), "messages": messages}
		if o.Metadata != nil {
			request["metadata"] = o.Metadata // Roo's own client wants it
		}
		requests = append(requests, request)
	}
	return requests
}

// done completes a result of messages.
func (r *rooResult) done(messages []*roo.Message) *rooResult {
	r.Messages = roo.Encode(r.stored)
	r.Same = new(slices.Equal(r.stored, messages) && !r.copied)
	if r.Summary == nil {
		r.Summary = new(string)
	}
	return r
}

func TestGoldenSummarize(t *testing.T) {
	t.Parallel()
	type input struct {
		rooOptions
		Messages rooHistory `json:"messages"`
	}
	golden.Run(t, "summarizeConversation", func(in input) (any, error) {
		r := summarizeAsRoo(in.Messages, &in.rooOptions, new(rooIDs))
		if errors.Is(r.err, errNoHandler) {
			return nil, r.err
		}
		return r.done(in.Messages), nil
	}, notOurs)
}

func TestGoldenLegacySummarize(t *testing.T) {
	t.Parallel()
	type input struct {
		rooOptions
		Messages rooHistory `json:"messages"`
	}
	golden.Run(t, "legacy.summarizeConversation", func(in input) (any, error) {
		r := summarizeAsRoo(in.Messages, &in.rooOptions, new(rooIDs))
		if errors.As(r.err, new(*thrownError)) {
			return nil, r.err
		}
		return r.done(in.Messages), nil
	}, notOurs)
}

// manageAsRoo is Roo-Code's manageContext: the policy roo decides, the provider condenses,
// and Roo's truncation follows if that failed and the conversation is over the limit.
func manageAsRoo(messages []*roo.Message, o *rooOptions, ids *rooIDs) (rooResult, error) {
	if len(messages) == 0 {
		return rooResult{}, errors.New("no message")
	}
	r := newRooReader()
	read := r.read(messages)
	prev := o.TotalTokens + float64(chars4{}.Count(read[len(read)-1].Parts...))
	used, window, reserve := prev, o.ContextWindow, 8192.0
	if o.MaxTokens != nil && *o.MaxTokens != 0 {
		reserve = *o.MaxTokens
	}
	golden.Whole(&used, &window, &reserve)
	rule := policy.Rule{
		Window: int(window), Buffer: 10, MaxOutput: int(reserve), Threshold: o.AutoCondenseContextPct,
		Exceptions: policy.Exceptions{UnknownReserve: 8192, StopAtLimit: true, IgnoreFixed: true, Eager: true, Unchecked: true},
	}
	if profile, ok := o.ProfileThresholds[cmp.Or(o.CurrentProfileID, "default")]; ok && profile >= 5 && profile <= 100 {
		rule.Threshold = profile
	}
	act := func(auto bool) bool {
		rule.Auto = auto
		return rule.Decide(policy.Size{Messages: int(used)}, policy.State{}, core.TriggerAutomatic).Act
	}
	out := rooResult{stored: messages, Requests: []any{}}
	if o.AutoCondenseContext && act(true) {
		auto := *o
		auto.IsAutomaticTrigger = true
		auto.PrevContextTokens = prev
		if out = summarizeAsRoo(messages, &auto, ids); out.err == nil {
			out.PrevTokens = &prev
			return out, nil
		}
		if o.Version != "" && errors.As(out.err, new(*thrownError)) || errors.Is(out.err, errNoHandler) {
			return out, out.err
		}
	}
	out.PrevTokens = &prev
	if !act(false) {
		return out, nil
	}
	if o.Version != "" {
		out.stored, out.copied = roo.LegacyTruncate(messages, 0.5), true
		return out, nil
	}
	truncated := roo.Truncate(messages, 0.5, ids.next, func() time.Time { return time.UnixMilli(recordedNow) })
	out.stored, out.TruncationID, out.Removed = truncated.Messages, truncated.ID, &truncated.Removed
	out.AfterTokens = chars4{}.text(o.SystemPrompt)
	for _, m := range truncated.Messages {
		if m.Tag(roo.TruncationParent) == "" && !m.IsTruncationMarker() {
			out.AfterTokens += chars4{}.Count(r.parts(m.Content())...)
		}
	}
	return out, nil
}

func TestGoldenManage(t *testing.T) {
	t.Parallel()
	type input struct {
		rooOptions
		Messages rooHistory `json:"messages"`
	}
	for _, file := range []string{"manageContext", "legacy.truncateConversationIfNeeded"} {
		golden.Run(t, file, func(in input) (any, error) {
			r, err := manageAsRoo(in.Messages, &in.rooOptions, new(rooIDs))
			if err != nil {
				return nil, err
			}
			return r.done(in.Messages), nil
		}, notOurs)
	}
}
