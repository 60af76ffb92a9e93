package plugins_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/trust"
	"github.com/condensehq/condense/internal/wire/caller"
)

// load returns a configuration with three plugins: a program, a folder with the same
// program, and one that the file pins. The user's folder is in dir.
func load(t *testing.T, dir string, trusted bool) *config.Config {
	t.Helper()
	file := filepath.Join(dir, "condense.yaml")
	for path, text := range map[string]string{
		filepath.Join(dir, "tool"): "#!/bin/sh\n",
		file: "providers:\n  one: {plugin: ./tool}\n  two: {plugin: ./tool, folder: .}\n" +
			"  three: {plugin: ./tool, sha256: " + strings.Repeat("ab", 32) + "}\n  half: {strategy: slidingwindow}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(config.Options{
		Path: file, Env: []string{"XDG_CONFIG_HOME=" + filepath.Join(dir, "home")},
		Trust: func(config.Claims) bool { return trusted },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDeclared: what approves a plugin is the user's approval of its program or folder, or
// the checksum in the file.
func TestDeclared(t *testing.T) {
	dir := t.TempDir()
	c := load(t, dir, true)
	sum := strings.Repeat("cd", 32)
	if err := trust.Open(c.TrustDir()).SetPin(dir, true, sum); err != nil {
		t.Fatal(err)
	}
	all, err := plugins.Declared(c)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range all {
		pin, err := plugins.Pin(c, p.Provider)
		if pin != p.Pin {
			t.Errorf("%s: Pin returns %q, Declared %q", p.Name, pin, p.Pin)
		}
		if (err == nil) != (p.Pin != "") {
			t.Errorf("%s: got error %v", p.Name, err)
		}
		got = append(got, fmt.Sprintf("%s %.4s %s", p.Name, p.Pin, p.By))
	}
	file := filepath.Join(dir, "condense.yaml")
	if s, want := strings.Join(got, "|"), "one  |three abab "+file+":4:35|two cdcd approved by you"; s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if _, err := plugins.Pin(c, all[0].Provider); err == nil || !strings.Contains(err.Error(), "run 'condense plugin pin one'") {
		t.Errorf("not pinned: got %v", err)
	}
}

// TestDeclaredWithoutTrust: a plugin that is withheld is listed with its program.
func TestDeclaredWithoutTrust(t *testing.T) {
	dir := t.TempDir()
	all, err := plugins.Declared(load(t, dir, false))
	if err != nil || len(all) != 3 {
		t.Fatalf("got %d plugins, %v", len(all), err)
	}
	for _, p := range all {
		if p.Withheld == "" || p.Plugin == "" {
			t.Errorf("%s: withheld %q, program %q", p.Name, p.Withheld, p.Plugin)
		}
	}
}

// TestBroken: a crash, a panic and a violation of the protocol are faults of the plugin, an
// error of its own is not.
func TestBroken(t *testing.T) {
	for err, want := range map[error]bool{
		errors.New("no"):    false,
		core.ErrUnavailable: false,
		fmt.Errorf("a: %w", &supervise.CrashError{}):        true,
		fmt.Errorf("a: %w", caller.ErrProtocol):             true,
		&caller.RemoteError{Code: codes.Internal}:           true,
		&caller.RemoteError{Code: codes.Unknown}:            true,
		&caller.RemoteError{Code: codes.FailedPrecondition}: false,
	} {
		if got := plugins.Broken(err); got != want {
			t.Errorf("%v: got %v", err, got)
		}
	}
}

// TestRunning: a plugin that runs already needs no approval, others do, and a value that is not the line of a plugin is an
// error that names the variable.
func TestRunning(t *testing.T) {
	c := load(t, t.TempDir(), true)
	p, err := c.Provider("one")
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		"":            "run 'condense plugin pin one'",
		`{"two": {}}`: "run 'condense plugin pin one'",
		`{"one": {}}`: "",
		"tidy":        "CONDENSE_REATTACH: ",
	} {
		sum, err := (&plugins.Runner{Reattach: value}).Approved(c, *p)
		if sum != "" || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got checksum %q, error %v; want %q", value, sum, err, want)
		}
	}
	// A policy demands a checksum, which a process has not.
	dir := t.TempDir()
	for name, text := range map[string]string{"policy.yaml": "plugins: {one: " + strings.Repeat("ab", 32) + "}", "condense.yaml": "providers: {one: {plugin: ./policy.yaml}}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c, err = config.Load(config.Options{Path: filepath.Join(dir, "condense.yaml"), Env: []string{"CONDENSE_POLICY=" + filepath.Join(dir, "policy.yaml")}})
	if err != nil {
		t.Fatal(err)
	}
	if p, err = c.Provider("one"); err != nil {
		t.Fatal(err)
	}
	if _, err := (&plugins.Runner{Reattach: `{"one": {}}`}).Approved(c, *p); err == nil || !strings.Contains(err.Error(), "a policy demands its checksum") {
		t.Errorf("got %v", err)
	}
}
