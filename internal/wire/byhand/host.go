package byhand

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// NumCallback is the field of a CountTokens of a guest in WebAssembly that holds another Callback instead: a module that imports a new
// function would not start on an older host, which counts nothing in this case.
const NumCallback = 15

// A Host answers a provider in a plugin during one call. The zero value answers nothing. Its methods are safe for concurrent use.
type Host struct {
	// Ask sends a Callback whose field num is request, and returns the Reply.
	Ask       func(ctx context.Context, num protowire.Number, request []byte) (reply []byte, err error)
	Callbacks []string       // those that it answers, as Start has them
	Messages  []core.Message // of the call, as they came
	At        map[string]int // their indexes by ID

	mu    sync.Mutex
	spent core.Usage
}

// The fields of a Callback.
const (
	numCount protowire.Number = iota + 2
	numGenerate
	numHidden
	numRun
	numEmbed
	numFile
)

const numReplyError = 4 // fields of a Reply from here on are one above those of a Callback

var errLacks = fmt.Errorf("not supported by this host: %w", errors.ErrUnsupported)

// answered returns an error that wraps [errors.ErrUnsupported] if the host does not answer the callback of that name.
func (h *Host) answered(name string) error {
	switch {
	case h.Ask == nil:
		return errors.New("the host can be asked during Condense only, with the context of the call")
	case name != "" && !slices.Contains(h.Callbacks, name):
		return fmt.Errorf("%s: %w", name, errLacks)
	}
	return nil
}

// ask returns the answer to the callback of that name; a refusal is an error.
func (h *Host) ask(ctx context.Context, name string, num protowire.Number, request []byte, field func(*Field) error) error {
	if err := h.answered(name); err != nil {
		return err
	}
	reply, err := h.Ask(ctx, num, request)
	if err != nil {
		return err
	}
	found := false
	if num >= numReplyError {
		num++
	}
	err = Each(reply, func(f *Field) error {
		switch int(f.Num) {
		case numReplyError:
			return refusal(f.Value)
		case int(num):
			found = true
			return Each(f.Value, field)
		}
		return nil
	})
	if err == nil && !found {
		err = errLacks
	}
	return err
}

// refusals are the errors that correspond to codes of a CallbackError.
var refusals = map[uint64]error{
	1: fmt.Errorf("%w: %w", core.ErrUnavailable, errors.ErrUnsupported), 2: model.ErrQuota,
	5: model.ErrTooLong, 6: model.ErrNoText, 7: core.ErrUnavailable,
}

func refusal(data []byte) error {
	var is error
	text := ""
	err := Each(data, func(f *Field) (err error) {
		switch int(f.Num) {
		case 1:
			is = refusals[f.N]
		case 2:
			text, err = f.Text()
		}
		return err
	})
	if is == nil || err != nil {
		return errors.Join(err, errors.New("host: "+text))
	}
	return fmt.Errorf("%w: host: %s", is, text)
}

// spend adds the usage that a reply reports.
func (h *Host) spend(data []byte) (core.Usage, error) {
	u, err := DecodeUsage(data)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spent = h.spent.Add(u)
	return u, err
}

// Spent returns the usage of the host's models that it has reported to the provider.
func (h *Host) Spent() core.Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spent
}

// Fill sets in the provider's copy of a request the functions that ask the host, and the counter, whose failure ends the call by fail.
func (h *Host) Fill(ctx context.Context, req *core.Request, fail func(error)) {
	req.Counter = NewCounter(h.Messages, req.Messages, func(contents [][]core.Part) ([]int64, error) { return h.count(ctx, contents) }, fail)
	if h.answered("hidden") == nil {
		req.Hidden = func(ids ...string) ([]core.Message, error) { return h.hidden(ctx, ids) }
	}
	if h.answered("file") == nil {
		req.File = func(path string) ([]core.FilePiece, error) { return h.file(ctx, path) }
	}
}

