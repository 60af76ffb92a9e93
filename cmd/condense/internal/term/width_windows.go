package term

import (
	"os"

	"golang.org/x/sys/windows"
)

// terminalWidth returns the number of columns of the console f; zero if f is not one.
func terminalWidth(f *os.File) int {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info) != nil {
		return 0
	}
	return int(info.Window.Right-info.Window.Left) + 1
}
