package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

// Agents start the program for each hook and each status line, and wait for it: tables and patterns that few commands need are made
// when they are needed ([sync.OnceValue], plain.Pattern). Counted are allocations, which no machine changes: a pattern has about a
// hundred of them. All patterns together had 40,000, and took half of the time of a start.
func TestStart(t *testing.T) {
	testkit.Process(t)
	const ofPackage, ofAll = 600, 4_000
	cmd := exec.CommandContext(t.Context(), "condense", "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ofOurs := regexp.MustCompile(`(?m)^init github\.com/condensehq/condense/(\S+) .* (\d+) allocs$`)
	sum := 0
	for _, line := range ofOurs.FindAllStringSubmatch(string(out), -1) {
		if strings.HasPrefix(line[1], "internal/testkit") { // the program of tests has them
			continue
		}
		n, err := strconv.Atoi(line[2])
		if err != nil || n > ofPackage {
			t.Errorf("%s makes %s allocations before main, and %d are allowed: %v", line[1], line[2], ofPackage, err)
		}
		sum += n
	}
	if t.Logf("%d allocations before main", sum); sum == 0 || sum > ofAll {
		t.Errorf("the packages make %d allocations before main, and %d are allowed", sum, ofAll)
	}
}
