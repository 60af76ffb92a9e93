// Package trust stores the user's agreements, outside of all projects: which configuration files may start programs,
// name addresses and read keys, and which programs may run as plugins.
//
// A store is a folder of small files, one for each agreement, so that concurrent commands
// lose nothing. Only its user can read it.
package trust

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plain"
)

// A Kind is the subject of an agreement.
type Kind string

// The kinds of agreements.
const (
	// Config trusts the programs and models in a configuration file, Gateway its section serve: changing one does not
	// end the other. A file may have several agreements of a kind, one for each trusted content: branches are
	// switched.
	Config  Kind = "config"
	Gateway Kind = "gateway"
	// Plugin approves a program, PluginFolder a folder with a program and its files. Each
	// path has one agreement: the last.
	Plugin       Kind = "plugin"
	PluginFolder Kind = "plugin-folder"
	// Account lets a gateway ask an agent's model with the agent's key, for the program at a path; the digest is of
	// the value of serve.account.
	Account Kind = "account"
)

// An Entry is one agreement.
type Entry struct {
	Kind   Kind   `json:"kind"`
	Digest string `json:"sha256"` // 64 hexadecimal digits in lower case
	Path   string `json:"path"`   // absolute
	// Claims are the content of the configuration's digest, to show later changes; nil if unknown.
	Claims []Claim `json:"claims,omitempty"`
	// Time is when the user agreed. Add ignores it.
	Time time.Time `json:"-"`
}

// A Claim is a part of a configuration file that needs trust: a key, its value and its effect.
type Claim struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	Does  string `json:"does"`
}

// ConfigEntry returns the agreement to these parts of a configuration file.
func ConfigEntry(kind Kind, path string, claims []Claim) Entry {
	sum := sha256.Sum256(text(claims))
	return Entry{Kind: kind, Digest: hex.EncodeToString(sum[:]), Path: path, Claims: append([]Claim{}, claims...)}
}

// text returns the digested form of claims.
func text(claims []Claim) []byte {
	var b []byte
	for _, c := range claims {
		b = fmt.Appendf(b, "%q %q %q\n", c.Key, c.Value, c.Does)
	}
	return b
}

// claimsOf parses the output of text. False means that s is something else.
func claimsOf(s string) ([]Claim, bool) {
	claims := []Claim{}
	for s != "" {
		var c Claim
		for _, to := range []*string{&c.Key, &c.Value, &c.Does} {
			quoted, err := strconv.QuotedPrefix(s)
			if err != nil || len(s) == len(quoted) {
				return nil, false
			}
			if *to, err = strconv.Unquote(quoted); err != nil {
				return nil, false
			}
			s = s[len(quoted)+1:] // the space or the end of the line
		}
		claims = append(claims, c)
	}
	return claims, true
}

// A Store is a folder of agreements. The zero value has none and accepts none. It is safe
// for concurrent use, also by several processes.
type Store struct{ dir string }

// Open returns the store in a folder, which need not exist. An empty path means no store.
func Open(dir string) Store { return Store{dir} }

// RealPath returns the absolute path of a file without links, as far as it exists.
func RealPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return filepath.Clean(path)
}

// Trusts reports whether the user has agreed to a content of a configuration file.
func (s Store) Trusts(want Entry) (bool, error) {
	want.Path = RealPath(want.Path)
	e, err := s.read(s.file(want))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && e.Kind == want.Kind && e.Digest == want.Digest && e.Path == want.Path, err
}

// Of returns the agreements of a kind about a path, the newest first.
func (s Store) Of(kind Kind, path string) ([]Entry, error) {
	all, err := s.All()
	if err != nil {
		return nil, err
	}
	path = RealPath(path)
	all = slices.DeleteFunc(all, func(e Entry) bool { return e.Kind != kind || e.Path != path })
	slices.SortStableFunc(all, func(a, b Entry) int { return b.Time.Compare(a.Time) })
	return all, nil
}

// Pin returns the approved digest of a plugin's program or folder; empty if there is none.
func (s Store) Pin(path string, folder bool) (string, error) {
	want := Entry{Kind: pluginKind(folder), Path: RealPath(path)}
	e, err := s.read(s.file(want))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if e.Kind != want.Kind || e.Path != want.Path {
		return "", fmt.Errorf("%s: belongs to %s; remove the file and approve the plugin again", s.file(want), e.Path)
	}
	return e.Digest, nil
}

