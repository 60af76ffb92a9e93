package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// release is the form of a version that can be downloaded, unlike that of a build from a
// checkout: (devel), v0.0.0-20260102150405-0123456789ab, v1.2.3+dirty.
var release = regexp.MustCompile(`^v(?:[1-9]\d*\.\d+\.\d+|0\.\d*[1-9]\d*\.\d+|0\.0\.[1-9]\d*)(?:-(?:alpha|beta|rc)\.?\d+)?$`)

// require decides which condense a plugin in Go is built with: the checkout replace if one
// is named, else the release that this program is, else a checkout that can be found.
func (n *naming) require(version, replace string) error {
	if replace != "" {
		dir, err := filepath.Abs(replace)
		if err != nil {
			return fmt.Errorf("--replace: %w", err)
		}
		if !isCheckout(dir) {
			return fmt.Errorf("--replace: %s is not a checkout of condense: it has no go.mod with %q", replace, moduleLine)
		}
		n.Replace = quoteModule(dir)
		return nil
	}
	if release.MatchString(version) {
		n.Version = version
		return nil
	}
	if dir, ok := findCheckout(); ok {
		n.Replace = quoteModule(dir)
		return nil
	}
	return errors.New("this program was not built from a release of condense, and no checkout was found: name one with --replace")
}

const moduleLine = "module github.com/condensehq/condense"

func isCheckout(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	first, _, _ := strings.Cut(string(data), "\n")
	return err == nil && strings.TrimSpace(first) == moduleLine
}

// findCheckout returns the checkout that the working folder is in, or that this program
// was built from.
func findCheckout() (string, bool) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	// The path of a source file is that of the machine of the build, and relative if the
	// build trimmed it.
	if _, source, _, ok := runtime.Caller(0); ok && filepath.IsAbs(source) {
		starts = append(starts, filepath.Dir(source))
	}
	for _, dir := range starts {
		for {
			if isCheckout(dir) {
				return dir, true
			}
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return "", false
}

// quoteModule returns a path as go.mod takes it.
func quoteModule(path string) string {
	if strings.ContainsAny(path, " \t\"'`(),;\\") || strings.Contains(path, "//") {
		return fmt.Sprintf("%q", path)
	}
	return path
}
