package pluginsdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// A guest serves a strategy in a module of WebAssembly, by the messages of condense.proto.
type guest struct {
	strategy registry.Strategy
	provider core.CondensationProvider // as configured

	// Of the call.
	messages []core.Message
	at       map[string]int
	models   map[string]model.Info
}

// describe returns a DescribeResponse.
func (g *guest) describe() []byte { return byhand.Describe(&g.strategy, version(), "") }

// configure opens the provider with the settings of a ConfigureRequest, and returns a ConfigureResponse.
func (g *guest) configure(request []byte) (response []byte) {
	defer rescue()
	var settings []byte
	err := byhand.Each(request, func(f *byhand.Field) error {
		if f.Num == 1 {
			settings = f.Value
		}
		return nil
	})
	if err != nil {
		fail(codeInternal, err.Error())
	}
	env := registry.Env{Logger: slog.New(logger{}), Model: g.model}
	g.provider, err = g.strategy.Open(context.Background(), settings, env)
	switch {
	case errors.Is(err, core.ErrUnavailable):
		fail(codeOf(err), err.Error())
	case err != nil:
		return byhand.Refused(byhand.Problems(g.strategy, err))
	case g.provider == nil:
		fail(codeInternal, "the strategy opened no provider")
	}
	return response
}

// condense decodes a call and returns an Edit.
func (g *guest) condense(call []byte) (edit []byte) {
	defer rescue()
	req, err := g.request(call)
	if err != nil {
		fail(codeInvalid, err.Error())
	}
	given := req.Clone()
	given.Counter = byhand.NewCounter(req.Messages, given.Messages, count, func(err error) { fail(codeInternal, err.Error()) })
	ctx := core.WithProgress(context.Background(), func(fraction float64, text string) {
		hostProgress(fraction, pointer(text), uint32(len(text)))
	})
	res, err := g.provider.Condense(ctx, given)
	if err == nil && res == nil {
		err = errors.New("the provider returned no result")
	}
	if err == nil {
		err = byhand.Expressible(req, res)
	}
	if err == nil {
		err = byhand.Edits(req.Messages, res.Messages, g.at, func(piece []byte) error {
			edit = append(edit, piece...)
			return nil
		})
	}
	if err != nil {
		fail(codeOf(err), err.Error())
	}
	edit = byhand.AppendBytes(edit, byhand.NumDone, byhand.AppendBytes(byhand.AppendBytes(nil, 3, res.State), 4, []byte(byhand.Valid(res.Later))))
	for i := range res.Steps {
		step := byhand.EncodeStep(&res.Steps[i])
		hostReport(pointer(step), uint32(len(step)))
	}
	return edit
}

// request decodes a call: messages in field 1, the start in field 2.
func (g *guest) request(call []byte) (*core.Request, error) {
	req := &core.Request{}
	err := byhand.Each(call, func(f *byhand.Field) error {
		if f.Num != 2 {
			return nil
		}
		start, err := byhand.DecodeStart(f.Value)
		req, g.models = start.Request, start.Models
		return err
	})
	if err != nil {
		return nil, err
	}
	if req.Messages, err = byhand.DecodeRun(call, nil); err != nil {
		return nil, err
	}
	req.Abilities = g.strategy.Abilities
	g.messages, g.at = req.Messages, byhand.Index(req.Messages)
	return req, nil
}

// count has the host count each list of parts.
func count(contents [][]core.Part) ([]int64, error) {
	request, err := byhand.CountTokens(contents)
	if err != nil {
		return nil, err
	}
	var numbers []int64
	answer := hostCount(pointer(request), uint32(len(request)))
	runtime.KeepAlive(request) // the host has called alloc
	reply, err := replyOf(imported(answer), 2)
	if err != nil {
		return nil, err
	}
	return numbers, byhand.Each(reply, func(f *byhand.Field) error {
		for packed := f.Value; f.Num == 1 && len(packed) > 0; {
			v, n := protowire.ConsumeVarint(packed)
			if n < 0 {
				return protowire.ParseError(n)
			}
			numbers, packed = append(numbers, int64(v)), packed[n:]
		}
		return nil
	})
}

// replyOf returns the field num of a Reply. A refusal is an error.
func replyOf(data []byte, num protowire.Number) (reply []byte, err error) {
	parsed := byhand.Each(data, func(f *byhand.Field) error {
		switch f.Num {
		case num:
			reply = f.Value
		case 4:
			err = refusal(f.Value)
		}
		return nil
	})
	return reply, errors.Join(parsed, err)
}

func refusal(data []byte) error {
	var code uint64
	text := ""
	err := byhand.Each(data, func(f *byhand.Field) (err error) {
		switch f.Num {
		case 1:
			code = f.N
		case 2:
			text, err = f.Text()
		}
		return err
	})
	if is := byhand.Refusals[int32(code)]; is != nil && err == nil {
		return fmt.Errorf("%w: host: %s", is, text)
	}
	return errors.Join(err, errors.New("host: "+text))
}

// model returns the host's language model of that name.
func (g *guest) model(name string) (model.Generator, error) {
	known := func() map[string]model.Info { return g.models }
	return &byhand.Lent{Name: name, Known: known, Ask: func(_ context.Context, p *model.Prompt) (*model.Answer, error) {
		return g.generate(name, p)
	}}, nil
}

func (g *guest) generate(name string, p *model.Prompt) (*model.Answer, error) {
	request, err := byhand.Generate(name, p, g.messages, g.at)
	if err != nil {
		return nil, err
	}
	given := hostGenerate(pointer(request), uint32(len(request)))
	runtime.KeepAlive(request) // the host has called alloc
	reply, err := replyOf(imported(given), 3)
	if err != nil {
		return nil, err
	}
	answer := &model.Answer{}
	return answer, byhand.Each(reply, func(f *byhand.Field) (err error) {
		switch f.Num {
		case 1:
			answer.Text, err = f.Text()
		case 2:
			answer.Usage, err = byhand.DecodeUsage(f.Value)
		case 3:
			answer.Truncated = f.N != 0
		}
		return err
	})
}

// The codes of gRPC's statuses that a guest fails with.
const (
	codeUnknown  = 2
	codeInvalid  = 3
	codeInternal = 13
)

func codeOf(err error) int32 { return int32(byhand.CodeOf(err, codeUnknown)) }

// rescue ends the call with the reason and the place of a panic.
func rescue() {
	if v := recover(); v != nil {
		stack := debug.Stack()
		fail(codeInternal, fmt.Sprintf("panic: %v%s", v, byhand.Where(stack)))
	}
}

// A logger passes records to the host.
type logger struct{ attrs []slog.Attr }

// Enabled leaves the choice to the host.
func (logger) Enabled(context.Context, slog.Level) bool { return true }

// Handle writes the record as one line, without its time.
func (l logger) Handle(ctx context.Context, r slog.Record) error {
	var line bytes.Buffer
	h := slog.NewTextHandler(&line, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}})
	err := h.WithAttrs(l.attrs).Handle(ctx, r)
	text := strings.TrimSpace(r.Message + " " + line.String())
	hostLog(int32(r.Level), pointer(text), uint32(len(text)))
	return err
}

// WithAttrs returns a logger that adds attrs to every record.
func (l logger) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logger{append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)}
}

// WithGroup returns l: the host's log has no groups.
func (l logger) WithGroup(string) slog.Handler { return l }
