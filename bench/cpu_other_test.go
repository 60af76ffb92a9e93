//go:build !unix

package bench_test

import "time"

// cpuTime returns 0: it is not known.
func cpuTime() time.Duration { return 0 }
