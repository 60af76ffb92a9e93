package main

import (
	"os"
	"strconv"
)

// width returns how many characters fit into a line of standard output: what COLUMNS says,
// else what the terminal does. Zero means that there is no bound.
func (a *app) width() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := a.stdout.(*os.File); ok {
		return terminalWidth(f)
	}
	return 0
}
