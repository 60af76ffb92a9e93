//go:build unix

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalWidth returns the columns of the terminal that f is; zero if it is none.
func terminalWidth(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
