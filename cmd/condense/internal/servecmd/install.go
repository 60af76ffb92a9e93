package servecmd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/settings"
	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/plain"
)

// An installation records the changes of an agent's settings file until they are removed.
type installation struct {
	Agent   string            `json:"agent"`
	File    string            `json:"file"`
	Format  string            `json:"format"`
	URL     string            `json:"url"` // of the gateway
	Changes []settings.Change `json:"changes"`
	// After is the checksum of the file with the changes. As long as it matches, Before, the file without them, is
	// restored exactly.
	After   string `json:"after"`
	Before  []byte `json:"-"`
	Created bool   `json:"created,omitempty"` // there was no file
	// The files of --skill and --status.
	Skill  *placed   `json:"skill,omitempty"`
	Status []*placed `json:"status,omitempty"`

	dir string
}

// stateDir is where installations are kept: not next to the settings, because agents read whole
// folders of them.
func stateDir(agent *agents.Agent) (string, error) {
	dir, err := disk.StateDir()
	return filepath.Join(dir, "agents", agent.Name), err
}

const (
	recordFile = "installed.json"
	beforeFile = "before"
)

// installed returns the installation for an agent; nil if there is none.
func installed(agent *agents.Agent) (*installation, error) {
	dir, err := stateDir(agent)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // documented
	}
	if err != nil {
		return nil, err
	}
	in := &installation{dir: dir}
	if err := json.Unmarshal(data, in); err != nil {
		return nil, fmt.Errorf("%s: %w; the settings as they were are in %s", filepath.Join(dir, recordFile), err, filepath.Join(dir, beforeFile))
	}
	if in.Before, err = os.ReadFile(filepath.Join(dir, beforeFile)); err != nil && !in.Created {
		return nil, err
	}
	return in, nil
}

func (in *installation) save() error {
	if err := os.MkdirAll(in.dir, 0o700); err != nil {
		return err
	}
	data, err := json.MarshalIndent(in, "", "  ")
	if err != nil {
		return err
	}
	if err := disk.Put(filepath.Join(in.dir, beforeFile), in.dir, in.Before); err != nil {
		return err
	}
	return disk.Put(filepath.Join(in.dir, recordFile), in.dir, append(data, '\n'))
}

// An edit is a change of a settings file that was not written yet.
type edit struct {
	file          string
	output        *cli.File
	before, after []byte
	existed       bool
	replaced      []string // addresses that were there
	kept          []string // keys that the user has changed since
}

// userSettings returns the user's own settings file of an agent: the first that exists or, if none does,
// the last of the table.
func userSettings(agent *agents.Agent) (*Settings, string, error) {
	var own *Settings
	file := ""
	for i := range pointOf(agent).Settings {
		s := &pointOf(agent).Settings[i]
		if !strings.HasPrefix(s.Path, "~/") {
			continue
		}
		for _, path := range paths(s) {
			own, file = s, path
			if _, err := os.Stat(path); err == nil {
				return own, file, nil
			}
		}
	}
	if own == nil {
		return nil, "", fmt.Errorf("%s has no settings file that condense knows; use 'condense wrap', or set the address by hand", agent.Title)
	}
	return own, file, nil
}

func openEdit(file string) (*edit, error) {
	e := &edit{file: file}
	var err error
	e.before, err = readSettings(file)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	e.existed = true
	if e.output, err = cli.OpenFile(file, 0o600); err != nil {
		return nil, err
	}
	// Read again: the result is checked against the file as it was when it was opened.
	e.before, err = readSettings(file)
	return e, err
}

// write writes the file; an edit without a file after it removes it.
func (e *edit) write() error {
	if e.after == nil {
		return os.Remove(e.file)
	}
	if e.output != nil {
		return e.output.Write(e.after)
	}
	if err := os.MkdirAll(filepath.Dir(e.file), 0o700); err != nil {
		return err
	}
	return cli.WriteFile(e.file, e.after, cli.PrivateMode)
}

