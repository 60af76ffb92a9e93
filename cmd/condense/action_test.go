package main_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/condensehq/condense/internal/testkit"
)

// An action is a composite action of GitHub, as far as ours uses its format: any other key is an error.
type action struct {
	Name, Description string
	Inputs            map[string]struct {
		Description, Default string
		Required             bool
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []struct {
			Name, ID, Shell, Run string
			Env                  map[string]string
		}
	}
}

// A repository in CI: its folder, and what the action is told.
type inCI struct {
	action *action
	dir    string
	inputs map[string]string
}

var expression = regexp.MustCompile(`\$\{\{ *([^}]*?) *\}\}`)

// run runs the steps of the action and returns what they print, and their outputs.
func (c *inCI) run(t *testing.T) (text, outputs string, code int) {
	t.Helper()
	temp := t.TempDir()
	file := func(name string) string { return filepath.Join(temp, name) }
	env := append(os.Environ(), "RUNNER_TEMP="+temp, "GITHUB_PATH="+file("path"), "GITHUB_OUTPUT="+file("output"),
		"HOME="+temp, "XDG_CONFIG_HOME="+temp, "GIT_CONFIG_NOSYSTEM=1")
	for _, name := range []string{"path", "output"} {
		if err := os.WriteFile(file(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var all bytes.Buffer
	for _, s := range c.action.Runs.Steps {
		path, err := os.ReadFile(file("path"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), s.Shell, "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
		cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &all, &all
		cmd.Env = append(slices.Clone(env), "PATH="+strings.TrimSpace(string(path))+string(os.PathListSeparator)+os.Getenv("PATH"))
		for name, value := range s.Env {
			input := strings.TrimPrefix(expression.FindStringSubmatch(value)[1], "inputs.")
			given, ok := c.inputs[input]
			if !ok {
				given = expression.ReplaceAllString(c.action.Inputs[input].Default, "")
			}
			cmd.Env = append(cmd.Env, name+"="+given)
		}
		if err := cmd.Run(); err != nil {
			exit := new(exec.ExitError)
			if !errors.As(err, &exit) {
				t.Fatal(err)
			}
			code = exit.ExitCode()
			break
		}
	}
	out, err := os.ReadFile(file("output"))
	if err != nil {
		t.Fatal(err)
	}
	return all.String(), string(out), code
}

// write replaces files of the repository, and commits them.
func (c *inCI) write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(c.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	c.git(t, "add", "--all")
	c.git(t, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "a change")
}

func (c *inCI) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", c.dir}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// release makes a folder of releases with one, whose program is the one of these tests, and returns its address.
func release(t *testing.T, version, sum string) string {
	t.Helper()
	program, err := exec.LookPath("condense")
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %q \"$@\"\n", program)
	var archive bytes.Buffer
	packed := gzip.NewWriter(&archive)
	w := tar.NewWriter(packed)
	err = w.WriteHeader(&tar.Header{Name: "condense", Mode: 0o755, Size: int64(len(script))})
	if err == nil {
		_, err = w.Write([]byte(script))
	}
	if err = errors.Join(err, w.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	if sum == "" {
		sum = fmt.Sprintf("%x", sha256.Sum256(archive.Bytes()))
	}
	name := fmt.Sprintf("condense_%s_%s_%s.tar.gz", version, runtime.GOOS, runtime.GOARCH)
	dir := t.TempDir()
	at := filepath.Join(dir, "v"+version)
	err = errors.Join(os.Mkdir(at, 0o700), os.WriteFile(filepath.Join(at, name), archive.Bytes(), 0o600),
		os.WriteFile(filepath.Join(at, "checksums.txt"), []byte("0000  other.tar.gz\n"+sum+"  "+name+"\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return "file://" + filepath.ToSlash(dir)
}

// The action for CI installs only the release that was meant, fails for an invalid configuration and for one that breaks the policy of the
// base, and says whether a change does something else.
func TestAction(t *testing.T) {
	testkit.Process(t)
	for _, program := range []string{"bash", "git", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	text, err := os.ReadFile("../../deploy/action/action.yml")
	if err != nil {
		t.Fatal(err)
	}
	a := new(action)
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(a); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, s := range a.Runs.Steps {
		if expression.MatchString(s.Run) || s.Shell != "bash" || a.Runs.Using != "composite" {
			t.Errorf("%s: an input in the text of a program could be one itself, or no shell is named", s.Name)
		}
		for _, value := range s.Env {
			used["${{ inputs."+strings.TrimPrefix(expression.FindStringSubmatch(value)[1], "inputs.")+" }}"] = true
		}
	}
	for name, in := range a.Inputs {
		if in.Description == "" || !used["${{ inputs."+name+" }}"] {
			t.Errorf("input %s has no description, or no step has it", name)
		}
	}
	c := &inCI{action: a, dir: t.TempDir(), inputs: map[string]string{"version": "v1.2.3", "releases": release(t, "1.2.3", "")}}
	c.git(t, "init", "--quiet")
	c.write(t, map[string]string{"a b/condense.yaml": "threshold: 60\n", "ci/policy.yaml": "max_threshold: 70\n"})
	base := c.git(t, "rev-parse", "HEAD")
	steps := []struct {
		name          string
		files, inputs map[string]string
		code          int
		text, outputs string
	}{
		{"no base", nil, nil, 0, "a b/condense.yaml: OK", ""},
		{"nothing changed", nil, map[string]string{"base": base}, 0, "OK", "changed=false\n"},
		{"a comment", map[string]string{"a b/condense.yaml": "# ours\nthreshold: 60\n"}, map[string]string{"base": base}, 0, "OK", "changed=false\n"},
		{"a number", map[string]string{"a b/condense.yaml": "threshold: 65\n"}, map[string]string{"base": base, "policy": "ci/policy.yaml"}, 0, "threshold  60 %", "changed=true\n"},
		{"a new file", map[string]string{"c/condense.json": "{}"}, map[string]string{"base": base, "paths": "c\na b"}, 0, "c/condense.json is new or gone", "changed=true\n"},
		{
			"a policy that lifts itself",
			map[string]string{"ci/policy.yaml": "max_threshold: 95\n", "a b/condense.yaml": "threshold: 90\n"},
			map[string]string{"base": base, "policy": "ci/policy.yaml"},
			2, "threshold: 90 % is not allowed by the policy", "",
		},
		{"without a policy", nil, map[string]string{"base": base}, 0, "OK", "changed=true\n"},
		{"a warning", map[string]string{"a b/condense.yaml": "providers: {x: {strategy: smart}}\n"}, map[string]string{"base": base}, 2, "no chain names this provider", ""},
		{"an invalid one", map[string]string{"a b/condense.yaml": "threshold: 600\n"}, map[string]string{"base": base}, 2, "must be a percentage", ""},
		{"another pinned release", nil, map[string]string{"sha256": strings.Repeat("0", 64)}, 1, "has the checksum", ""},
		{"a damaged release", nil, map[string]string{"releases": release(t, "1.2.3", strings.Repeat("1", 64))}, 1, "has the checksum", ""},
		{"a release that is not there", nil, map[string]string{"version": "9.9.9"}, 1, "", ""},
	}
	for _, s := range steps {
		if s.files != nil {
			c.write(t, s.files)
		}
		one := &inCI{action: a, dir: c.dir, inputs: maps.Clone(c.inputs)}
		maps.Copy(one.inputs, s.inputs)
		text, outputs, code := one.run(t)
		if code != s.code || !strings.Contains(text, s.text) || outputs != s.outputs {
			t.Errorf("%s: exit code %d, outputs %q\n%s", s.name, code, outputs, text)
		}
	}
	if left := c.git(t, "worktree", "list"); strings.Contains(left, "\n") {
		t.Errorf("worktrees are left: %s", left)
	}
}
