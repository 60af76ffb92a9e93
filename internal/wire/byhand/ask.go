package byhand

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

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

// decodeStep decodes a Step.
func decodeStep(data []byte) (s core.Step, err error) {
	ms, texts := 0.0, map[protowire.Number]*string{1: &s.Name, 8: &s.Note}
	whole := map[protowire.Number]*int{2: &s.Looked, 3: &s.Changed, 5: &s.TokensBefore, 6: &s.TokensAfter}
	err = decodeNumbers(data, whole, map[protowire.Number]*float64{7: &ms})
	s.Duration = time.Duration(ms * float64(time.Millisecond))
	return s, cmp.Or(err, Each(data, func(f *Field) (err error) {
		if text := texts[f.Num]; text != nil {
			*text, err = f.Text()
		} else if kind, n := "", 0; f.Num == 4 { // of saved
			err = Each(f.Value, func(f *Field) error {
				if f.Num == 1 {
					kind = string(f.Value)
				}
				n = int(f.N)
				return nil
			})
			if s.Saved == nil {
				s.Saved = map[string]int{}
			}
			s.Saved[kind] = n
		}
		return err
	}))
}

// Env returns the resources of a provider in a plugin: those of the host of a call, by the call's context. Known returns the models
// that the host sent with its last call; nil before.
func Env(logger *slog.Logger, known func() map[string]model.Info, of func(ctx context.Context) *Host) registry.Env {
	return registry.Env{
		Logger: logger, Model: func(name string) (model.Generator, error) { return &lent{name, known, of}, nil },
		Embed: func(ctx context.Context, texts []string) ([][]float32, core.Usage, error) {
			return of(ctx).embed(ctx, texts)
		},
		Run: func(ctx context.Context, req *core.Request, strategy string, settings json.RawMessage) (*core.Result, error) {
			return of(ctx).run(ctx, req, strategy, settings)
		},
	}
}

// A lent is a language model of the host. Whether it exists is known only when it is used.
type lent struct {
	name  string
	known func() map[string]model.Info
	of    func(ctx context.Context) *Host
}

// Info returns the information of the host: none for a model that its configuration does not declare.
func (m *lent) Info() model.Info {
	if i, ok := m.known()[m.name]; ok {
		return i
	}
	return model.Info{Name: m.name}
}

// Generate has the host ask the model.
func (m *lent) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	answer, err := m.of(ctx).generate(ctx, m.name, p)
	if err != nil {
		return nil, fmt.Errorf("language model %q: %w", m.name, err)
	}
	return answer, nil
}

// generate encodes a Generate. Messages of the conversation, whose indexes At has by ID, are sent by reference.
func generate(name string, p *model.Prompt, conversation []core.Message, at map[string]int) ([]byte, error) {
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
