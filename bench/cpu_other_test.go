//go:build !unix

package bench_test

import "time"

// cpuTime returns 0, as the time is unknown here.
func cpuTime() time.Duration { return 0 }
