package smart_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/condensehq/condense/providers/smart"
)

var update = flag.Bool("update", false, "rewrite generated documents")

// TestDocument holds the tables of docs/smart.md, which are made from those of the code, up
// to date.
func TestDocument(t *testing.T) {
	const file = "../../docs/smart.md"
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := string(was)
	presets, passes := smart.Describe()
	for name, text := range map[string]string{"presets": presets, "passes": passes} {
		begin, end := "<!-- "+name+": generated -->\n", "<!-- end of "+name+" -->"
		before, rest, ok := strings.Cut(got, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s: no %q with %q behind it", file, begin, end)
		}
		got = before + begin + text + end + after
	}
	if *update && got != string(was) {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(was) {
		t.Errorf("%s is stale: run go test ./providers/smart -update", file)
	}
}
