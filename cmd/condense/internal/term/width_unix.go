//go:build unix

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalWidth returns the number of columns of the terminal f; zero if f is not one.
func terminalWidth(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
