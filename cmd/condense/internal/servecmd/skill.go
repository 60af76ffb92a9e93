package servecmd

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/live/agents"
)

// skillText tells an agent's model how to use handles, in the form of skills that agents share (https://agentskills.io).
//
//go:embed skill.md
var skillText []byte

// A placed file is one that agent install writes as a whole.
type placed struct {
	File string `json:"file"`
	// Folders did not exist before, the innermost first.
	Folders []string `json:"folders,omitempty"`
	Sum     string   `json:"sum,omitempty"` // checksum of the text; empty in older records, which have only the skill

	text []byte // to write; nil if it is there
}

// same reports whether the file has the text that was written.
func (p *placed) same(text []byte) bool { return sum(text) == cmp.Or(p.Sum, sum(skillText)) }

// placeSkill returns the skill for an agent, which is not written yet.
func placeSkill(agent *agents.Agent, old *installation) (*placed, error) {
	folder := pointOf(agent).Skills
	if folder == nil {
		return nil, fmt.Errorf("condense knows no folder of skills of %s: install it without --skill", agent.Title)
	}
	return place(folder, filepath.Join("condense", "SKILL.md"), skillText, old, "--skill")
}

// placeStatus returns the files with which an agent shows the status line of a program; none if its settings do that.
func placeStatus(agent *agents.Agent, program []string, old *installation) (all []*placed, err error) {
	p := pointOf(agent)
	own, err := json.Marshal(program)
	if p.Meter == nil && p.Status == nil {
		return nil, fmt.Errorf("%s cannot show a line: install it without --status", agent.Title)
	}
	for i := 0; p.Meter != nil && i < len(p.Meter.Files) && err == nil; i++ {
		one := &p.Meter.Files[i]
		text := strings.Replace(cmp.Or(one.Text, p.Meter.Plugin), `["condense", "statusline"]`, string(own), 1)
		var f *placed
		f, err = place(one, "", []byte(strings.Replace(text, "{hook}", hookCommand(program), 1)), old, "--status")
		all = append(all, f)
	}
	return all, err
}

// place returns a file below a path, which is not written yet. A file there that condense has not written is an error.
func place(at *Settings, below string, text []byte, old *installation, flag string) (*placed, error) {
	found := paths(at)
	if len(found) == 0 {
		return nil, errors.New("there is no home folder")
	}
	p := &placed{File: filepath.Join(found[0], below), Sum: sum(text), text: text}
	known := slices.IndexFunc(filesOf(old), func(o *placed) bool { return o.File == p.File })
	switch now, err := os.ReadFile(p.File); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case known < 0:
		return nil, fmt.Errorf("%s exists and is not from condense: move it away, or install without %s; nothing was changed", p.File, flag)
	case !filesOf(old)[known].same(now):
		return nil, fmt.Errorf("%s was changed since condense wrote it: move it away; nothing was changed", p.File)
	case sum(now) == p.Sum:
		p.text = nil
	}
	if known >= 0 {
		p.Folders = filesOf(old)[known].Folders
		return p, nil
	}
	for dir := filepath.Dir(p.File); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		p.Folders = append(p.Folders, dir)
	}
	return p, nil
}

// filesOf are the files that an installation, which may be nil, has placed.
func filesOf(in *installation) []*placed {
	if in == nil {
		return nil
	}
	return slices.DeleteFunc(append([]*placed{in.Skill}, in.Status...), func(p *placed) bool { return p == nil })
}

func (p *placed) write() error {
	dir := filepath.Dir(p.File)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // like the agent's own
		return err
	}
	return disk.Put(p.File, dir, p.text)
}

// remove removes the file and the folders that it needed, unless something else is in them. It reports whether the
// file was changed since and remains.
func (p *placed) remove() (kept bool, err error) {
	text, err := os.ReadFile(p.File)
	if err == nil && !p.same(text) {
		return true, nil
	}
	if err == nil {
		err = os.Remove(p.File)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, dir := range p.Folders {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break // the user has other files there
		}
	}
	return false, nil
}
