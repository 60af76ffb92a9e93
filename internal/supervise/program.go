package supervise

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A program is what runs: the bytes that were checked, held where nobody else can change
// them, so that no time passes between check and use. Where they are depends:
//
//   - on Linux a binary is copied into memory that is sealed against writing, and run from
//     there;
//   - a script, a tree, and everything on other systems is copied into the private folder.
//
// The copy is made while it is hashed, and serves every start until [program.close].
type program struct {
	path string   // what is executed
	dir  string   // the working directory: where the plugin is installed
	seal *os.File // holds sealed memory; else nil
	temp string   // in the private folder; else empty

	users int // guarded by the lock of the Process
}

// use and unuse count who needs p, which may be nil. unuse reports whether nobody does
// any more.
func (p *program) use() {
	if p != nil {
		p.users++
	}
}

func (p *program) unuse() bool {
	if p == nil {
		return false
	}
	p.users--
	return p.users == 0
}

// loadProgram reads and checks what s names, with copies in dir. It is in use once.
func loadProgram(s *Spec, dir *privateDir) (*program, error) {
	p := &program{dir: filepath.Dir(s.Path), users: 1}
	f, err := openProgram(s.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	var sum string
	if s.Tree != "" {
		sum, err = p.loadTree(s, dir)
	} else {
		sum, err = p.loadFile(s, f, dir)
	}
	if err == nil && s.SHA256 != "" && sum != s.SHA256 {
		err = &ChecksumError{Path: cmp.Or(s.Tree, s.Path), Want: s.SHA256, Got: sum}
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *program) loadTree(s *Spec, dir *privateDir) (string, error) {
	rel, err := filepath.Rel(s.Tree, s.Path)
	if err != nil {
		return "", err
	}
	if p.temp, err = dir.mkdir(); err != nil {
		return "", err
	}
	p.path = filepath.Join(p.temp, rel)
	p.dir = filepath.Dir(p.path)
	return copyTree(s.Tree, p.temp)
}

func (p *program) loadFile(s *Spec, f *os.File, dir *privateDir) (string, error) {
	// The interpreter of a script opens it by name, after the kernel has closed our file.
	script := make([]byte, 2)
	n, err := io.ReadFull(f, script)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	whole := io.MultiReader(bytes.NewReader(script[:n]), f)
	if string(script) != "#!" {
		mem, sum, err := sealed(whole)
		if err == nil {
			p.seal, p.path = mem, sealedPath(mem)
			return sum, nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return "", fmt.Errorf("%s: %w", s.Path, err)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		whole = f
	}
	if p.temp, err = dir.mkdir(); err != nil {
		return "", err
	}
	p.path = filepath.Join(p.temp, filepath.Base(s.Path))
	sum, err := copyTo(p.path, whole, 0o500)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Path, err)
	}
	return sum, nil
}

func (p *program) close() error {
	err := closeIf(p.seal)
	if p.temp != "" {
		err = errors.Join(err, removeAll(p.temp))
	}
	return err
}
