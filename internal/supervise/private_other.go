//go:build !unix

package supervise

import (
	"io/fs"
	"os"
)

const maxSocketPath = 103

// Without locks nothing is swept: what a host that was killed leaves behind stays.

func lockFile(string) (*os.File, error)         { return nil, nil }
func abandoned(string) (lock *os.File, ok bool) { return nil, false }
func ownDir(fs.FileInfo) bool                   { return false }
