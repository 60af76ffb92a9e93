package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// sealed copies a program into memory that can neither be written nor resized any more,
// and returns it with its digest. The error wraps [errors.ErrUnsupported] if this system
// cannot, or may not, run programs from memory.
func sealed(src io.Reader) (*os.File, string, error) {
	unsupported := func(err error) (*os.File, string, error) {
		return nil, "", fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return unsupported(err)
	}
	const (
		name  = "condense-plugin"
		flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	)
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 there was no flag
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return unsupported(err)
	}
	mem := os.NewFile(uintptr(fd), name)
	defer mem.Close() //nolint:errcheck // it is opened again below
	sum, err := copyDigest(mem, src)
	if err != nil {
		return nil, "", err
	}
	if _, err := unix.FcntlInt(mem.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return unsupported(err)
	}
	// A file that is open for writing cannot be executed.
	read, err := os.Open(sealedPath(mem))
	if err != nil {
		return unsupported(err)
	}
	return read, sum, nil
}

// sealedPath is the name under which a child executes mem. It has our descriptors until
// the moment it becomes the program.
func sealedPath(mem *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", mem.Fd()) }