// SetPin approves a plugin's program or folder with this digest.
func (s Store) SetPin(path string, folder bool, digest string) error {
	return s.Add(PluginEntry(path, folder, digest))
}

// PluginEntry returns the approval of a plugin's program or folder with this digest.
func PluginEntry(path string, folder bool, digest string) Entry {
	return Entry{Kind: pluginKind(folder), Digest: strings.ToLower(digest), Path: path}
}

func pluginKind(folder bool) Kind {
	if folder {
		return PluginFolder
	}
	return Plugin
}

// Add stores an agreement.
func (s Store) Add(e Entry) error {
	if s.dir == "" {
		return errors.New("there is no folder to store it in: set HOME or XDG_CONFIG_HOME")
	}
	e.Path = RealPath(e.Path)
	if !digits().MatchString(e.Digest) {
		return fmt.Errorf("%q is not a digest of 64 hexadecimal digits", e.Digest)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	// The temporary file is outside of the folder, so that the folder's time changes once, when
	// the file is complete.
	return disk.Put(s.file(e), filepath.Dir(s.dir), append(fmt.Appendf(nil, "%s %s %s\n", e.Kind, e.Digest, strconv.Quote(e.Path)), text(e.Claims)...))
}

// Remove forgets every agreement about a path and returns them.
func (s Store) Remove(path string) ([]Entry, error) {
	all, err := s.All()
	if err != nil {
		return nil, err
	}
	path = RealPath(path)
	all = slices.DeleteFunc(all, func(e Entry) bool { return e.Path != path })
	for _, e := range all {
		if err := os.Remove(s.file(e)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return all, nil
}

// All returns every agreement, in order of path. Other files in the folder are an error.
func (s Store) All() ([]Entry, error) {
	if s.dir == "" {
		return nil, nil
	}
	files, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []Entry
	for _, f := range files {
		e, err := s.read(filepath.Join(s.dir, f.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed by another process
		}
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Digest, b.Digest))
	})
	return all, nil
}

// State identifies the content of the store: it changes with every agreement that is added, repeated or removed. The
// time of the folder alone would not do, because two changes can have the same.
func (s Store) State() string {
	if s.dir == "" {
		return ""
	}
	files, err := os.ReadDir(s.dir)
	b := fmt.Appendf(nil, "%v\n", err)
	for _, f := range files {
		b = fmt.Append(b, f.Name())
		if info, err := f.Info(); err == nil {
			b = fmt.Appendf(b, " %d %d\n", info.ModTime().UnixNano(), info.Size())
		}
	}
	return string(b)
}

// file returns where an agreement is kept.
func (s Store) file(e Entry) string {
	name := string(e.Kind) + "\x00" + e.Path
	if e.Kind == Config || e.Kind == Gateway || e.Kind == Account {
		name += "\x00" + e.Digest
	}
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16]))
}

var (
	digits = plain.Pattern(`^[0-9a-f]{64}$`)
	entry  = plain.Pattern(`^(config|gateway|plugin|plugin-folder|account) ([0-9a-f]{64}) (".*")\n`)
)

func (s Store) read(file string) (Entry, error) {
	if s.dir == "" {
		return Entry{}, fs.ErrNotExist
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return Entry{}, err
	}
	damaged := fmt.Errorf("%s: was not written by condense; remove the file and trust again", file)
	m := entry().FindStringSubmatch(string(content))
	if m == nil {
		return Entry{}, damaged
	}
	e := Entry{Kind: Kind(m[1]), Digest: m[2]}
	if e.Path, err = strconv.Unquote(m[3]); err != nil {
		return Entry{}, damaged
	}
	if info, err := os.Stat(file); err == nil {
		e.Time = info.ModTime()
	}
	rest := content[len(m[0]):]
	sum := sha256.Sum256(rest)
	known := hex.EncodeToString(sum[:]) == e.Digest
	switch claims, ok := claimsOf(string(rest)); {
	case known && ok:
		e.Claims = claims
	case len(rest) > 0:
		return Entry{}, damaged
	}
	return e, nil
}
