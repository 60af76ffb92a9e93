package house_test

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ratchet is the commit since which no ceiling of a budget has been raised.
const ratchet = "eedc6672"

// row matches a budget in its source: the name, as it stands there, and the ceiling.
var row = regexp.MustCompile(`(?m)^\t\{("[^"]+"|fmt\.Sprintf\([^)]+\)), ([\d_]+), [\w]+,`)

// TestCeilingsOnlyFall: a limit that moves with the code is a log. It reads the history, so it is skipped where there is none.
func TestCeilingsOnlyFall(t *testing.T) {
	const file = "test/house/budgets_test.go"
	show := func(commit string) map[string]int {
		text, err := exec.CommandContext(t.Context(), "git", "show", commit+":"+file).Output()
		if err != nil {
			t.Skipf("no history: %v", err)
		}
		found := map[string]int{}
		for _, m := range row.FindAllStringSubmatch(string(text), -1) {
			n, err := strconv.Atoi(strings.ReplaceAll(m[2], "_", ""))
			if err != nil {
				t.Fatal(err)
			}
			found[m[1]] = n
		}
		return found
	}
	before := show(ratchet)
	if len(before) < len(budgets)-2 {
		t.Fatalf("only %d of %d budgets are read from %s", len(before), len(budgets), file)
	}
	commits, err := exec.CommandContext(t.Context(), "git", "log", "--reverse", "--first-parent", "--format=%h", ratchet+"..HEAD", "--", file).Output()
	if err != nil {
		t.Skipf("no history: %v", err)
	}
	for commit := range strings.FieldsSeq(string(commits)) {
		after := show(commit)
		for name, n := range after {
			if was, ok := before[name]; ok && n > was {
				t.Errorf("commit %s raised the ceiling of %s from %d to %d", commit, name, was, n)
			}
		}
		before = after
	}
}
