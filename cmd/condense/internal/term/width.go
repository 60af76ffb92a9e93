package term

import (
	"io"
	"os"
	"strconv"
)

// Width returns the number of characters in a line of w: COLUMNS, or the width of the terminal.
// Zero means no limit.
func Width(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f := File(w); f != nil {
		return terminalWidth(f)
	}
	return 0
}
