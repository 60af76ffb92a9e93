package cli

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// An Output is a destination of a command. It is opened before the work starts, so that a wrong
// path fails early. The command closes it.
type Output struct {
	Stdout io.Writer // or
	file   *File
	zip    bool          // the file is compressed, as its name says or as it was
	lock   *history.Lock // of the file that is replaced; nil if there is none
}

// NewMode is the mode of a file without a source, before the umask.
const NewMode fs.FileMode = 0o666

// PrivateMode is the mode of a new file with the text of several sessions.
const PrivateMode fs.FileMode = 0o600

// Output opens the file path for writing; "" and "-" are standard output. A new file is no more
// readable than like, the source of its content.
func (a *App) Output(path, like string) (*Output, error) {
	if path == "" || path == "-" {
		return &Output{Stdout: a.Stdout}, nil
	}
	file, err := OpenFile(path, a.modeOf(like))
	if err != nil {
		return nil, err
	}
	o := &Output{file: file, zip: strings.HasSuffix(path, ".gz") || SameFile(path, like) && BeginsWith(path, gzipMagic)}
	if file.Old() != nil {
		// A journal that a running program writes to must not be replaced. Where files cannot
		// be locked, no program holds a lock.
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

// modeOf returns the permissions of a source; "-" is standard input.
func (a *App) modeOf(path string) fs.FileMode {
	info, err := os.Stat(path)
	if f, ok := a.Stdin.(*os.File); path == "-" && ok {
		info, err = f.Stat()
	}
	if path == "" || err != nil || !info.Mode().IsRegular() {
		return NewMode
	}
	return info.Mode().Perm()
}

// Write writes all of the output.
func (o *Output) Write(data []byte) error {
	if o.file == nil {
		return term.PrintData(o.Stdout, data)
	}
	if o.zip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(data); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		data = b.Bytes()
	}
	return o.file.Write(data)
}

// Close releases the lock of the file. It may be called twice.
func (o *Output) Close() {
	if o.lock != nil {
		_ = o.lock.Release() // the work is done; the system releases it in any case
		o.lock = nil
	}
}

// Put writes a file, or to standard output, which "" and "-" are.
func (a *App) Put(path string, data []byte) error {
	if path == "" || path == "-" {
		_, err := a.Stdout.Write(data)
		return err
	}
	return WriteFile(path, data, NewMode)
}

// WriteFile writes a file. A new file gets the mode, before the umask.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	file, err := OpenFile(path, mode)
	if err != nil {
		return err
	}
	return file.Write(data)
}

// SameFile reports whether two paths name the same file, directly or by a link.
func SameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil || a == "-" || b == "-" {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// A Rewriting is the file that a command reads, changes and writes.
type Rewriting struct {
	In, Out     string // files; "-" and "" are the standard ones
	Format, To  string
	backup      bool
	Keeps       map[string]bool // formats that record the change
	Lost        string          // the losses of the other formats
	Document    *transcript.Document
	destination *Output
	journal     *history.File // changed in place; nil if a file is written
}

// Formats that record condensations, and formats that record rewinds.
var (
	RecordCondensations = map[string]bool{"condense": true, "roo": true}
	RecordRewinds       = map[string]bool{"condense": true}
)

// Flags adds --backup.
func (r *Rewriting) Flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.backup, "backup", false, "keep a file that is overwritten by itself as FILE.bak")
}

// Open reads the document and opens the destination.
//
// A journal that is changed in place is not written again: the change is appended to it. Any
// other file may be overwritten by its own result only if that loses nothing or a copy is kept.
func (r *Rewriting) Open(a *App, cmd *cobra.Command) (err error) {
	if r.destination, err = a.Output(r.Out, r.In); err != nil {
		return err
	}
	if r.Document, err = a.Read(cmd.Context(), r.In, r.Format); err != nil {
		return err
	}
	to := cmp.Or(r.To, r.Document.Format)
	switch {
	case !SameFile(r.In, r.Out):
		return nil
	case r.Document.Format == "condense" && to == "condense":
		return r.openJournal()
	case !r.Keeps[to] && !r.backup:
		return Usage(cmd, "%s: the file would be overwritten by itself, and %s would be lost: the format %s does not record it. Write to another file, or add --backup to keep this one as %s.bak", r.In, r.Lost, to, r.In)
	}
	return nil
}

func (r *Rewriting) openJournal() error {
	r.destination.Close()
	f, _, err := history.Open(r.In) // repairs have been reported
	switch {
	case errors.Is(err, history.ErrInUse):
		return inUse(r.In)
	case err != nil && BeginsWith(r.In, gzipMagic):
		return fmt.Errorf("%s: cannot append to a compressed journal; decompress it first, or write to another file with -o", r.In)
	case err != nil:
		return err
	}
	r.journal, r.Document.Journal = f, f.Journal
	return nil
}

const gzipMagic = "\x1f\x8b"

// BeginsWith reports whether a file can be read and begins so.
func BeginsWith(path, magic string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it was only read
	begin := make([]byte, len(magic))
	_, err = io.ReadFull(f, begin)
	return err == nil && string(begin) == magic
}

// Finish writes the document, unless the change is in the journal already.
func (r *Rewriting) Finish(a *App) error {
	if r.journal != nil {
		f := r.journal
		r.journal = nil
		return f.Close()
	}
	if r.backup && SameFile(r.In, r.Out) {
		if err := a.keepCopy(r.In); err != nil {
			return err
		}
	}
	return a.Write(r.Document, r.destination, r.To)
}

// Close releases the file that Open opened. It may be called after Finish.
func (r *Rewriting) Close() {
	if r.journal != nil {
		_ = r.journal.Close() // nothing was written, or the error has been reported
	}
	if r.destination != nil {
		r.destination.Close()
	}
}

// keepCopy copies a file to FILE.bak, FILE.bak-2 and so on: the first that does not exist.
func (a *App) keepCopy(path string) error {
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
	if err = WriteFile(name, data, a.modeOf(path)); err == nil {
		term.Printf(a.Stderr, "kept a copy of %s as %s\n", path, name)
	}
	return err
}

// Write writes the document. A file is replaced as a whole or not at all.
func (a *App) Write(d *transcript.Document, o *Output, format string) error {
	var b bytes.Buffer
	warnings, err := d.Write(&b, format)
	if err != nil {
		return err
	}
	a.Warn("output", warnings)
	return o.Write(b.Bytes())
}
