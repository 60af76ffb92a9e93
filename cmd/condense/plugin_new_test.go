package main_test

import (
	"os"
	"strings"
	"testing"
)

// The template in Go requires what the smallest example does. Others see to it that the
// example requires what this module does.
func TestTemplateRequirements(t *testing.T) {
	const example = "../../examples/plugins/keepfirst/"
	requires := func(mod string) string {
		_, after, _ := strings.Cut(mod, "\nrequire (")
		block, _, _ := strings.Cut(after, "\n)")
		return block
	}
	if got, want := requires(read(t, "templates/go/go.mod.tmpl")), requires(read(t, example+"go.mod")); got != want || want == "" {
		t.Errorf("templates/go/go.mod.tmpl requires\n%s\nand %sgo.mod\n%s\nput the latter into the former", got, example, want)
	}
	if read(t, "templates/go/go.sum.tmpl") != read(t, example+"go.sum") {
		t.Errorf("cp %sgo.sum cmd/condense/templates/go/go.sum.tmpl", strings.TrimPrefix(example, "../../"))
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
