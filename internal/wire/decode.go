package wire

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

// errKind means that a field is not of the type that the protocol gives it.
var errKind = errors.New("a field of another type")

// runOf returns the body of the envelope data if it is only a run of messages.
func runOf(data []byte) ([]byte, bool) {
	num, typ, n := protowire.ConsumeTag(data)
	if n < 0 || num != numRequestMessages || typ != protowire.BytesType {
		return nil, false
	}
	body, m := protowire.ConsumeBytes(data[n:])
	return body, m >= 0 && n+m == len(data)
}

// A field is one field of an encoding.
type field struct {
	num   protowire.Number
	typ   protowire.Type
	value []byte // of a field of bytes
	n     uint64 // of a number
}

// nextField takes the first field off data, which is not empty.
func nextField(data []byte) (f field, rest []byte, err error) {
	num, typ, n := protowire.ConsumeTag(data)
	if n < 0 {
		return f, nil, protowire.ParseError(n)
	}
	f.num, f.typ = num, typ
	var m int
	switch typ { //nolint:exhaustive // other types are skipped
	case protowire.BytesType:
		f.value, m = protowire.ConsumeBytes(data[n:])
	case protowire.VarintType:
		f.n, m = protowire.ConsumeVarint(data[n:])
	default:
		m = protowire.ConsumeFieldValue(num, typ, data[n:])
	}
	if m < 0 {
		return f, nil, protowire.ParseError(m)
	}
	return f, data[n+m:], nil
}

// text returns the value of f, which must not be changed afterwards.
func (f *field) text() (string, error) {
	if f.typ != protowire.BytesType {
		return "", errKind
	}
	return stringOf(f.value), nil
}

