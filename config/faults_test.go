package config_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/condensehq/condense/config"
)

var update = flag.Bool("update", false, "write what the golden files should be")

// Every invalid file is refused with exactly these messages: position, key, problem, allowed
// values, suggestion.
func TestFaults(t *testing.T) {
	const golden = "testdata/faults.txtar"
	archive, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	var wrong []txtar.File
	for _, f := range archive.Files {
		if name, ok := strings.CutSuffix(f.Name, ".want"); ok {
			want[name] = string(f.Data)
		} else {
			wrong = append(wrong, f)
		}
	}
	if len(wrong) < 40 {
		t.Fatalf("got %d wrong files, want at least 40", len(wrong))
	}
	archive.Files = nil
	for _, f := range wrong {
		var got string
		t.Run(f.Name, func(t *testing.T) {
			got = messages(t, f)
			if !*update && got != want[f.Name] {
				t.Errorf("messages (-want +got):\n%s", cmp.Diff(want[f.Name], got))
			}
		})
		archive.Files = append(archive.Files, f, txtar.File{Name: f.Name + ".want", Data: []byte(got)})
	}
	if *update {
		if err := os.WriteFile(golden, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func messages(t *testing.T, f txtar.File) string {
	t.Helper()
	opts := known
	opts.Path = write(t, f.Name, string(f.Data))
	_, err := config.Load(opts)
	if err == nil {
		t.Fatal("the file was accepted")
	}
	errs, ok := errors.AsType[config.Errors](err)
	if !ok {
		t.Fatalf("got a %T, want config.Errors", err)
	}
	var out bytes.Buffer
	for _, e := range errs {
		if e.Problem == "" || e.Origin.Kind == "" {
			t.Errorf("an incomplete error: %+v", *e)
		}
		for _, secret := range []string{"hunter2", "abc123", "sk-ant-", "ghp_"} {
			if strings.Contains(e.Error(), secret) {
				t.Errorf("the message repeats a secret: %s", e)
			}
		}
		out.WriteString(strings.ReplaceAll(e.Error(), filepath.Dir(opts.Path)+string(filepath.Separator), ""))
		out.WriteByte('\n')
	}
	return out.String()
}
