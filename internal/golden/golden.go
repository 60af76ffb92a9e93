// Package golden replays recorded vectors: inputs of Roo-Code's own functions with what
// they answered. It is for tests only.
//
// A file is a JSON array of vectors {"name", "input", "output"}, named after the function
// that was recorded. An output {"throws": "<name>"} means that the function threw; a port
// may answer any error there. The numbers and the strings of an output are compared as
// JSON values, so neither the order of members nor the spelling of a number matters. A
// lone surrogate, which no Go string can hold, is compared as U+FFFD.
//
// Files come from the directory that CONDENSE_GOLDEN_DIR names, else from the copies in
// testdata. That directory lies outside the module, so `go test` does not see it change:
// run with -count=1.
package golden

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"testing"
)

// DirEnv names the environment variable that replaces the embedded vectors by a
// directory of files in the same format. It should be an absolute path: go test runs
// every test in the directory of its package.
const DirEnv = "CONDENSE_GOLDEN_DIR"

// maxExceptionPercent bounds how much of a file may be excused.
const maxExceptionPercent = 3

//go:embed testdata/*.json
var embedded embed.FS

// Options adjust [Run]. A nil pointer means the defaults.
type Options struct {
	// Exceptions excuses vectors, by name, each with the reason. No more than 3 percent
	// of a file may be excused, and an excused vector that passes fails the test.
	Exceptions map[string]string
	// Ignore lists members of an output object that the port does not produce.
	Ignore []string
}

// A vector is one recorded call.
type vector struct {
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input"`
	Output json.RawMessage `json:"output"`
}

// Run replays every vector of the named file, a subtest each. Replay gets the input,
// decoded strictly: a member that In does not know fails the vector. What it answers is
// encoded as JSON and compared with the output, an error with a throw.
//
// A file that is absent from the directory in [DirEnv] skips the test; one that is absent
// from testdata fails it.
func Run[In any](t *testing.T, file string, replay func(In) (any, error), opts *Options) {
	t.Helper()
	if opts == nil {
		opts = &Options{}
	}
	vectors, from, err := load(os.Getenv(DirEnv), file)
	if errors.Is(err, fs.ErrNotExist) && from != "" {
		t.Skipf("%s=%s has no %s.json; its vectors are not replayed", DirEnv, from, file)
	}
	if err != nil {
		t.Fatalf("golden vectors: %v", err)
	}
	verdicts := make(map[string]error) // of the vectors that -run selects
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			err := check(v, replay, opts.Ignore)
			verdicts[v.Name] = err
			if err == nil {
				return
			}
			if reason, excused := opts.Exceptions[v.Name]; excused {
				t.Skipf("excused: %s", reason)
			}
			t.Error(err)
		})
	}
	if err := audit(vectors, opts.Exceptions, verdicts); err != nil {
		t.Errorf("exceptions of %s: %v", file, err)
	}
}

// load reads the vectors of a file from dir, or from testdata if dir is empty, and says
// which directory it was.
func load(dir, file string) (vectors []vector, from string, err error) {
	var data []byte
	if dir == "" {
		data, err = embedded.ReadFile("testdata/" + file + ".json")
	} else {
		files := os.DirFS(dir)
		if _, err := fs.Stat(files, "."); err != nil {
			// Not a missing file: nothing at all would be replayed.
			return nil, "", fmt.Errorf("%s=%s: %w (is it an absolute path?)", DirEnv, dir, err)
		}
		data, err = fs.ReadFile(files, file+".json")
	}
	if err != nil {
		return nil, dir, err
	}
	if err := decodeStrict(data, &vectors); err != nil {
		return nil, dir, fmt.Errorf("%s: %w", file, err)
	}
	if len(vectors) == 0 {
		return nil, dir, fmt.Errorf("%s: no vectors", file)
	}
	seen := make(map[string]bool, len(vectors))
	for i, v := range vectors {
		switch {
		case v.Name == "" || v.Input == nil || v.Output == nil:
			return nil, dir, fmt.Errorf("%s: vector %d (%q) lacks name, input or output", file, i, v.Name)
		case seen[v.Name]:
			return nil, dir, fmt.Errorf("%s: two vectors are named %q", file, v.Name)
		}
		seen[v.Name] = true
	}
	return vectors, dir, nil
}

// check replays one vector and says how the answer differs from the recorded one.
func check[In any](v vector, replay func(In) (any, error), ignore []string) error {
	var in In
	if err := decodeStrict(v.Input, &in); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	want, err := decodeValue(v.Output)
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	answer, err := replay(in)
	if name, throws := thrown(want); throws {
		if err == nil {
			return fmt.Errorf("got no error, want one where Roo throws %v", name)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("got an error, want a result: %w", err)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	got, err := decodeValue(text)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if object, ok := want.(map[string]any); ok {
		for _, name := range ignore {
			delete(object, name)
		}
	}
	if diff := diffValues(want, got); diff != "" {
		return fmt.Errorf("answer differs (-recorded +got):\n%s", diff)
	}
	return nil
}

// thrown reports whether a recorded output says that the function threw, and what.
func thrown(output any) (name any, ok bool) {
	object, ok := output.(map[string]any)
	if !ok || len(object) != 1 {
		return nil, false
	}
	name, ok = object["throws"]
	return name, ok
}

// audit holds the exceptions against the verdicts on the vectors that were replayed.
func audit(vectors []vector, exceptions map[string]string, verdicts map[string]error) error {
	var errs []error
	if len(exceptions)*100 > maxExceptionPercent*len(vectors) {
		errs = append(errs, fmt.Errorf("%d of %d vectors are excused, more than %d percent",
			len(exceptions), len(vectors), maxExceptionPercent))
	}
	known := make(map[string]bool, len(vectors))
	for _, v := range vectors {
		known[v.Name] = true
	}
	for name, reason := range exceptions {
		verdict, replayed := verdicts[name]
		switch {
		case !known[name]:
			errs = append(errs, fmt.Errorf("%q names no vector", name))
		case reason == "":
			errs = append(errs, fmt.Errorf("%q is excused without a reason", name))
		case replayed && verdict == nil:
			errs = append(errs, fmt.Errorf("%q passes; remove the exception", name))
		}
	}
	return errors.Join(errs...)
}

// decodeStrict decodes one JSON value and refuses members that v does not know.
func decodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}
