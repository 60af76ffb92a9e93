// Package condensepb is the code that protoc's plugins make of condense.proto.
package condensepb

//go:generate go -C ../../../tools run ./protogen -I ../plugin-sdk/proto -out .. -opt module=github.com/condensehq/condense -plugin "go tool protoc-gen-go" -plugin "go tool protoc-gen-go-grpc" condense/v1/condense.proto
