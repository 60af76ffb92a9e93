//go:build !unix

package cli

import (
	"io/fs"
	"os"
)

// names returns 1: the number of names is unknown on this system.
func names(fs.FileInfo) int { return 1 }

// keepOwner does nothing: a new file has the owner of its folder.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
