package live

import (
	"path/filepath"
	"strings"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
)

// namedFolder matches the phrases with which agents name their working directory.
var namedFolder = plain.Pattern(`(?:[Ww]orking directory: |<cwd>)([^<\\"\n]+)`)

// namedIn returns the agent's working directory as the request names it; empty if it does not.
func namedIn(r *wire.Request) string {
	texts := [][]byte{r.System}
	for i := range min(maxMessage, len(r.Messages)) {
		texts = append(texts, r.Messages[i].Raw)
	}
	for _, text := range texts {
		if m := namedFolder().FindSubmatch(text[:min(len(text), maxRead)]); m != nil {
			return strings.TrimSpace(string(m[1]))
		}
	}
	return ""
}

// folder returns the folder in which providers may read the files that the agent has read: the folder named by the request
// if it is Source, Folder or below them, else Folder. It can be empty.
func (s *settings) folder(r *wire.Request) string {
	if s.Source == "" && s.Folder == "" {
		return ""
	}
	named := namedIn(r)
	if named == "" {
		return s.Folder
	}
	found, err := filepath.EvalSymlinks(named)
	if err != nil || !filepath.IsAbs(found) {
		return ""
	}
	for _, allowed := range []string{s.Folder, s.Source} {
		if allowed == "" {
			continue
		}
		if allowed, err = filepath.EvalSymlinks(allowed); err != nil {
			continue
		}
		if rel, err := filepath.Rel(allowed, found); err == nil && filepath.IsLocal(rel) {
			return found
		}
	}
	return ""
}
