package wire

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that this one wraps
	"google.golang.org/grpc/mem"
)

// callOptions go with every call of a host.
var callOptions = []grpc.CallOption{
	grpc.MaxCallRecvMsgSize(MaxEnvelope + 64<<10), // some slack for those who count differently
	grpc.ForceCodecV2(codec{encoding.GetCodecV2("proto")}),
}

// An encoded is a message that was not decoded yet: what a plugin sends is weighed first.
type encoded []byte

// A codec is gRPC's for protobuf that leaves an [*encoded] encoded.
type codec struct{ encoding.CodecV2 }

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if e, ok := v.(*encoded); ok {
		*e = data.Materialize()
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
