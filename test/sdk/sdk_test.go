// Package sdk_test shows that the official SDKs of Anthropic and OpenAI accept what
// `condense run --to anthropic` and `--to openai` write for every session of this
// repository.
package sdk_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/internal/testkit"
)

const root = "../.."

// TestRun condenses every session, and leaves every session alone, and sends both to both
// vendors with the vendor's SDK.
func TestRun(t *testing.T) {
	t.Parallel()
	program := build(t)
	for _, session := range sessions(t) {
		t.Run(filepath.Base(session), func(t *testing.T) {
			t.Parallel()
			for _, v := range vendors {
				whole, r := condense(t, program, session, v.name, 100_000_000)
				if r.Acted {
					t.Fatalf("condensed for a window of 100 million tokens")
				}
				v.accepts(t, whole)
				if r.Tokens.Before < tooSmall {
					continue
				}
				short, r := condense(t, program, session, v.name, r.Tokens.Before*3/4)
				if !r.Acted || r.Tokens.After >= r.Tokens.Before {
					t.Fatalf("%s: not condensed: %+v", v.name, r)
				}
				v.accepts(t, short)
			}
		})
	}
}

// tooSmall is a size in tokens. A conversation below it has nothing that could be replaced by
// a stub.
const tooSmall = 1000

// build returns the path of the program.
func build(t *testing.T) string {
	t.Helper()
	program, err := testkit.Program(root, filepath.Join(t.TempDir(), "condense"))
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// sessions returns every conversation that tests of this repository read: recorded ones,
// those in the formats of other tools, and those of CONDENSE_TRACES_DIR if it is set.
func sessions(t *testing.T) []string {
	t.Helper()
	patterns := []string{
		filepath.Join(root, "testdata/traces/*.json.gz"),
		filepath.Join(root, "transcript/testdata/roo/*.json"),
		filepath.Join(root, "transcript/testdata/codex/*.jsonl"),
		filepath.Join(root, "transcript/testdata/claudecode/*.jsonl"),
	}
	if dir := os.Getenv("CONDENSE_TRACES_DIR"); dir != "" {
		patterns = append(patterns, filepath.Join(dir, "*.json.gz"))
	}
	var all []string
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		if err != nil || len(files) == 0 {
			t.Fatalf("no sessions: %s (%v)", p, err)
		}
		all = append(all, files...)
	}
	return all
}

// A report has the needed part of the program's.
type report struct {
	Acted  bool
	Tokens struct{ Before, After int }
}

// condense runs the program and returns what it wrote. The encoding is named, so that the tokens are those of the file alone.
func condense(t *testing.T, program, session, format string, window int) ([]byte, report) {
	t.Helper()
	session, err := filepath.Abs(session)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // no configuration is in or above it
	cmd := exec.CommandContext(t.Context(), program, "run", session, "--to", format,
		"--window", strconv.Itoa(window), "--max-output", "1", "--tokenizer", "o200k_base", "--quiet", "-o", "out.json", "--report", "report.json")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir)
	const nothingToDo = 3 // the output is written anyway
	if out, err := cmd.CombinedOutput(); err != nil && cmd.ProcessState.ExitCode() != nothingToDo {
		t.Fatalf("condense run: %v\n%s", err, out)
	}
	var r report
	if err := json.Unmarshal(read(t, dir, "report.json"), &r); err != nil {
		t.Fatal(err)
	}
	return read(t, dir, "out.json"), r
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestNoticed shows that TestRun can fail: for a field that an SDK does not know, and for a
// conversation that the vendor would reject.
func TestNoticed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, vendor, messages, want string }{
		{"valid", "anthropic", `[{"role":"user","content":"Hello."}]`, ""},
		{"valid", "openai", `[{"role":"user","content":"Hello."}]`, ""},
		{"unknown field", "anthropic", `[{"role":"user","content":"Hello.","ts":17}]`, `"ts"`},
		{"unknown field", "openai", `[{"role":"user","content":"Hello.","ts":17}]`, `"ts"`},
		{"unknown block", "anthropic", `[{"role":"user","content":[{"type":"poem","lines":3}]}]`, "messages[0]: "},
		{"unknown part", "openai", `[{"role":"user","content":[{"type":"poem","lines":3}]}]`, "messages[0]: "},
		{"result without a call", "anthropic", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"b"}]}]`, "tool-pair"},
		{"result without a call", "openai", `[{"role":"user","content":"Hello."},{"role":"tool","tool_call_id":"a","content":"b"}]`, "tool-pair"},
	} {
		t.Run(tt.vendor+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			for _, v := range vendors {
				if v.name != tt.vendor {
					continue
				}
				got := v.fault(t, []byte(tt.messages))
				if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
					t.Errorf("got %q, want something with %q", got, tt.want)
				}
			}
		})
	}
}

// accepts checks that the vendor's SDK takes the conversation out, loses nothing of it, and
// sends a request that the vendor would accept.
func (v *vendor) accepts(t *testing.T, out []byte) {
	t.Helper()
	if fault := v.fault(t, out); fault != "" {
		t.Errorf("%s: %.4000s", v.name, fault)
	}
}

// fault says why the conversation out is not accepted; empty if it is.
func (v *vendor) fault(t *testing.T, out []byte) string {
	t.Helper()
	request := v.request(t, out)
	sent, err := v.send(t, request)
	if err != nil {
		return err.Error()
	}
	if diff := cmp.Diff(v.plain(t, request), v.plain(t, sent)); diff != "" {
		return "the SDK does not send what was written (-written +sent):\n" + diff
	}
	return ""
}

// request returns out, an array of messages or an object with messages, as a whole request.
func (v *vendor) request(t *testing.T, out []byte) []byte {
	t.Helper()
	fields := map[string]json.RawMessage{}
	if bytes.HasPrefix(bytes.TrimSpace(out), []byte("[")) {
		fields["messages"] = out
	} else if err := json.Unmarshal(out, &fields); err != nil {
		t.Fatalf("%s: %v", v.name, err)
	}
	for k, value := range v.required {
		fields[k] = json.RawMessage(value)
	}
	request, err := json.Marshal(fields)
	if err != nil {
		t.Fatalf("%s: %v", v.name, err)
	}
	return request
}
