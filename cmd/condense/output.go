package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/transcript"
)

// An output is where a command writes to. It is opened before the work is done, so that a
// wrong path costs nothing, and closed by the command.
type output struct {
	stdout io.Writer // or
	file   *disk.Output
	lock   *history.Lock // of the file that is replaced, if there is one
}

// newMode is that of a file that is made from no other one, before the umask.
const newMode fs.FileMode = 0o666

// privateMode is that of a new file with text of several sessions.
const privateMode fs.FileMode = 0o600

// output opens the file path for writing; "" and "-" are standard output. A new file is
// not more readable than like, the file that its content comes from.
func (a *app) output(path, like string) (*output, error) {
	if path == "" || path == "-" {
		return &output{stdout: a.stdout}, nil
	}
	file, err := disk.Open(path, a.modeOf(like))
	if err != nil {
		return nil, err
	}
	o := &output{file: file}
	if file.Old() != nil {
		// A journal that a running program writes to must not be replaced. Where files
		// cannot be locked none is open either.
		o.lock, err = history.Acquire(path)
		if errors.Is(err, history.ErrInUse) {
			return nil, inUse(path)
		}
	}
	return o, nil
}

func inUse(path string) error {
	return fmt.Errorf("%s: another program, such as a running agent, has it open for writing, and nothing was changed; end that program, or write to another file with -o: %w", path, history.ErrInUse)
}

// modeOf returns the permissions of the file that content comes from; "-" is standard input.
func (a *app) modeOf(path string) fs.FileMode {
	info, err := os.Stat(path)
	if f, ok := a.stdin.(*os.File); path == "-" && ok {
		info, err = f.Stat()
	}
	if path == "" || err != nil || !info.Mode().IsRegular() {
		return newMode
	}
	return info.Mode().Perm()
}

// write writes the whole of the output.
func (o *output) write(data []byte) error {
	if o.file == nil {
		return printData(o.stdout, data)
	}
	return o.file.Write(data)
}

func (o *output) close() {
	if o.lock != nil {
		_ = o.lock.Release() // the work is done; the system releases it in any case
		o.lock = nil
	}
}

// writeFile writes a file; mode is that of a new one, before the umask.
func writeFile(path string, data []byte, mode fs.FileMode) error {
	file, err := disk.Open(path, mode)
	if err != nil {
		return err
	}
	return file.Write(data)
}

// sameFile reports whether two paths are the same file, also by a link.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil || a == "-" || b == "-" {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// A rewriting is what a command reads, changes and writes.
type rewriting struct {
	in, out     string // files; "-" and "" are the standard ones
	format, to  string
	backup      bool
	keeps       map[string]bool // formats in which the change loses nothing
	lost        string          // what is lost in the others
	document    *transcript.Document
	destination *output
	journal     *history.File // that is changed in place; nil if a file is written
}

// formats that keep what a condensation takes out of sight, and what a rewind does.
var (
	recordCondensations = map[string]bool{"condense": true, "roo": true}
	recordRewinds       = map[string]bool{"condense": true}
)

func (r *rewriting) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.backup, "backup", false, "keep a file that is overwritten by itself as FILE.bak")
}

// open reads the document and opens what it will be written to.
//
// A journal that is changed in place is not written again: the change is appended to it.
// Any other file may be replaced by what is made of it only if that loses nothing, or if a
// copy is kept.
func (r *rewriting) open(a *app, cmd *cobra.Command) (err error) {
	if r.destination, err = a.output(r.out, r.in); err != nil {
		return err
	}
	if r.document, err = a.read(cmd.Context(), r.in, r.format); err != nil {
		return err
	}
	to := cmp.Or(r.to, r.document.Format)
	switch {
	case !sameFile(r.in, r.out):
		return nil
	case r.document.Format == "condense" && to == "condense":
		return r.openJournal()
	case !r.keeps[to] && !r.backup:
		return usage(cmd, "%s: the file would be overwritten by itself, and %s would be lost: the format %s does not record it. Write to another file, or add --backup to keep this one as %s.bak", r.in, r.lost, to, r.in)
	}
	return nil
}

func (r *rewriting) openJournal() error {
	r.destination.close()
	f, _, err := history.Open(r.in) // what was repaired has been said
	switch {
	case errors.Is(err, history.ErrInUse):
		return inUse(r.in)
	case err != nil && compressed(r.in):
		return fmt.Errorf("%s: nothing can be added to a compressed journal; decompress it first, or write to another file with -o", r.in)
	case err != nil:
		return err
	}
	r.journal, r.document.Journal = f, f.Journal
	return nil
}

func compressed(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it was only read
	magic := make([]byte, 2)
	_, err = io.ReadFull(f, magic)
	return err == nil && string(magic) == "\x1f\x8b"
}

// finish writes the document, unless the journal has the change already.
func (r *rewriting) finish(a *app) error {
	if r.journal != nil {
		f := r.journal
		r.journal = nil
		return f.Close()
	}
	if r.backup && sameFile(r.in, r.out) {
		if err := a.keepCopy(r.in); err != nil {
			return err
		}
	}
	return a.write(r.document, r.destination, r.to)
}

// close gives up what open took. It may be called after finish.
func (r *rewriting) close() {
	if r.journal != nil {
		_ = r.journal.Close() // nothing was written, or the error was reported
	}
	if r.destination != nil {
		r.destination.close()
	}
}

// keepCopy copies a file to FILE.bak, or FILE.bak-2 if that exists, and so on.
func (a *app) keepCopy(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	name := path + ".bak"
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			break
		}
		name = fmt.Sprintf("%s.bak-%d", path, n)
	}
	file, err := disk.Open(name, a.modeOf(path))
	if err == nil {
		err = file.Write(data)
	}
	if err == nil {
		printf(a.stderr, "%s is kept as %s\n", path, name)
	}
	return err
}

// write writes the document. A file has all of it or stays as it is.
func (a *app) write(d *transcript.Document, o *output, format string) error {
	var b bytes.Buffer
	warnings, err := d.Write(&b, format)
	if err != nil {
		return err
	}
	a.warn("output", warnings)
	return o.write(b.Bytes())
}
