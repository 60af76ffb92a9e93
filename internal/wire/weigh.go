package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// maxEntries is how many messages and list entries one envelope may hold. Two bytes
	// are enough to make a receiver allocate a hundred; this is what keeps 4 MiB from
	// becoming hundreds.
	maxEntries = 1 << 17
	// maxNesting is how deep they may stand inside each other. The protocol has 10
	// levels.
	maxNesting = 32
)

// unmarshal decodes what a peer sent that is not trusted. It keeps no field that it does
// not know.
func unmarshal(data []byte, m proto.Message) error {
	entries := 0
	if err := weigh(m.ProtoReflect().Descriptor(), data, 0, &entries); err != nil {
		return err
	}
	return proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxNesting}.Unmarshal(data, m)
}

// weigh adds to entries what the encoding of a message of type d would make a decoder
// allocate, and stops where that is too much.
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
