//go:build unix

package wasm

import (
	"context"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// withMemory gives instances that are made with ctx memory that grows where it is. By default it is copied each time.
func withMemory(ctx context.Context) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(reserve))
}

// A reserved is the addresses of an instance's memory, of which the first part can be used.
type reserved struct{ all []byte }

// reserve reserves addresses, which costs nothing until they are used.
func reserve(_, most uint64) experimental.LinearMemory {
	all, err := unix.Mmap(-1, 0, int(max(most, 1)), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(bug("no memory for another instance: %v", err))
	}
	return &reserved{all}
}

// Reallocate implements [experimental.LinearMemory]. Nil means that there is no more memory.
func (r *reserved) Reallocate(size uint64) []byte {
	if size > uint64(len(r.all)) || size > 0 && unix.Mprotect(r.all[:size], unix.PROT_READ|unix.PROT_WRITE) != nil {
		return nil
	}
	return r.all[:size:size]
}

// Free implements [experimental.LinearMemory].
func (r *reserved) Free() { _ = unix.Munmap(r.all) }
