// The tools that write generated code, in a module of their own so that they reach
// neither the module graph of condense nor that of a plugin's author.
module github.com/condensehq/condense/tools

go 1.26.0

require (
	github.com/bufbuild/protocompile v0.14.1
	golang.org/x/tools v0.52.0
	google.golang.org/protobuf v1.36.12
)

require (
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	google.golang.org/grpc/cmd/protoc-gen-go-grpc v1.6.2 // indirect
)

tool (
	google.golang.org/grpc/cmd/protoc-gen-go-grpc
	google.golang.org/protobuf/cmd/protoc-gen-go
)
