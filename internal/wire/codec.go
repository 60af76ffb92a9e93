package wire

import "google.golang.org/grpc"

// callOptions go with every call of a host.
var callOptions = []grpc.CallOption{
	grpc.MaxCallRecvMsgSize(MaxEnvelope + 64<<10),
}
