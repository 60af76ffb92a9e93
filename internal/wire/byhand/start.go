package byhand

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// A Start is the decoded message of that name, which begins a call.
type Start struct {
	Request *core.Request         // without messages
	Models  map[string]model.Info // those of the host, by name
}

// DecodeStart decodes a Start. The result shares the bytes of data.
func DecodeStart(data []byte) (*Start, error) {
	req := &core.Request{}
	s := &Start{Request: req, Models: map[string]model.Info{}}
	texts := map[protowire.Number]*string{
		6: &req.System, 7: &req.Environment, 9: &req.Instructions, 11: &req.Dir, 12: &req.Tools, 13: &req.Originals,
		17: &req.Host,
	}
	names := map[protowire.Number]*string{3: (*string)(&req.Trigger), 4: &req.Profile, 5: &req.Mode, 16: &req.API, 18: &req.Model, 21: &req.Conversation}
	return s, Each(data, func(f *Field) (err error) {
		if text := texts[f.Num]; text != nil {
			*text, err = f.Text()
			return err
		}
		if name := names[f.Num]; name != nil {
			*name, err = f.Text()
			*name = Unname(*name)
			return err
		}
		switch int(f.Num) {
		case 2:
			b := &req.Budget
			return decodeNumbers(f.Value, map[protowire.Number]*int{1: &b.Window, 2: &b.Reserve, 3: &b.Overhead, 4: &b.Limit, 5: &b.Target}, nil)
		case 8:
			path, err := f.Text()
			req.FilesRead = append(req.FilesRead, path)
			return err
		case 14:
			m, err := decodeModel(f.Value)
			s.Models[m.Name] = m
			return err
		case 15:
			req.NoRecall = f.N != 0
		case 19:
			return decodePrice(f.Value, &req.Price)
		case 22:
			req.State = f.Value
		case 23:
			req.MayWait = f.N != 0
		case 24:
			q := &req.Quota
			return decodeNumbers(f.Value, map[protowire.Number]*int{1: &q.ModelCalls}, map[protowire.Number]*float64{2: &q.USD})
		case 26:
			until := 0
			if err = decodeNumbers(f.Value, map[protowire.Number]*int{1: &req.Cached.Messages, 2: &until}, nil); until > 0 {
				req.Cached.Until = time.UnixMilli(int64(until)).UTC()
			}
		}
		return err
	})
}

func decodeModel(data []byte) (m model.Info, err error) {
	return m, Each(data, func(f *Field) (err error) {
		switch int(f.Num) {
		case 1:
			m.Name, err = f.Text()
		case 2:
			m.Window = int(f.N)
		case 3:
			m.MaxOutput = int(f.N)
		case 4:
			m.Images = f.N != 0
		case 5:
			err = decodePrice(f.Value, &m.Price)
		}
		return err
	})
}

func decodePrice(data []byte, p *core.Price) error {
	return decodeNumbers(data, nil, map[protowire.Number]*float64{1: &p.Input, 2: &p.Output, 3: &p.CacheRead, 4: &p.CacheWrite})
}

// DecodeUsage decodes a Usage.
func DecodeUsage(data []byte) (u core.Usage, err error) {
	numbers := map[protowire.Number]*int{1: &u.Calls, 2: &u.InputTokens, 3: &u.OutputTokens, 4: &u.CachedTokens, 6: &u.Unpriced}
	err = decodeNumbers(data, numbers, map[protowire.Number]*float64{5: &u.USD})
	return u, err
}

// decodeNumbers stores the fields with these numbers.
func decodeNumbers(data []byte, whole map[protowire.Number]*int, floats map[protowire.Number]*float64) error {
	return Each(data, func(f *Field) error {
		if n := whole[f.Num]; n != nil {
			*n = int(f.N)
		} else if v := floats[f.Num]; v != nil {
			*v = math.Float64frombits(f.N)
		}
		return nil
	})
}

// Each calls do with every field of an encoded message.
func Each(data []byte, do func(*Field) error) error {
	for len(data) > 0 {
		var f Field
		rest, err := f.take(data)
		if err != nil {
			return err
		}
		if err := do(&f); err != nil {
			return err
		}
		data = rest
	}
	return nil
}