// count has the host count each list of parts.
func (h *Host) count(ctx context.Context, contents [][]core.Part) (numbers []int64, err error) {
	for some := range slices.Chunk(contents, maxTexts) { // a message of the protocol has a limit of entries
		var request []byte
		for _, parts := range some {
			content, err := AppendParts(nil, 1, parts)
			if err != nil {
				return nil, err
			}
			request = AppendBytes(request, 1, AppendBytes(nil, 3, content))
		}
		err := h.ask(ctx, "", numCount, request, func(f *Field) error {
			for packed := f.Value; f.Num == 1 && len(packed) > 0; {
				v, n := protowire.ConsumeVarint(packed)
				if n < 0 {
					return protowire.ParseError(n)
				}
				numbers, packed = append(numbers, int64(v)), packed[n:]
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// generate has the host ask the model of that name.
func (h *Host) generate(ctx context.Context, name string, p *model.Prompt) (*model.Answer, error) {
	needs := ""
	if p.Schema != "" || p.Temperature != nil || p.Effort != "" {
		needs = "schema"
	}
	request, err := generate(name, p, h.Messages, h.At)
	if err != nil {
		return nil, err
	}
	answer := &model.Answer{}
	err = h.ask(ctx, needs, numGenerate, request, func(f *Field) (err error) {
		switch int(f.Num) {
		case 1:
			answer.Text, err = f.Text()
		case 2:
			answer.Usage, err = h.spend(f.Value)
		case 3:
			answer.Truncated = f.N != 0
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (h *Host) hidden(ctx context.Context, ids []string) (messages []core.Message, err error) {
	var request []byte
	for _, id := range ids {
		request = AppendBytes(request, 1, []byte(Name(id)))
	}
	d := decoder{}
	return messages, h.ask(ctx, "hidden", numHidden, request, func(f *Field) error {
		m, err := d.message(f.Value)
		messages = append(messages, m)
		return err
	})
}

func (h *Host) file(ctx context.Context, path string) (pieces []core.FilePiece, err error) {
	return pieces, h.ask(ctx, "file", numFile, AppendStrings(nil, path), func(f *Field) error {
		p := core.FilePiece{}
		err := Each(f.Value, func(f *Field) (err error) {
			switch int(f.Num) {
			case 1:
				p.First = int(f.N)
			case 2:
				p.Text, err = f.Text()
			case 3:
				p.Unsure = f.N != 0
			}
			return err
		})
		pieces = append(pieces, p)
		return err
	})
}

// maxTexts is how many texts are sent at once.
const maxTexts = 1024

// embed is Embed of [registry.Env].
func (h *Host) embed(ctx context.Context, texts []string) (vectors [][]float32, usage core.Usage, err error) {
	for part := range slices.Chunk(texts, maxTexts) {
		var request []byte
		for _, t := range part {
			request = AppendBytes(request, 1, Bytes(t))
		}
		err := h.ask(ctx, "embed", numEmbed, request, func(f *Field) error {
			if f.Num == 2 {
				u, err := h.spend(f.Value)
				usage = usage.Add(u)
				return err
			}
			return Each(f.Value, func(f *Field) error {
				v := make([]float32, len(f.Value)/4)
				for i := range v {
					v[i] = math.Float32frombits(binary.LittleEndian.Uint32(f.Value[4*i:]))
				}
				vectors = append(vectors, v)
				return nil
			})
		})
		if err != nil {
			return nil, usage, err
		}
	}
	return vectors, usage, nil
}

// run is Run of [registry.Env].
func (h *Host) run(ctx context.Context, req *core.Request, strategy string, settings json.RawMessage) (*core.Result, error) {
	if err := h.answered("run"); err != nil {
		return nil, err
	}
	if n := len(req.Messages); n != len(h.Messages) || n == 0 || Run(h.Messages, h.At, req.Messages) != n {
		return nil, errors.New("run: want the messages of the request as they came, with those protected that stay")
	}
	request, free := AppendStrings(nil, Valid(strategy), string(settings)), false
	for i := 0; i < len(req.Messages); i++ {
		if first := i; !req.Messages[i].Protected {
			for i+1 < len(req.Messages) && !req.Messages[i+1].Protected {
				i++
			}
			request, free = AppendBytes(request, 3, AppendRange(nil, req.Messages[first].ID, req.Messages[i].ID)), true
		}
	}
	if !free {
		return &core.Result{Messages: req.Messages}, nil
	}
	request = AppendNumber(AppendNumber(request, 4, uint64(req.Budget.Target)), 5, 1)
	res, d := &core.Result{}, decoder{}
	err := h.ask(ctx, "run", numRun, request, func(f *Field) (err error) {
		switch int(f.Num) {
		case 3:
			res.Usage, err = h.spend(f.Value)
		case 4:
			s, fault := decodeStep(f.Value)
			res.Steps, err = append(res.Steps, s), fault
		case 5:
			m, fault := d.message(f.Value)
			if at, ok := h.At[m.ID]; ok {
				parts := m.Parts
				if m = req.Messages[at]; len(parts) > 0 {
					m.Parts, m.Tokens = parts, 0
				}
			}
			res.Messages, err = append(res.Messages, m), fault
		}
		return err
	})
	if err == nil && res.Messages == nil { // it knows edits only
		err = fmt.Errorf("run: %w", errLacks)
	}
	return res, err
}
