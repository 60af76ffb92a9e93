package wire

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that this one wraps
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// callOptions go with every call of a host.
var callOptions = []grpc.CallOption{
	grpc.MaxCallRecvMsgSize(MaxEnvelope + 64<<10), // some slack for those who count differently
	grpc.ForceCodecV2(codec{encoding.GetCodecV2("proto"), true}),
}

// NewServerTransport returns the gRPC server for a plugin. It needs no more than what is
// given to it beyond its defaults, and certainly no larger limits.
func NewServerTransport(opts ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(opts, grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto"), false}))...)
}

// A received is a message as it came: it is weighed, or decoded by hand.
type received []byte

// An encoded is a message that is encoded already. Sending it frees it.
type encoded struct{ buf mem.Buffer }

// A codec is gRPC's for protobuf, with a door for [received] and [encoded].
type codec struct {
	encoding.CodecV2

	careful bool // with what it decodes
}

// Marshal encodes v, if need be.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if e, ok := v.(*encoded); ok {
		return mem.BufferSlice{e.buf}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal decodes data, unless it is to be left alone.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*received); ok {
		*r = data.Materialize()
		return nil
	}
	if m, ok := v.(proto.Message); ok && c.careful {
		return unmarshal(data.Materialize(), m)
	}
	return c.CodecV2.Unmarshal(data, v)
}

// runs is where the encodings of runs come from and return to.
var runs bufferPool

// A bufferPool lends buffers of about one size. Those of gRPC come in sizes of 32 KiB and 1
// MiB and are cleared every time.
type bufferPool struct{ pool sync.Pool }

// Get returns a buffer with a length of size.
func (p *bufferPool) Get(size int) *[]byte {
	if buf, ok := p.pool.Get().(*[]byte); ok && cap(*buf) >= size {
		*buf = (*buf)[:size]
		return buf
	}
	buf := make([]byte, size, max(size, ChunkSize+ChunkSize/8))
	return &buf
}

// Put takes a buffer back, unless it is much larger than the others.
func (p *bufferPool) Put(buf *[]byte) {
	if cap(*buf) <= 4*ChunkSize {
		p.pool.Put(buf)
	}
}
