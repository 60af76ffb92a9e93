package wire

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/internal/wire/condensepb"
)

// send sends what a peer may receive: env, or if it is larger than [MaxEnvelope] its
// fragments, each wrapped in an envelope.
func send[E proto.Message](env E, wrap func(*condensepb.Fragment) E, to func(E) error) error {
	if proto.Size(env) <= MaxEnvelope {
		return to(env)
	}
	data, err := proto.Marshal(env)
	if err != nil {
		return err
	}
	return fragments(data, wrap, to)
}

// fragments sends the encoding of an envelope in pieces.
func fragments[E proto.Message](data []byte, wrap func(*condensepb.Fragment) E, to func(E) error) error {
	for len(data) > 0 {
		n := min(FragmentSize, len(data))
		if err := to(wrap(&condensepb.Fragment{Data: data[:n], Last: n == len(data)})); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func wrapRequest(f *condensepb.Fragment) *condensepb.CondenseRequest {
	return &condensepb.CondenseRequest{Kind: &condensepb.CondenseRequest_Fragment{Fragment: f}}
}

func wrapResponse(f *condensepb.Fragment) *condensepb.CondenseResponse {
	return &condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Fragment{Fragment: f}}
}

// An assembler puts fragments together.
type assembler struct {
	data []byte
	max  int // of an envelope, in bytes
}

// add takes the next fragment. It returns the encoding that f completes; nil if f does
// not.
func (a *assembler) add(f *condensepb.Fragment) ([]byte, error) {
	if len(a.data)+len(f.GetData()) > a.max {
		return nil, fmt.Errorf("fragments of more than %d bytes", a.max)
	}
	a.data = append(a.data, f.GetData()...)
	if !f.GetLast() {
		if len(f.GetData()) == 0 {
			return nil, errors.New("a fragment that is empty and not the last")
		}
		return nil, nil
	}
	data := a.data
	a.data = nil
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

// open reports whether fragments are missing.
func (a *assembler) open() bool { return a.data != nil }
