// Package proto holds the protocol between host and plugins, for programs that pass the file on. The code generated
// from it is in internal/wire/condensepb.
package proto

import _ "embed" // for the directive

// Condense is condense/v1/condense.proto.
//
//go:embed condense/v1/condense.proto
var Condense []byte
