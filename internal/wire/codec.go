package wire

import (
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that this one wraps
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

// CallOptions go with every call of a host.
var CallOptions = []grpc.CallOption{
	grpc.MaxCallRecvMsgSize(MaxEnvelope + 64<<10), // some slack, because peers may count differently
	grpc.ForceCodecV2(codec{encoding.GetCodecV2("proto"), true}),
}

// NewServerTransport returns the gRPC server for a plugin, with opts in addition to its
// defaults. Do not raise the limits.
func NewServerTransport(opts ...grpc.ServerOption) *grpc.Server {
	const window = 4 << 20 // bytes: with gRPC's 64 KiB the host waits for a plugin that has read nearly all
	return grpc.NewServer(append(opts, grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto"), false}),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window), grpc.ReadBufferSize(128<<10))...)
}

// A received is a message that is not decoded: it is weighed, or decoded by hand.
type received []byte

// An Encoded is an encoded message. Sending it frees it.
type Encoded struct{ Buffer mem.Buffer }

// A codec is gRPC's codec for protobuf, which passes [received] and [Encoded] through.
type codec struct {
	encoding.CodecV2

	careful bool // whether it limits the size of decoded data
}

// Marshal encodes v, unless it is an [Encoded].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if e, ok := v.(*Encoded); ok {
		return mem.BufferSlice{e.Buffer}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal decodes data, unless v is a [received].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*received); ok {
		*r = data.Materialize()
		return nil
	}
	if m, ok := v.(proto.Message); ok && c.careful {
		return Unmarshal(data.Materialize(), m)
	}
	return c.CodecV2.Unmarshal(data, v)
}

// Send sends env or, if it is larger than [MaxEnvelope], its fragments, each in an envelope.
func Send[E proto.Message](env E, wrap func(*condensepb.Fragment) E, to func(E) error) error {
	if proto.Size(env) <= MaxEnvelope {
		return to(env)
	}
	data, err := proto.Marshal(env)
	if err != nil {
		return err
	}
	return Fragments(data, wrap, to)
}

// Fragments sends the encoding of an envelope in pieces.
func Fragments[E proto.Message](data []byte, wrap func(*condensepb.Fragment) E, to func(E) error) error {
	for len(data) > 0 {
		n := min(fragmentSize, len(data))
		if err := to(wrap(&condensepb.Fragment{Data: data[:n], Last: n == len(data)})); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func wrapResponse(f *condensepb.Fragment) *condensepb.CondenseResponse {
	return &condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Fragment{Fragment: f}}
}

// sendEdit sends an encoded Edit.
func sendEdit(to serverStream, edit []byte) error {
	const numEdit = 4 // of CondenseResponse
	env := byhand.AppendBytes(make([]byte, 0, len(edit)+8), numEdit, edit)
	if len(env) <= MaxEnvelope {
		return to.SendMsg(&Encoded{mem.SliceBuffer(env)})
	}
	return Fragments(env, wrapResponse, to.Send)
}

// An Assembler assembles fragments.
type Assembler struct {
	data  []byte
	Max   int               // of an envelope, in bytes
	Fault func(error) error // makes the error of a call of what the peer did
}

// Next receives a message, or the fragments of one, has it decoded, and returns its size. Decode returns the fragment that the message is.
func (a *Assembler) Next(stream interface{ RecvMsg(m any) error }, decode func(data []byte) (*condensepb.Fragment, error)) (int, error) {
	for {
		var raw received
		if err := stream.RecvMsg(&raw); err != nil {
			return 0, err
		}
		f, err := decode(raw)
		if err == nil && f == nil && a.data != nil {
			err = errors.New("a fragment is missing")
		}
		if err == nil && f == nil {
			return len(raw), nil
		}
		var whole []byte
		if err == nil {
			whole, err = a.Add(f)
		}
		if err == nil && whole == nil {
			continue
		}
		if err == nil {
			if f, err = decode(whole); err == nil && f != nil {
				err = errors.New("a fragment of fragments")
			}
		}
		if err != nil {
			return 0, a.Fault(err)
		}
		return len(whole), nil
	}
}

// Add adds the next fragment. It returns the complete encoding, or nil if fragments are
// missing.
func (a *Assembler) Add(f *condensepb.Fragment) ([]byte, error) {
	if len(a.data)+len(f.GetData()) > a.Max {
		return nil, fmt.Errorf("fragments of more than %d bytes", a.Max)
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

// valid returns s as valid UTF-8, for texts that only users read.
func valid(s string) string { return byhand.Valid(s) }

const (
	// maxEntries is how many messages and list entries one envelope may hold. Two bytes can
	// make a receiver allocate a hundred; this limit keeps 4 MiB from becoming hundreds.
	maxEntries = 1 << 17
	// maxNesting is how deeply they may be nested. The protocol has 10
	// levels.
	maxNesting = 32
)

// Unmarshal decodes data of an untrusted peer. It discards unknown fields.
func Unmarshal(data []byte, m proto.Message) error {
	entries := 0
	if err := weigh(m.ProtoReflect().Descriptor(), data, 0, &entries); err != nil {
		return err
	}
	return proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxNesting}.Unmarshal(data, m)
}

// weigh adds to entries the number of entries that a decoder would allocate for the encoding
// of a message of type d, and stops at the limit.
func weigh(d protoreflect.MessageDescriptor, b []byte, depth int, entries *int) error {
	if depth > maxNesting {
		return fmt.Errorf("more than %d levels deep", maxNesting)
	}
	fields := d.Fields()
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		f := fields.ByNumber(num)
		var value []byte
		if typ == protowire.BytesType {
			value, n = protowire.ConsumeBytes(b)
		} else {
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if f == nil {
			continue
		}
		if f.IsList() || f.Message() != nil {
			if *entries++; *entries > maxEntries {
				return fmt.Errorf("more than %d entries in one message", maxEntries)
			}
		}
		if f.Message() != nil && typ == protowire.BytesType {
			if err := weigh(f.Message(), value, depth+1, entries); err != nil {
				return err
			}
		}
	}
	return nil
}
