// Package golden replays recorded vectors: inputs of Roo-Code's own functions with their outputs. It is for tests
// only.
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
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// DirEnv names the environment variable that replaces the embedded vectors by a
// directory of files in the same format. It should be an absolute path: go test runs
// every test in the directory of its package.
const DirEnv = "CONDENSE_GOLDEN_DIR"

//go:embed testdata/*.json
var embedded embed.FS

// Options adjust [Run]. A nil pointer means the defaults.
type Options struct {
	// Ignore lists members of an output object that the port does not produce.
	Ignore []string
}

// A NotOursError is the error of a replay that cannot use a vector because this module does not have the feature. It
// gives the reason; the vector is skipped.
type NotOursError string

func (why NotOursError) Error() string { return string(why) }

// Unread names the files that no test replays, each with the reason.
var Unread = map[string]string{ //nolint:gosec // names of files, not credentials
	"buildRequestHistory":                "merges the messages that Roo sends; the program that sends a request does that",
	"contextTokens":                      "reads Roo's messages for the user interface, which no part of this module does",
	"generateFoldedFileContextReal":      "uses the names of tree-sitter's queries; our outline is lexical (docs/decisions/0013-outline.md)",
	"getFilesReadByRoo":                  "reads Roo's task metadata; the host finds the files in the messages (condense.Turn.FilesRead)",
	"getMessagesSinceLastSummary":        "is a part of getEffectiveApiHistory, which is replayed",
	"getModelMaxOutputTokens":            "depends on flags of Roo's model catalogue; the reserve comes from our table or the configuration (docs/decisions/0007-policy.md)",
	"legacy.getMessagesSinceLastSummary": "is part of legacy.summarizeConversation, whose recorded requests hold the same messages",
	"maybeRemoveImageBlocks":             "is done by the program that sends a request, which knows what its model reads",
	"mergeConsecutiveApiMessages":        "merges the messages that Roo sends; the program that sends a request does that",
	"parseSourceCodeDefinitionsForFile":  "records the output of tree-sitter; our outline is lexical (docs/decisions/0013-outline.md)",
	"tiktokenCount":                      "adds Roo's safety margin to a count; package tokens has its own oracle",
	"trackFiles":                         "writes Roo's task metadata; the host finds the files in the messages (condense.Turn.FilesRead)",
	"validateAndFixToolResultIds":        "repairs a message before Roo stores it; we leave a conversation's own faults as they are (docs/rules.md)",
}

// A vector is one recorded call.
type vector struct {
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input"`
	Output json.RawMessage `json:"output"`
}

// Run replays every vector of the named file, a subtest each. Replay gets the input, decoded strictly: a member that
// In does not know fails the vector. Its answer is encoded as JSON and compared with the output, an error with a
// throw.
//
// A replay may return an error with an answer: the error if the output is a throw, else the
// answer is compared. A throw within an answer equals any other throw in its place.
//
// A file that the directory in [DirEnv] lacks, or that is empty there, skips the test; one
// that is absent from testdata fails it.
func Run[In any](t *testing.T, file string, replay func(In) (any, error), opts *Options) {
	t.Helper()
	RunRecorded(t, file, func(in In, _ json.RawMessage) (any, error) { return replay(in) }, opts)
}

// RunRecorded is [Run] for a replay that also gets the recorded output: to start each step of several from the state
// that Roo recorded after the previous one, or to read files that Roo wrote. Members that the replay cannot produce
// are copied from the output.
func RunRecorded[In any](t *testing.T, file string, replay func(in In, output json.RawMessage) (any, error), opts *Options) {
	t.Helper()
	if opts == nil {
		opts = &Options{}
	}
	vectors, from, err := load(os.Getenv(DirEnv), file)
	if from != "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, errEmpty)) {
		t.Skipf("%s=%s has no vectors of %s", DirEnv, from, file)
	}
	if err != nil {
		t.Fatalf("golden vectors: %v", err)
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			err := check(v, replay, opts.Ignore)
			if why := NotOursError(""); errors.As(err, &why) {
				t.Skip(why)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

var errEmpty = errors.New("no vectors")

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
		return nil, dir, fmt.Errorf("%s: %w", file, errEmpty)
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
func check[In any](v vector, replay func(In, json.RawMessage) (any, error), ignore []string) error {
	var in In
	if err := decodeStrict(v.Input, &in); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	want, err := decodeValue(v.Output)
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	answer, err := replay(in, v.Output)
	if name, throws := thrown(want); throws {
		if err == nil {
			return fmt.Errorf("got no error, want one where Roo throws %v", name)
		}
		return nil
	}
	if err != nil && answer == nil {
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
	if diff := cmp.Diff(replace(want, anyThrow), replace(got, anyThrow)); diff != "" {
		return fmt.Errorf("answer differs (-recorded +got):\n%s", diff)
	}
	return nil
}

// thrown reports whether a recorded output is a throw, and its name.
func thrown(output any) (name any, ok bool) {
	object, ok := output.(map[string]any)
	if !ok || len(object) != 1 {
		return nil, false
	}
	name, ok = object["throws"]
	return name, ok
}

// anyThrow replaces throws within v: a port picks its own errors.
func anyThrow(v any) any {
	if _, ok := thrown(v); ok {
		return map[string]any{"throws": "any"}
	}
	return v
}

// Whole multiplies numbers that are no integers, and all others with them, by the power of
// two that is returned, 1 if all are integers. A nil pointer is passed over. Rules on
// integers that are homogeneous decide about the products as about the numbers.
func Whole(numbers ...*float64) float64 {
	const factor = 1 << 20
	for _, n := range numbers {
		if n == nil || *n == math.Trunc(*n) {
			continue
		}
		for _, n := range numbers {
			if n != nil {
				*n *= factor
			}
		}
		return factor
	}
	return 1
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
