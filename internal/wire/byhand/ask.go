package byhand

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// Valid returns s as valid UTF-8, for texts that only users read.
func Valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// Describe encodes a DescribeResponse.
func Describe(s *registry.Strategy, version, sdk string) []byte {
	b := AppendStrings(nil, Valid(s.Name), Valid(version), Valid(s.Doc), "", Valid(sdk))
	for _, set := range s.Settings() {
		b = AppendBytes(b, 4, encodeSetting(set))
	}
	for _, name := range s.Abilities.Names() {
		b = AppendBytes(b, 6, []byte(name))
	}
	return b
}

func encodeSetting(s registry.Setting) []byte {
	b := AppendStrings(nil, Valid(s.Name), Valid(s.Type), string(s.Default), Valid(s.Doc))
	for _, e := range s.Enum {
		b = AppendBytes(b, 5, []byte(Valid(e)))
	}
	for _, f := range s.Fields {
		b = AppendBytes(b, 6, encodeSetting(f))
	}
	for _, name := range s.Was {
		b = AppendBytes(b, 7, []byte(Valid(name)))
	}
	return b
}

// Refused encodes a ConfigureResponse with the problems of settings.
func Refused(problems []Problem) []byte {
	var b []byte
	for _, p := range problems {
		b = AppendBytes(b, 1, AppendStrings(nil, Valid(p.Key), Valid(p.Message)))
	}
	return b
}

// EncodeStep encodes a Step.
func EncodeStep(s *core.Step) []byte {
	b := AppendStrings(nil, Valid(s.Name))
	b = AppendNumber(b, 2, uint64(s.Looked))
	b = AppendNumber(b, 3, uint64(s.Changed))
	for kind, n := range s.Saved {
		b = AppendBytes(b, 4, AppendNumber(AppendStrings(nil, Valid(kind)), 2, uint64(n)))
	}
	b = AppendNumber(b, 5, uint64(s.TokensBefore))
	b = AppendNumber(b, 6, uint64(s.TokensAfter))
	b = AppendFloat(b, 7, float64(s.Duration)/float64(time.Millisecond))
	return AppendBytes(b, 8, []byte(s.Note))
}

// CountTokens encodes a CountTokens of each list of parts.
func CountTokens(contents [][]core.Part) (b []byte, err error) {
	for _, parts := range contents {
		content, err := AppendParts(nil, 1, parts)
		if err != nil {
			return nil, err
		}
		b = AppendBytes(b, 1, AppendBytes(nil, 3, content))
	}
	return b, nil
}

// A Lent is a language model of the host, for a provider in a plugin.
type Lent struct {
	Name  string
	Known func() map[string]model.Info // what the host sent with its last call; nil before
	Ask   func(ctx context.Context, p *model.Prompt) (*model.Answer, error)
}

// Info returns the information of the host: none for a model that its configuration does not declare.
func (m *Lent) Info() model.Info {
	if i, ok := m.Known()[m.Name]; ok {
		return i
	}
	return model.Info{Name: m.Name}
}

// Generate has the host ask the model.
func (m *Lent) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	answer, err := m.Ask(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("language model %q: %w", m.Name, err)
	}
	return answer, nil
}

// Generate encodes a Generate. Messages of the conversation, whose indexes At has by ID, are sent by reference.
func Generate(name string, p *model.Prompt, conversation []core.Message, at map[string]int) ([]byte, error) {
	b := AppendStrings(nil, Valid(name), p.System)
	for i := 0; i < len(p.Messages); {
		if n := Run(conversation, at, p.Messages[i:]); n > 0 {
			b = AppendBytes(b, 3, AppendBytes(nil, 1, AppendRange(nil, p.Messages[i].ID, p.Messages[i+n-1].ID)))
			i += n
			continue
		}
		message, err := AppendParts(AppendStrings(nil, Name(string(p.Messages[i].Role))), 2, p.Messages[i].Parts)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		b = AppendBytes(b, 3, AppendBytes(nil, 2, message))
		i++
	}
	b = AppendNumber(b, 4, uint64(p.MaxOutput))
	b = AppendBytes(b, 5, []byte(p.Tools))
	if p.Cached {
		b = AppendNumber(b, 6, 1)
	}
	if b = AppendBytes(b, 7, []byte(p.Schema)); p.Temperature != nil {
		b = AppendFloat(b, 8, *p.Temperature)
	}
	return AppendBytes(b, 9, []byte(Valid(p.Effort))), nil
}

// Refusals are the errors that correspond to codes of a CallbackError.
var Refusals = map[int32]error{1: core.ErrUnavailable, 2: model.ErrQuota, 5: model.ErrTooLong, 6: model.ErrNoText, 7: core.ErrUnavailable}

// Statuses maps errors to codes of gRPC and back. The first match is used.
var Statuses = []struct {
	Err  error
	Code uint32
}{{core.ErrInvalidRequest, 3}, {core.ErrUnavailable, 14}, {errors.ErrUnsupported, 12}, {context.DeadlineExceeded, 4}, {context.Canceled, 1}}

// CodeOf returns the code of an error, or that for others.
func CodeOf(err error, other uint32) uint32 {
	for _, m := range Statuses {
		if errors.Is(err, m.Err) {
			return m.Code
		}
	}
	return other
}

// Index returns the indexes of messages by ID.
func Index(messages []core.Message) map[string]int {
	return plain.Index(messages, func(x core.Message) string { return x.ID })
}
