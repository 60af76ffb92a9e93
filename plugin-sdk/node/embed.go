// Package node holds the SDK for plugins in Node, which `condense plugin new` copies into a new plugin. It has no
// code in Go.
package node

import "embed"

// Files are the files of the SDK, in a folder named condense. condense.proto is added to them there.
//
//go:embed condense/*.mjs
var Files embed.FS
