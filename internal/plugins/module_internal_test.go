package plugins

import (
	"testing"

	"github.com/condensehq/condense/config"
)

// TestCacheOfModules: a relative folder would be one in the folder of the plugin, whose author could put machine code there.
func TestCacheOfModules(t *testing.T) {
	for _, home := range []string{"HOME", "LocalAppData"} {
		t.Setenv(home, ".")
	}
	t.Setenv("XDG_CACHE_HOME", "")
	if got := base(config.Provider{Name: "acme", Plugin: "/a.wasm"}).Args; len(got) != 1 || got[0] != "" {
		t.Errorf("got %q; want no folder", got)
	}
}
