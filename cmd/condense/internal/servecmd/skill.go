package servecmd

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/live/agents"
)

// skillText tells an agent's model how to use handles, in the form of skills that agents share (https://agentskills.io).
//
//go:embed skill.md
var skillText []byte

// A skill is the file that tells an agent's model how to use handles.
type skill struct {
	File string `json:"file"`
	// Folders did not exist before, the innermost first.
	Folders []string `json:"folders,omitempty"`
}

// planSkill returns the skill for an agent, which is not written yet. A file that condense has not written is an error.
func planSkill(agent *agents.Agent, old *installation) (*skill, error) {
	folder := pointOf(agent).Skills
	if folder == nil {
		return nil, fmt.Errorf("condense knows no folder of skills of %s: install it without --skill", agent.Title)
	}
	found := paths(folder)
	if len(found) == 0 {
		return nil, errors.New("there is no home folder for the skill")
	}
	s := &skill{File: filepath.Join(found[0], "condense", "SKILL.md")}
	switch text, err := os.ReadFile(s.File); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case old == nil || old.Skill == nil || old.Skill.File != s.File:
		return nil, fmt.Errorf("%s exists and is not from condense: move it away, or install without --skill; nothing was changed", s.File)
	case string(text) != string(skillText):
		return nil, fmt.Errorf("%s was changed since condense wrote it: move it away; nothing was changed", s.File)
	}
	if old != nil && old.Skill != nil && old.Skill.File == s.File {
		s.Folders = old.Skill.Folders
		return s, nil
	}
	for dir := filepath.Dir(s.File); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		s.Folders = append(s.Folders, dir)
	}
	return s, nil
}

func (s *skill) write() error {
	dir := filepath.Dir(s.File)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // like the agent's own
		return err
	}
	return disk.Put(s.File, dir, skillText)
}

// remove removes the file and the folders that it needed, unless something else is in them. It reports whether the
// file was changed since and remains.
func (s *skill) remove() (kept bool, err error) {
	text, err := os.ReadFile(s.File)
	if err == nil && string(text) != string(skillText) {
		return true, nil
	}
	if err == nil {
		err = os.Remove(s.File)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, dir := range s.Folders {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break // the user has other files there
		}
	}
	return false, nil
}
