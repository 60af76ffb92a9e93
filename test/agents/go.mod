// What drives real agents, which only this test needs: a module of its own keeps it out of go test ./...
// of the main module.
module github.com/condensehq/condense/test/agents

go 1.26.0

require (
	github.com/coder/websocket v1.8.15
	github.com/condensehq/condense v0.0.0
)

require (
	github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream v1.7.27 // indirect
	github.com/aws/smithy-go v1.28.9 // indirect
	github.com/gofrs/flock v0.13.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/condensehq/condense => ../..