// decodeRun appends the messages of the run body to messages. They share its bytes.
func decodeRun(body []byte, messages []core.Message) ([]core.Message, error) {
	d := decoder{}
	for len(body) > 0 {
		f, rest, err := nextField(body)
		if err != nil {
			return nil, err
		}
		body = rest
		if f.num != numMessages {
			continue
		}
		if f.typ != protowire.BytesType {
			return nil, errKind
		}
		m, err := d.message(f.value)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", len(messages), err)
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// A decoder allocates the lists of parts of many messages together.
type decoder struct {
	slab []core.Part
}

func (d *decoder) message(data []byte) (m core.Message, err error) {
	start := len(d.slab)
	for len(data) > 0 {
		var f field
		if f, data, err = nextField(data); err != nil {
			return m, err
		}
		var s string
		switch int(f.num) {
		case numMessageID:
			s, err = f.text()
			m.ID = unname(s)
		case numMessageRole:
			s, err = f.text()
			m.Role = core.Role(unname(s))
		case numMessageKind:
			s, err = f.text()
			m.Kind = core.Kind(unname(s))
		case numMessageParts:
			var p core.Part
			if f.typ != protowire.BytesType {
				return m, errKind
			}
			if p, err = decodePart(f.value, true); err != nil {
				return m, err
			}
			d.slab = append(d.slab, p)
		case numMessageTime:
			m.Time = time.UnixMilli(int64(f.n)).UTC()
		case numMessageProtected:
			m.Protected = f.n != 0
		case numMessageTokens:
			m.Tokens = int(f.n)
		}
		if err != nil {
			return m, err
		}
	}
	if n := len(d.slab); n > start {
		m.Parts = d.slab[start:n:n]
	}
	return m, nil
}

// decodePart returns the part in data. A part of an unknown kind, of a later version, is kept unchanged.
func decodePart(data []byte, top bool) (core.Part, error) {
	var part core.Part
	for rest := data; len(rest) > 0; {
		f, next, err := nextField(rest)
		if err != nil {
			return nil, err
		}
		rest = next
		if f.num < numPartText || f.num > numPartOpaque {
			continue
		}
		if f.typ != protowire.BytesType {
			return nil, errKind
		}
		if part, err = decodeKind(f.num, f.value, top); err != nil {
			return nil, err
		}
	}
	if part == nil {
		return encodeLater(data), nil
	}
	return part, nil
}

// decodeKind returns the part in the field num.
func decodeKind(num protowire.Number, data []byte, top bool) (core.Part, error) {
	switch int(num) {
	case numPartText:
		return core.Text(stringOf(data)), nil
	case numPartResult:
		if !top {
			return nil, errors.New("a tool result inside a tool result")
		}
		return decodeResult(data)
	}
	s, err := decodeStrings(data)
	if err != nil {
		return nil, err
	}
	switch int(num) {
	case numPartCall:
		return core.ToolCall{ID: unname(s[0]), Name: unname(s[1]), Args: s[2]}, nil
	case numPartImage:
		return core.Image{MediaType: unname(s[0]), Data: s[1], URL: s[2]}, nil
	case numPartReasoning:
		return core.Reasoning{Text: s[0], Signature: s[1], Encrypted: s[2]}, nil
	default:
		return core.Opaque{Kind: unname(s[0]), JSON: s[1]}, nil
	}
}

// decodeStrings returns the fields 1, 2 and 3.
func decodeStrings(data []byte) (s [3]string, err error) {
	for len(data) > 0 {
		var f field
		if f, data, err = nextField(data); err != nil {
			return s, err
		}
		if f.num <= 3 {
			if s[f.num-1], err = f.text(); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

func decodeResult(data []byte) (core.Part, error) {
	var r core.ToolResult
	for len(data) > 0 {
		f, rest, err := nextField(data)
		if err != nil {
			return nil, err
		}
		data = rest
		switch int(f.num) {
		case 1:
			var s string
			s, err = f.text()
			r.CallID = unname(s)
		case numResultContent:
			if f.typ != protowire.BytesType {
				return nil, errKind
			}
			var p core.Part
			p, err = decodePart(f.value, false)
			r.Content = append(r.Content, p)
		case numResultError:
			r.IsError = f.n != 0
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

func toStart(req *core.Request) *condensepb.Start {
	b := req.Budget
	s := &condensepb.Start{
		MessageCount: int64(len(req.Messages)),
		Budget: &condensepb.Budget{
			Window: int64(b.Window), Reserve: int64(b.Reserve), Overhead: int64(b.Overhead),
			Limit: int64(b.Limit), Target: int64(b.Target),
		},
		Trigger: name(string(req.Trigger)), Profile: name(req.Profile), Mode: name(req.Mode), Api: name(req.API),
		System: bytesOf(req.System), Environment: bytesOf(req.Environment), Instructions: bytesOf(req.Instructions),
		Dir: bytesOf(req.Dir), Tools: bytesOf(req.Tools), Originals: bytesOf(req.Originals), NoRecall: req.NoRecall, Model: name(req.Model), Price: toPrice(req.Price),
	}
	for _, f := range req.FilesRead {
		s.FilesRead = append(s.FilesRead, bytesOf(f))
	}
	return s
}

// fromStart returns the request of s, without messages.
func fromStart(s *condensepb.Start) *core.Request {
	b := s.GetBudget()
	req := &core.Request{
		Budget: core.Budget{
			Window: int(b.GetWindow()), Reserve: int(b.GetReserve()), Overhead: int(b.GetOverhead()),
			Limit: int(b.GetLimit()), Target: int(b.GetTarget()),
		},
		Trigger: core.Trigger(unname(s.GetTrigger())), Profile: unname(s.GetProfile()), Mode: unname(s.GetMode()), API: unname(s.GetApi()),
		System: stringOf(s.GetSystem()), Environment: stringOf(s.GetEnvironment()), Instructions: stringOf(s.GetInstructions()),
		Dir: stringOf(s.GetDir()), Tools: stringOf(s.GetTools()), Originals: stringOf(s.GetOriginals()), NoRecall: s.GetNoRecall(),
		Host: s.GetHost(), Model: unname(s.GetModel()), Price: fromPrice(s.GetPrice()),
	}
	for _, f := range s.GetFilesRead() {
		req.FilesRead = append(req.FilesRead, stringOf(f))
	}
	return req
}

func toPrice(p core.Price) *condensepb.Price {
	if p == (core.Price{}) {
		return nil
	}
	return &condensepb.Price{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
}

func fromPrice(p *condensepb.Price) core.Price {
	return core.Price{Input: p.GetInput(), Output: p.GetOutput(), CacheRead: p.GetCacheRead(), CacheWrite: p.GetCacheWrite()}
}

func toUsage(u core.Usage) *condensepb.Usage {
	return &condensepb.Usage{
		Calls: int64(u.Calls), InputTokens: int64(u.InputTokens), OutputTokens: int64(u.OutputTokens),
		CachedTokens: int64(u.CachedTokens), Usd: u.USD, Unpriced: int64(u.Unpriced),
	}
}

func fromUsage(u *condensepb.Usage) core.Usage {
	return core.Usage{
		Calls: int(u.GetCalls()), InputTokens: int(u.GetInputTokens()), OutputTokens: int(u.GetOutputTokens()),
		CachedTokens: int(u.GetCachedTokens()), USD: u.GetUsd(), Unpriced: int(u.GetUnpriced()),
	}
}

// Limits for the steps of an answer, which users read; the rest is dropped.
const (
	maxSteps     = 1000
	maxStepKinds = 32      // kinds of content of a step
	maxStepName  = 100     // bytes of a name or a kind
	maxStepNote  = 1 << 10 // bytes
	maxStepMS    = 1e3 * 3600 * 24 * 365
)

func toSteps(steps []core.Step) []*condensepb.Step {
	var out []*condensepb.Step
	for i := range steps[:min(len(steps), maxSteps)] {
		s := &steps[i]
		p := &condensepb.Step{
			Name: valid(s.Name), Looked: int64(s.Looked), Changed: int64(s.Changed),
			TokensBefore: int64(s.TokensBefore), TokensAfter: int64(s.TokensAfter),
			Ms: float64(s.Duration) / float64(time.Millisecond), Note: []byte(s.Note),
		}
		for kind, n := range s.Saved {
			if p.Saved == nil {
				p.Saved = map[string]int64{}
			}
			p.Saved[valid(kind)] = int64(n)
		}
		out = append(out, p)
	}
	return out
}

// fromSteps returns the steps that a plugin reports, safe to print. An impossible time counts
// as none.
func fromSteps(steps []*condensepb.Step) []core.Step {
	var out []core.Step
	for _, p := range steps[:min(len(steps), maxSteps)] {
		s := core.Step{
			Name: line(p.GetName(), maxStepName), Looked: int(p.GetLooked()), Changed: int(p.GetChanged()),
			TokensBefore: int(p.GetTokensBefore()), TokensAfter: int(p.GetTokensAfter()), Note: line(string(p.GetNote()), maxStepNote),
		}
		if ms := p.GetMs(); ms > 0 && ms <= maxStepMS {
			s.Duration = time.Duration(math.Round(ms * float64(time.Millisecond)))
		}
		kinds := slices.Sorted(maps.Keys(p.GetSaved()))
		for _, kind := range kinds[:min(len(kinds), maxStepKinds)] {
			if s.Saved == nil {
				s.Saved = map[string]int{}
			}
			s.Saved[line(kind, maxStepName)] += int(p.GetSaved()[kind])
		}
		out = append(out, s)
	}
	return out
}
