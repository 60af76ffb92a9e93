package live_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// TestFolders: providers may read files in a folder that the agent names, if the gateway was told so, and nowhere else.
func TestFolders(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	shop, other := filepath.Join(home, "src", "shop"), filepath.Join(home, "other")
	for _, dir := range []string{shop, other} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, filepath.Join(home, "src", "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		system string
		source string
		folder string
		want   string
	}{
		{name: "nothing is allowed", system: "Primary working directory: " + shop},
		{name: "allowed", system: "Primary working directory: " + shop, source: filepath.Dir(shop), want: shop},
		{name: "elsewhere", system: "Primary working directory: " + other, source: filepath.Dir(shop)},
		{name: "a link out of it", system: "Primary working directory: " + filepath.Join(home, "src", "link"), source: filepath.Dir(shop)},
		{name: "up and out", system: "Primary working directory: " + filepath.Join(shop, "..", "..", "other"), source: filepath.Dir(shop)},
		{name: "not named", system: "Be brief.", source: shop},
		{name: "under wrap", system: "Be brief.", folder: shop, want: shop},
		{name: "elsewhere under wrap", system: "Primary working directory: " + other, folder: shop},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var dirs []string
			do := func(_ context.Context, r *core.Request) (*core.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				dirs = append(dirs, r.Dir)
				return keepEnds(r), nil
			}
			c := claudeCode()
			c.System = tt.system
			p := &play{vendor: upstream.New(upstream.Options{Window: window, Script: agentLoop}), client: &c}
			p.serve(t, faulty(do), func(o *live.Options) { o.Source, o.Folder = tt.source, tt.folder })
			p.client.History = []object{first(p.client.API, task)}
			p.untilEpoch(t, 1)
			mu.Lock()
			defer mu.Unlock()
			if !slices.Contains(dirs, tt.want) || slices.ContainsFunc(dirs, func(d string) bool { return d != tt.want }) {
				t.Errorf("the folder is %q, want %q", dirs, tt.want)
			}
		})
	}
}
