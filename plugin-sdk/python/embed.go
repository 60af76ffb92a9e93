// Package python holds the SDK for plugins in Python, which `condense plugin new` copies into a new plugin. It has no
// code in Go.
package python

import "embed"

// Files are the files of the SDK, in a folder named condense.
//
//go:embed condense/*.py
var Files embed.FS
