// Package wasm runs a provider that is a module of WebAssembly, in a process of its own that serves the protocol of plugins: a child
// of the program, started by package supervise like any plugin. Programs that embed condense have it if they import
// plugin-sdk/host/wasm.
package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/hashicorp/go-plugin"

	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/wire"
)

// Run serves the module in the file args[1] to the host that started this process, and returns the exit code. Args[0] is the
// SHA-256 of the file, and args[2] a folder for compiled modules, or empty; the others are for whoever looks at the list of processes.
func Run(args []string) int {
	stderr := os.Stderr // go-plugin replaces it
	if os.Getenv(wire.EnvExitWithStdin) == "1" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0) //nolint:forbidigo // the host is gone
		}()
	}
	ctx := context.Background()
	g, err := load(ctx, args[0], args[1], args[2], stderr)
	if err != nil {
		fmt.Fprintln(stderr, strings.ReplaceAll(err.Error(), "\n", "; ")) // the host shows a few lines
		return supervise.ExitData
	}
	plugin.Serve(wire.ServeConfig(&wire.Relay{Guest: g, SDK: machine()}, stderr))
	return 0
}

// load compiles the file, if it has the right checksum.
func load(ctx context.Context, sum, path, cacheDir string, stderr io.Writer) (*guest, error) {
	binary, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if is := sha256.Sum256(binary); hex.EncodeToString(is[:]) != sum {
		return nil, fmt.Errorf("%s is not the file that was checked", path)
	}
	cache, err := cacheFor(cacheDir, sum)
	if err != nil {
		fmt.Fprintf(stderr, "the module is compiled each time: %v\n", err)
	}
	m, err := compile(ctx, binary, cache)
	if err != nil {
		return nil, err
	}
	return &guest{module: m, out: stderr}, nil
}

// unusedFor is how long the compiled form of a module that is not run stays.
const unusedFor = 30 * 24 * time.Hour

// cacheFor returns the folder for the compiled form of a module, and removes folders that were not used for [unusedFor]. The
// host executes its files, so nobody else may be able to write to it.
func cacheFor(dir, sum string) (string, error) {
	if dir == "" {
		return "", nil
	}
	mine := filepath.Join(dir, sum)
	if err := os.MkdirAll(mine, 0o700); err != nil {
		return "", err
	}
	for _, d := range []string{dir, mine} {
		info, err := os.Lstat(d)
		if err != nil {
			return "", err
		}
		if !info.IsDir() || filepath.Separator != '\\' && info.Mode().Perm()&0o077 != 0 {
			return "", fmt.Errorf("others may write to %s (%s): chmod 700 or remove it", d, info.Mode())
		}
	}
	now := time.Now()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && now.Sub(info.ModTime()) > unusedFor {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	return mine, os.Chtimes(mine, now, now)
}

// machine names the runtime with its version.
func machine() string {
	const wazero = "github.com/tetratelabs/wazero"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == wazero {
				return "condense-wasm, wazero " + m.Version
			}
		}
	}
	return "condense-wasm, wazero"
}
