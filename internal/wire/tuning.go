package wire

import "google.golang.org/grpc"

// ServerTuning returns options for the gRPC server of a plugin.
func ServerTuning() []grpc.ServerOption { return nil }

// DialTuning returns options for a host's connection to a plugin.
func DialTuning() []grpc.DialOption { return nil }
