package dialog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/internal/testkit"
)

// TestFilesOfACall: a call that reads is about every path in it, each up to its own end.
func TestFilesOfACall(t *testing.T) {
	for call, want := range map[string][]string{
		"<read_file>\n<path> a.go </path>\n</read_file>":                     {"a.go"},
		"<read_file><file><path>a</path></file><file><path>b</path></file>":  {"a", "b"},
		"<read_file><path>a<path>b</path><path>c</path></read_file>":         {"a<path>b", "c"},
		"<read_file><path></path><path>b</path></read_file>":                 nil,
		"<read_file><path>a</read_file>":                                     nil,
		"<write_to_file><path>a</path><content><path>b</path></content></w>": {"a"},
	} {
		name, _ := Tag(call)
		var got []string
		for _, f := range xmlUse(name, call).Files {
			got = append(got, f.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", call, diff)
		}
	}
}

// TestFilesOfACallAreFoundInTime: when every path in a row without ends went on to the last
// end, a call of 350 kB took ten seconds.
func TestFilesOfACallAreFoundInTime(t *testing.T) {
	testkit.Linear(t, 50_000, func(n int) func() {
		call := "<read_file>\n" + strings.Repeat("<path>\n", n) + "</path>\n</read_file>"
		return func() {
			if u := xmlUse("read_file", call); len(u.Files) != 1 || u.Family != FamilyRead {
				t.Errorf("got %d files of %q, want one that is read", len(u.Files), u.Family)
			}
		}
	})
}
