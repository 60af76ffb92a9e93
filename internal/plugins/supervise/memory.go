package supervise

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// PeakMemory returns the most memory, in bytes, that the process that runs has had; 0 if none runs, or if the system does not report it.
func (p *Process) PeakMemory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Status().PID)) // there is no process 0
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "\nVmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kb, _ := strconv.ParseInt(number, 10, 64) //nolint:errcheck // 0 if it is not there
	return kb << 10
}
