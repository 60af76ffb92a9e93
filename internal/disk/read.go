package disk

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ReadFile reads a regular file, or what a link leads to, of at most this many bytes. A repository may have a pipe or a link to a device in
// the place of a file: reading would not end.
func ReadFile(file string, most int) ([]byte, error) {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("is %s, not a file", fileKind(info.Mode()))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(text) > most {
		text, err = nil, fmt.Errorf("larger than %d MiB", most>>20)
	}
	return text, err
}

func fileKind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	}
	return "a device or a socket"
}
