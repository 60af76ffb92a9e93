package native

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite generated documents")

// TestDocument holds the tables of docs/native.md, which are made from the presets, up to
// date.
func TestDocument(t *testing.T) {
	const file = "../../docs/native.md"
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	after := string(before)
	for name, table := range map[string]string{"presets": presetTable(), "settings": settingTable()} {
		_, rest, ok := strings.Cut(after, "<!-- "+name+":")
		end := "<!-- end of " + name + " -->"
		head, _, ok2 := strings.Cut(rest, end)
		_, old, ok3 := strings.Cut(head, "-->\n")
		if !ok || !ok2 || !ok3 {
			t.Fatalf("%s has no place for the table of %s", file, name)
		}
		after = strings.Replace(after, old+end, table+end, 1)
	}
	if *update {
		if err := os.WriteFile(file, []byte(after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(before) != after {
		t.Errorf("%s is stale: run go test ./providers/native -run Document -update", file)
	}
}

func presetTable() string {
	var b strings.Builder
	b.WriteString("| preset | what becomes of the conversation | as in |\n|---|---|---|\n")
	for _, p := range presets {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, p.Doc, p.Source)
	}
	return b.String()
}

// settingTable has a row for every setting: its default in every preset, and what it says.
func settingTable() string {
	var b strings.Builder
	b.WriteString("| setting |")
	for _, p := range presets {
		fmt.Fprintf(&b, " `%s` |", p.Name)
	}
	b.WriteString(" |\n|---|" + strings.Repeat("---|", len(presets)+1) + "\n")
	fields := reflect.TypeFor[Config]()
	for i := range fields.NumField() {
		f := fields.Field(i)
		if f.Name == "Preset" {
			continue
		}
		fmt.Fprintf(&b, "| `%s` |", f.Tag.Get("json"))
		for _, p := range presets {
			c, _ := presetConfig(p.Name)
			b.WriteString(" " + shown(reflect.ValueOf(c).Field(i)) + " |")
		}
		b.WriteString(" " + strings.ReplaceAll(f.Tag.Get("doc"), "|", "\\|"))
		if enum := f.Tag.Get("enum"); enum != "" {
			fmt.Fprintf(&b, ": `%s`", strings.ReplaceAll(enum, "|", "`, `"))
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

func shown(v reflect.Value) string {
	if v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return "–"
	}
	if v.Kind() == reflect.Bool {
		return "yes"
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return err.Error()
	}
	if v.Kind() == reflect.String {
		return "`" + strings.Trim(string(text), `"`) + "`"
	}
	return string(text)
}
