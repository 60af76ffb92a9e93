//go:build unix

package bench_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/testkit/benchdata"
)

// BenchmarkRun measures the program as a process, from start to end: it reads 10,000 messages of 1.2
// million tokens, counts them, condenses them for a window, and writes the result and the report. cpu-ms
// is the time of all threads, peak-MB the maximum resident memory. Run it alone (-bench BenchmarkRun): a
// system may add the memory of this process to that of its children.
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	program := filepath.Join(dir, "condense")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/condense").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	session := filepath.Join(dir, "session.json")
	f, err := os.Create(session)
	if err != nil {
		b.Fatal(err)
	}
	if err := benchdata.WriteAnthropic(f, 10_000); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args string
		code int // of a run that does what it should
	}{
		{"start", "version", 0}, // the time of any command
		{"check", "check SESSION --window 1000000", 0},
		{"run-200k", "run SESSION --window 200000 --provider slidingwindow -o OUT", 0},
		{"run-1M", "run SESSION --window 1000000 --provider slidingwindow -o OUT", 0},
		{"run-1M-journal", "run SESSION --window 1000000 --provider slidingwindow --to condense -o OUT", 0},
		{"run-200k-default", "run SESSION --window 200000 -o OUT", 0}, // the default chain
		{"run-1M-default", "run SESSION --window 1000000 -o OUT", 0},
		{"run-unchanged", "run SESSION --window 2000000 -o OUT", notDue},
	} {
		b.Run(c.name, func(b *testing.B) {
			args := strings.Fields(strings.NewReplacer(
				"SESSION", session, "OUT", filepath.Join(dir, "out.json"),
			).Replace(c.args))
			var cpu time.Duration
			var peak int64
			runs := 0
			for b.Loop() {
				cmd := exec.Command(program, args...)
				cmd.Dir = dir
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				if err := cmd.Run(); cmd.ProcessState.ExitCode() != c.code {
					b.Fatalf("%v, want exit code %d\n%s", err, c.code, &stderr)
				}
				cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				peak = max(peak, resident(cmd.ProcessState))
				runs++
			}
			b.ReportMetric(float64(cpu.Microseconds())/1000/float64(runs), "cpu-ms")
			if own := ownPeak(b); peak > own {
				b.ReportMetric(float64(peak)/1e6, "peak-MB")
			} else {
				b.Logf("the peak is below that of this process, %d MB", own/1e6)
			}
		})
	}
}

// notDue is the exit code if nothing was to be done.
const notDue = 3

// resident returns the maximum resident memory of a process in bytes.
func resident(p *os.ProcessState) int64 {
	if usage, ok := p.SysUsage().(*syscall.Rusage); ok {
		return maxrss(usage)
	}
	return 0
}

func ownPeak(tb testing.TB) int64 {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return maxrss(&usage)
}

// maxrss is in kilobytes except on Apple's systems.
func maxrss(usage *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(usage.Maxrss) //nolint:unconvert // other types on other systems
	}
	return int64(usage.Maxrss) * 1024 //nolint:unconvert // as above
}
