package term

import (
	"io"
	"os"
	"strconv"
)

// Width returns how many characters fit into a line of w: what COLUMNS says, else what the
// terminal does. Zero means that there is no bound.
func Width(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := w.(*os.File); ok {
		return terminalWidth(f)
	}
	return 0
}
