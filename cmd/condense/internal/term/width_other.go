//go:build !unix && !windows

package term

import "os"

func terminalWidth(*os.File) int { return 0 }
