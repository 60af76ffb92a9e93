package install

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/condensehq/condense/internal/plain"
)

// unpackArchive writes the files of an archive to a folder, both in root. An archive with anything but files and folders, with
// a name that leads out of it or occurs twice, or that is too large, is refused.
func unpackArchive(root *os.Root, file, dir, suffix string) error {
	f, err := root.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	u := &unpacking{root: root, dir: dir, left: maxUnpacked}
	if suffix == ".zip" {
		return u.zip(f)
	}
	return u.tar(f)
}

// An unpacking is an archive that is being unpacked.
type unpacking struct {
	root  *os.Root
	dir   string
	left  int64 // bytes that may follow
	files int
}

func (u *unpacking) tar(f io.Reader) error {
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("is not an archive in gzip format: %w", err)
	}
	// Headers count as well: a bomb may have nothing else.
	t := tar.NewReader(&bounded{z, maxUnpacked + maxUnpacked/8})
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			// The checksum of the compressed data is at its end.
			_, err = io.Copy(io.Discard, &bounded{z, 1 << 20})
			return err
		}
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader: // the commit of 'git archive'
		case tar.TypeDir:
			err = u.folder(h.Name)
		case tar.TypeReg:
			err = u.file(h.Name, h.FileInfo().Mode(), h.Size, t)
		default:
			err = fmt.Errorf("%q is a link or a device; only files and folders are unpacked", plain.Line(h.Name))
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacking) zip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(f, info.Size())
	if err != nil {
		return err
	}
	for _, e := range z.File {
		switch mode := e.Mode(); {
		case mode.IsDir():
			err = u.folder(e.Name)
		case mode.IsRegular():
			err = u.zipped(e)
		default:
			err = fmt.Errorf("%q is a link or a device; only files and folders are unpacked", plain.Line(e.Name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacking) zipped(e *zip.File) error {
	r, err := e.Open()
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // only read
	return u.file(e.Name, e.Mode(), int64(min(e.UncompressedSize64, maxUnpacked+1)), r)
}

// place returns where an entry of the archive belongs.
func (u *unpacking) place(name string) (string, error) {
	clean := path.Clean(name)
	if !filepath.IsLocal(filepath.FromSlash(clean)) || strings.ContainsAny(name, "\\:\x00") || strings.HasPrefix(name, "/") {
		return "", fmt.Errorf("%q leads out of the archive", plain.Line(name))
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return "", fmt.Errorf("%q: a name with a control character", plain.Line(name))
	}
	if u.files++; u.files > maxFiles {
		return "", fmt.Errorf("has more than %d files", maxFiles)
	}
	return path.Join(u.dir, clean), nil
}

func (u *unpacking) folder(name string) error {
	to, err := u.place(name)
	if err != nil {
		return err
	}
	return u.root.MkdirAll(to, 0o755)
}

func (u *unpacking) file(name string, mode fs.FileMode, size int64, r io.Reader) error {
	to, err := u.place(name)
	if err != nil {
		return err
	}
	if u.left -= size; u.left < 0 {
		return fmt.Errorf("is larger than %d MiB unpacked", maxUnpacked>>20)
	}
	if err := u.root.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err
	}
	f, err := u.root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|mode&0o100|mode&0o100>>3|mode&0o100>>6)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%q is there twice", plain.Line(name))
	}
	if err != nil {
		return err
	}
	// Both formats end a file where its header says.
	if _, err = io.CopyN(f, r, size); errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		_, err = r.Read(make([]byte, 1)) // of a zip file this checks the checksum
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", plain.Line(name), err)
	}
	return nil
}

// bounded is a reader with an end, behind which it fails.
type bounded struct {
	r    io.Reader
	left int64
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("is larger than %d MiB unpacked", maxUnpacked>>20)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
