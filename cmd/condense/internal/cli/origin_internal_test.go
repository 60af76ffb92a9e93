package cli

import "testing"

// TestOrigin: the path says which package manager installed the program, if one did.
func TestOrigin(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/lib/node_modules/@condensehq/condense/node_modules/@condensehq/linux-x64/bin/condense": "npm",
		"/opt/homebrew/Cellar/condense/1.2.3/bin/condense":                                           "Homebrew",
		"/home/ann/Cellars/condense":                                                                 "a folder with its sources",
	} {
		if got := origin(path); got != want {
			t.Errorf("origin(%s): %q, want %q", path, got, want)
		}
	}
}
