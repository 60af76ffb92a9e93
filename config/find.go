package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/tree"
)

// formats of files, by extension.
var formats = map[string]string{".yaml": "yaml", ".yml": "yaml", ".json": "json"}

// formerFormat is an extension that earlier versions read. Such a file is refused, not overlooked.
const formerFormat = ".toml"

// projectNames are the names of a project's file, in a folder from the working directory up to
// the root of its repository. userNames are the names in the user's configuration folder.
var (
	projectNames = []string{"condense.yaml", "condense.yml", "condense.toml", "condense.json"}
	userNames    = slices.Concat(projectNames, []string{"config.yaml", "config.yml", "config.toml", "config.json"})
)

// ProjectFiles returns the names that a project's file may have.
func ProjectFiles() []string { return slices.Clone(projectNames) }

// pathVariable names a file to read instead of looking for one.
const pathVariable = "CONDENSE_CONFIG"

// find returns the files to read: the one that the caller or CONDENSE_CONFIG names, or else
// the user's file and the project's.
func find(opts *Options, env environment) (files []string, errs Errors) {
	if named := opts.Path; named != "" {
		return []string{named}, nil
	}
	if named := env.get(pathVariable); named != "" {
		return []string{named}, nil
	}
	if dir := userDir(env); dir != "" {
		file, wrong := only(dir, userNames)
		if wrong != nil {
			errs = append(errs, wrong)
		} else if file != "" {
			files = append(files, file)
		}
	}
	for _, dir := range upward(opts.Dir) {
		file, wrong := only(dir, projectNames)
		if wrong != nil {
			return files, append(errs, wrong)
		}
		if file != "" {
			if !slices.ContainsFunc(files, func(f string) bool { return sameFile(f, file) }) {
				files = append(files, file)
			}
			break
		}
	}
	return files, errs
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// userDir is $XDG_CONFIG_HOME/condense or ~/.config/condense, on every system, since users of
// command lines look there on macOS too.
func userDir(env environment) string {
	if dir := env.get("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "condense")
	}
	home := env.get("HOME")
	home = cmp.Or(home, env.get("USERPROFILE"))
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".config", "condense")
}

// upward returns dir and the folders above it up to the root of the repository. Outside of a
// repository it returns dir alone: a file in /tmp or in a home directory is not a project's.
func upward(dir string) []string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	var dirs []string
	for d := dir; ; {
		dirs = append(dirs, d)
		if _, err := os.Stat(filepath.Join(d, ".git")); err == nil {
			return dirs
		}
		parent := filepath.Dir(d)
		if parent == d {
			return dirs[:1]
		}
		d = parent
	}
}

// only returns the file of dir that has one of the names, "" if there is none. Two such files
// are an error.
func only(dir string, names []string) (string, *Error) {
	var found []string
	for _, name := range names {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil { // also a folder or a device: disk.ReadFile refuses those
			if !slices.ContainsFunc(found, func(f string) bool { return sameFile(f, file) }) {
				found = append(found, file)
			}
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	shown := plain.Each(found, disk.FromHere)
	return "", &Error{
		Origin:  Origin{Kind: FromFile, File: shown[0]},
		Problem: "several configurations in one folder: " + strings.Join(shown, ", "), Allowed: "keep one of them",
	}
}

// readFile reads and checks one file, whose keys are the fields of a place.
func readFile(file string, opts *Options, of place) (*checker, Errors) {
	shown := disk.FromHere(file)
	at := func(p tree.Position) Origin {
		return Origin{Kind: FromFile, File: shown, Line: p.Line, Column: p.Column}
	}
	fail := func(p tree.Position, problem, allowed string) (*checker, Errors) {
		return nil, Errors{{Origin: at(p), Problem: problem, Allowed: allowed}}
	}
	ext := strings.ToLower(filepath.Ext(file))
	format, ok := formats[ext]
	switch {
	case ext == formerFormat:
		to := strings.TrimSuffix(shown, filepath.Ext(shown)) + ".yaml"
		return fail(tree.Position{}, "TOML is not read any more", fmt.Sprintf("convert it, as with 'yq -p toml -o yaml %s > %s', and remove it", shown, to))
	case !ok:
		return fail(tree.Position{}, "unknown format", "name the file .yaml or .json")
	}
	text, err := disk.ReadFile(file, tree.MaxFile)
	if err != nil {
		return fail(tree.Position{}, reason(err), "")
	}
	root, syntax := tree.Parse(format, text)
	if syntax != nil {
		return fail(syntax.At, syntax.Problem, "")
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		dir = filepath.Dir(file)
	}
	c := newChecker(opts, dir, at)
	c.check(root, of)
	return c, c.errs
}

// outside returns where a link leads that is a project's file and leads out of its repository or folder; empty for all other files. A
// repository's link must not show the text of the user's files.
func outside(file string, env environment) string {
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	dirs := upward(filepath.Dir(file))
	root, errRoot := filepath.EvalSymlinks(dirs[len(dirs)-1])
	target, err := filepath.EvalSymlinks(file)
	if err != nil || errRoot != nil || filepath.Dir(file) == userDir(env) || within(root, target) {
		return ""
	}
	return target
}

// unseen replaces the faults and warnings of files that are links out of their projects, by the names of the links: their texts quote the
// files.
func (e Errors) unseen(links map[string]string) Errors {
	var out Errors
	for _, err := range e {
		target, hidden := links[err.Origin.File]
		if !hidden {
			out = append(out, err)
		} else if !slices.ContainsFunc(out, func(o *Error) bool { return o.Origin.File == err.Origin.File }) {
			out = append(out, &Error{
				Origin: Origin{Kind: FromFile, File: err.Origin.File}, Problem: "is a link to " + target + ", outside of the project, whose faults are not shown here",
				Allowed: "check that file itself: condense config check " + target,
			})
		}
	}
	return out
}

// reason is err without the file's name, which the message has already.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "no such file"
	}
	return err.Error()
}
