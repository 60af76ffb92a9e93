package wire

import "google.golang.org/grpc"

// DialTuning returns options for a host's connection to a plugin. Nearly all that it
// carries is written by the host, in runs of [ChunkSize]: a larger buffer than gRPC's 32
// KiB means fewer calls of the system.
func DialTuning() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithWriteBufferSize(128 << 10)}
}
