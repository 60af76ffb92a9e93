// Package sessions reads recorded sessions for training and for measuring, and leaves some
// out of what is learned from, so that they can be judged alone.
package sessions

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/score"
)

// Load reads the sessions of a folder, in the order of the names of their files, and
// measures them by c.
func Load(dir string, c core.Counter) ([]*score.Session, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json.gz"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no *.json.gz in %q: say with -traces or CONDENSE_TRACES_DIR where sessions are", dir)
	}
	out := make([]*score.Session, len(files))
	for i, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		out[i], err = lab.ReadSession(f, name, c)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
