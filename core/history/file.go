package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// A File is a journal on disk. What changes the journal is written to the file first and
// takes effect only if that went well. Messages are handed to the operating system;
// condensations, undos and rewinds are on the disk when their method returns, and so is
// everything when Close does.
//
// A process that dies in the middle of a write leaves a part of a line behind. [Open]
// reports it, and the next write removes it. One process at a time may write: if another
// one did since the file was opened, nothing is written and an error says so.
type File struct {
	*Journal
	file  *os.File
	size  int64 // that the file should have
	whole int64 // bytes with complete records; what follows is cut off before a write
	open  bool  // the newline of the last record is missing
}

// Create creates the file path for an empty journal with the given meta, which is JSON
// or nil; see [Journal.SetMeta]. It is an error if the file exists. Only its owner may
// read it.
func Create(path string, meta json.RawMessage) (*File, error) {
	j := New()
	if meta != nil {
		if err := j.SetMeta(meta); err != nil {
			return nil, fmt.Errorf("create %s: %w", path, err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	f := &File{Journal: j, file: file}
	if err := f.write(appendHeader(nil, j.id, j.meta), true); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	j.store = f.write
	return f, nil
}

// Open opens the journal in the file path. The recovery is nil unless the last line was
// incomplete. Opening does not change the file. To only look at a journal use [Decode],
// which needs no permission to write.
func Open(path string) (*File, *Recovery, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, nil, err
	}
	d := newDecoder(file)
	if err := d.run(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open %s: %w", path, err), file.Close())
	}
	f := &File{Journal: d.journal, file: file, size: d.size, whole: d.size, open: d.open}
	if d.recovery != nil {
		f.whole -= int64(d.recovery.Bytes)
	}
	f.store = f.write
	return f, d.recovery, nil
}

// Close brings what was written to the disk and closes the file. The journal can still
// be read, but not changed.
func (f *File) Close() error { return errors.Join(f.file.Sync(), f.file.Close()) }

// write appends lines in one call. If that fails the file is left, or at the next write
// becomes, as it was.
func (f *File) write(lines []byte, sync bool) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if size := info.Size(); size != f.size {
		return fmt.Errorf("write %s: the file has %d bytes, not %d: something else wrote to it; open it again", f.file.Name(), size, f.size)
	}
	if f.whole < f.size {
		if err := f.file.Truncate(f.whole); err != nil {
			return err
		}
		f.size = f.whole
	}
	if f.open {
		lines = append([]byte("\n"), lines...)
	}
	n, err := f.file.Write(lines)
	if err == nil && sync {
		err = f.file.Sync()
	}
	f.size += int64(n)
	if err != nil {
		if f.file.Truncate(f.whole) == nil {
			f.size = f.whole
		}
		return err
	}
	f.whole, f.open = f.size, false
	return nil
}