// planInstall returns the edit that points an agent at the gateway, and the record of it. Program prints the status line, and old is the
// current installation; nil for none.
func planInstall(agent *agents.Agent, base string, program []string, old *installation) (*edit, *installation, error) {
	s, file, err := userSettings(agent)
	if err != nil {
		return nil, nil, err
	}
	if old != nil && old.File != file {
		return nil, nil, fmt.Errorf("it is installed in %s, and %s reads %s now: run 'condense agent remove %s' first", old.File, agent.Title, file, agent.Name)
	}
	e, err := openEdit(file)
	if err != nil {
		return nil, nil, err
	}
	fault := func(err error) error { return fmt.Errorf("%s: %w; nothing was changed", file, err) }
	if p := pointOf(agent).Provider; p != nil {
		name, ok, err := settings.Get(s.Format, e.before, p.Choice)
		if err == nil && ok && name != p.Builtin {
			return nil, nil, fault(fmt.Errorf("%s is %q: set %s of [%s.%s] to %s/v1 by hand, and its address now as upstream of the gateway (serve.upstreams.%s)",
				p.Choice, name, p.Address, p.Table, name, base, p.API))
		}
	}
	dir, err := stateDir(agent)
	if err != nil {
		return nil, nil, err
	}
	in := &installation{Agent: agent.Name, File: file, Format: s.Format, URL: base, Before: e.before, Created: !e.existed, dir: dir}
	if old != nil {
		in.Skill, in.Status = old.Skill, old.Status
	}
	start := e.before
	untouched := old != nil && old.After == sum(e.before)
	if untouched {
		start, in.Before, in.Created = old.Before, old.Before, old.Created
	}
	fill := strings.NewReplacer("{base}", base, "{openai}", base+"/v1", "{anthropic/v1}", base+"/v1", "{status}", shellLine(program)).Replace
	e.after = start
	keys := s.Keys
	if strings.Contains(base, recallPath) {
		keys = slices.Concat(keys, s.Recall)
	}
	if program != nil {
		keys = slices.Concat(keys, pointOf(agent).Status)
	}
	for _, k := range keys {
		if k.Within && !settings.Parse(s.Format, e.after).Has(k.Path[:len(k.Path)-1]...) {
			continue
		}
		value, had, err := settings.Get(s.Format, e.after, k.Path...)
		if err != nil {
			return nil, nil, fault(err)
		}
		ours := slices.ContainsFunc(changes(old), func(c settings.Change) bool { return c.New == value && slices.Equal(c.Path, k.Path) })
		if had && !ours && value != fill(k.Value) && k.API != "" {
			e.replaced = append(e.replaced, value)
		}
		var c settings.Change
		if e.after, c, err = settings.Set(s.Format, e.after, fill(k.Value), k.Path...); err != nil {
			return nil, nil, fault(err)
		}
		if !untouched { // the value before is the user's, not an installed one
			for _, o := range changes(old) {
				if ours && slices.Equal(o.Path, c.Path) {
					c.Old, c.Made = o.Old, o.Made
				}
			}
		}
		in.Changes = append(in.Changes, c)
	}
	if len(in.Changes) == 0 {
		return nil, nil, fmt.Errorf("%s has none of the providers that condense serves: choose one in %s first", file, agent.Title)
	}
	in.After = sum(e.after)
	if old != nil && !untouched {
		in.Before, in.After = old.Before, "" // only the values can be undone
		in.Created = old.Created
	}
	return e, in, nil
}

func changes(in *installation) []settings.Change {
	if in == nil {
		return nil
	}
	return in.Changes
}

// planRemove returns the edit that undoes an installation.
func planRemove(in *installation) (*edit, error) {
	e, err := openEdit(in.File)
	if err != nil || !e.existed {
		return e, err
	}
	if sum(e.before) == in.After {
		if !in.Created {
			e.after = in.Before
		}
		return e, nil
	}
	e.after = e.before
	for _, c := range slices.Backward(in.Changes) {
		var done bool
		if e.after, done, err = settings.Undo(in.Format, e.after, c); err != nil {
			return nil, fmt.Errorf("%s: %w; repair it, or undo it by hand: the file as it was is %s", in.File, err, filepath.Join(in.dir, beforeFile))
		}
		if !done {
			e.kept = append(e.kept, strings.Join(c.Path, "."))
		}
	}
	return e, nil
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// around is how many unchanged lines a difference shows on each side.
const around = 2

// difference shows the lines in which two texts differ. All changes of an edit are near each
// other, so that it is one piece.
func difference(before, after []byte) string {
	a, b := lines(before), lines(after)
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var out strings.Builder
	put := func(sign string, part []string) {
		for _, line := range part {
			fmt.Fprintf(&out, "%s %s\n", sign, line)
		}
	}
	put(" ", a[max(0, start-around):start])
	put("-", a[start:len(a)-end])
	put("+", b[start:len(b)-end])
	put(" ", a[len(a)-end:min(len(a), len(a)-end+around)])
	return out.String()
}

func lines(text []byte) []string {
	return plain.Each(slices.Collect(bytes.Lines(text)), func(line []byte) string { return strings.TrimRight(string(line), "\r\n") })
}
