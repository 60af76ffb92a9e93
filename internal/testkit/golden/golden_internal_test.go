package golden

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type sumInput struct {
	A, B json.Number
}

func vectorOf(input, output string) vector {
	return vector{Name: "v", Input: json.RawMessage(input), Output: json.RawMessage(output)}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	answer := func(text string) func(sumInput) (any, error) {
		return func(sumInput) (any, error) { return json.RawMessage(text), nil }
	}
	fails := func(sumInput) (any, error) { return nil, errors.New("boom") }
	tests := []struct {
		name   string
		v      vector
		replay func(sumInput) (any, error)
		ignore []string
		want   string // part of the error; empty: passes
	}{
		{"equal", vectorOf(`{"A":1,"B":2}`, `{"sum":3}`), answer(`{"sum":3}`), nil, ""},
		{"member order", vectorOf(`{}`, `{"a":1,"b":2}`), answer(`{"b":2,"a":1}`), nil, ""},
		{"array order", vectorOf(`{}`, `[1,2]`), answer(`[2,1]`), nil, "answer differs"},
		{"number spelling", vectorOf(`{}`, `[100,0.5,0]`), answer(`[1e2,5E-1,-0.0]`), nil, ""},
		{"number beyond float64", vectorOf(`{}`, `[9007199254740993]`), answer(`[9007199254740992]`), nil, "answer differs"},
		{"number is not string", vectorOf(`{}`, `[1]`), answer(`["1"]`), nil, "answer differs"},
		{"null is not absent", vectorOf(`{}`, `{"a":null}`), answer(`{}`), nil, "answer differs"},
		{"unknown output member", vectorOf(`{}`, `{"sum":3,"new":1}`), answer(`{"sum":3}`), nil, "answer differs"},
		{"ignored output member", vectorOf(`{}`, `{"sum":3,"new":1}`), answer(`{"sum":3}`), []string{"new"}, ""},
		{"unknown input member", vectorOf(`{"C":1}`, `3`), answer(`3`), nil, `unknown field "C"`},
		{"throw", vectorOf(`{}`, `{"throws":"TypeError"}`), fails, nil, ""},
		{"throw missed", vectorOf(`{}`, `{"throws":"TypeError"}`), answer(`3`), nil, "want one where Roo throws TypeError"},
		{"throw of a step", vectorOf(`{}`, `{"steps":[{"result":{"throws":"TypeError"}}]}`), answer(`{"steps":[{"result":{"throws":"Error"}}]}`), nil, ""},
		{"throw of a step missed", vectorOf(`{}`, `{"steps":[{"result":{"throws":"TypeError"}}]}`), answer(`{"steps":[{"result":{}}]}`), nil, "answer differs"},
		{"error", vectorOf(`{}`, `3`), fails, nil, "got an error, want a result: boom"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := check(tt.v, func(in sumInput, _ json.RawMessage) (any, error) { return tt.replay(in) }, tt.ignore)
			if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q in it", got, tt.want)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	a, b := 3.0, 1000.0
	if f := Whole(&a, nil, &b); f != 1 || a != 3 || b != 1000 {
		t.Errorf("integers: got factor %v, %v, %v", f, a, b)
	}
	a = 2.5
	if f := Whole(&a, nil, &b); f == 1 || a != 2.5*f || b != 1000*f || a != float64(int(a)) {
		t.Errorf("a fraction: got factor %v, %v, %v", f, a, b)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good", `[{"name":"a","input":{},"output":null}]`)
	write("empty", `[]`)
	write("twice", `[{"name":"a","input":{},"output":1},{"name":"a","input":{},"output":1}]`)
	write("extra", `[{"name":"a","input":{},"output":1,"note":"x"}]`)
	write("partial", `[{"name":"a","input":{}}]`)
	write("trailing", `[{"name":"a","input":{},"output":1}] []`)
	tests := []struct{ file, want string }{
		{"good", ""},
		{"empty", "no vectors"},
		{"twice", `two vectors are named "a"`},
		{"extra", `unknown field "note"`},
		{"partial", `vector 0 ("a") lacks`},
		{"trailing", "more than one JSON value"},
	}
	for _, tt := range tests {
		_, _, err := load(dir, tt.file)
		if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q in it", tt.file, got, tt.want)
		}
	}

	if _, from, err := load(dir, "absent"); !errors.Is(err, fs.ErrNotExist) || from != dir {
		t.Errorf("absent file: got %v from %q, want ErrNotExist from the directory, which skips", err, from)
	}
	if _, from, err := load(filepath.Join(dir, "nowhere"), "good"); err == nil || from != "" {
		t.Errorf("absent directory: got %v from %q, want an error that does not skip", err, from)
	}
}

func TestEmbeddedFilesLoad(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(embedded, "testdata/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("got %d files, %v", len(names), err)
	}
	for _, name := range names {
		file := strings.TrimSuffix(filepath.Base(name), ".json")
		if _, _, err := load("", file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
