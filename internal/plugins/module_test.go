package plugins_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/plugins"
)

// TestSandbox: what a module asks for is read from its imports, and no bytes make that fail badly.
func TestSandbox(t *testing.T) {
	const head = "\x00asm\x01\x00\x00\x00"
	const types = "\x01\x05\x01\x60\x00\x01\x7e"
	clock := head + types + "\x02\x12\x01\x08condense\x05clock\x00\x00"
	other := head + types + "\x02\x10\x01\x08condense\x03log\x00\x00"
	file := filepath.Join(t.TempDir(), "a.wasm")
	sandbox := func(data string) string {
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		s, ok := plugins.Sandbox(file)
		if !ok {
			t.Errorf("%s is no module", file)
		}
		return s
	}
	for data, want := range map[string]string{
		clock:               "no files, no network and no environment, and knows the time",
		other:               "no files, no network, no environment and no clock",
		head:                "no clock",
		"#!/bin/sh\n":       "cannot run: ",
		clock[:len(head)+9]: "cannot run: ",
		clock + "\x0a\x05":  "cut off or damaged",
	} {
		if got := sandbox(data); !strings.Contains(got, want) {
			t.Errorf("%q: got %q; want %q", data, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, len(clock)-1).Draw(t, "at")
		data := []byte(clock)
		data[at] = rapid.Byte().Draw(t, "byte")
		sandbox(string(data[:rapid.IntRange(0, len(data)).Draw(t, "length")]))
	})
	if _, ok := plugins.Sandbox("a"); ok {
		t.Error("a program passes for a module")
	}
}

// TestModulesNeedAProgram: a program that has not called Init says what to do.
func TestModulesNeedAProgram(t *testing.T) {
	trial := plugins.Trial{Plugin: config.Provider{Name: "acme", Plugin: "/a.wasm"}}
	_, err := trial.Open()
	const want = "plugin acme: /a.wasm is a module of WebAssembly, and this program runs none: call Init of plugin-sdk/host/wasm first in main, " +
		"or host.ModulesBy with an installed condense"
	if err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
}
