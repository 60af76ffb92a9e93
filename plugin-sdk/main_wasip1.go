package pluginsdk

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/condensehq/condense/registry"
)

// Main serves s to the host that runs the module, and does not return. The module is built with GOOS=wasip1 GOARCH=wasm; the same
// source built for another system is a program.
//
// A module has no files, no network, no environment and, without [Now], no clock: [time.Now] begins in 2022 and moves a millisecond
// each time.
// Every call has a new instance of the module, so nothing of a conversation stays. Log records of the strategy, and its writes to
// standard output and standard error, go to the host's log.
func Main(s registry.Strategy) {
	if _, err := registry.New(s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // this is an author's main
	}
	debug.SetGCPercent(gcPercent)
	served = &guest{strategy: s}
	hostServe()
	os.Exit(0) //nolint:forbidigo // this is an author's main
}

// gcPercent suits an instance that lives for one call: it seldom needs to collect garbage.
const gcPercent = 400

// served is the guest of this module: the exports have no other way to it.
var served *guest

// The functions of the host, see plugin-sdk/wasm.md. Those with a result return its address and its size.
//
//go:wasmimport condense serve
func hostServe()

//go:wasmimport condense clock
func hostClock() int64

// Now returns the time. A module that uses it asks for a clock, which users see before they approve it; [time.Now] works then, too.
func Now() time.Time { return time.UnixMilli(hostClock()) }

//go:wasmimport condense log
func hostLog(level int32, text unsafe.Pointer, size uint32)

//go:wasmimport condense progress
func hostProgress(fraction float64, text unsafe.Pointer, size uint32)

//go:wasmimport condense report
func hostReport(step unsafe.Pointer, size uint32)

//go:wasmimport condense generate
func hostGenerate(request unsafe.Pointer, size uint32) uint64

//go:wasmimport condense count
func hostCount(request unsafe.Pointer, size uint32) uint64

//go:wasmimport condense fail
func hostFail(code int32, text unsafe.Pointer, size uint32)

// held is memory that the host writes to or reads from: the garbage collector must leave it.
var held = map[unsafe.Pointer][]byte{}

//go:wasmexport alloc
func alloc(size uint32) unsafe.Pointer {
	b := make([]byte, max(size, 1))
	p := unsafe.Pointer(unsafe.SliceData(b))
	held[p] = b[:size]
	return p
}

//go:wasmexport describe
func describe() uint64 { return export(served.describe()) }

//go:wasmexport configure
func configure(request unsafe.Pointer, size uint32) uint64 {
	return export(served.configure(release(request)))
}

//go:wasmexport condense
func condense(request unsafe.Pointer, size uint32) uint64 {
	return export(served.condense(release(request)))
}

// release returns what the host has written to memory that it got from alloc, and leaves it to the garbage collector.
func release(p unsafe.Pointer) []byte {
	b := held[p]
	delete(held, p)
	return b
}

// export returns the address of b and its size.
func export(b []byte) uint64 {
	p := pointer(b)
	held[p] = b
	return uint64(uintptr(p))<<32 | uint64(len(b))
}

// imported returns the answer of the host at an address with a size.
func imported(answer uint64) []byte {
	return release(unsafe.Pointer(uintptr(answer >> 32))) //nolint:govet // an address in linear memory, which held keeps
}

func pointer[T string | []byte](text T) unsafe.Pointer {
	b := []byte(text)
	return unsafe.Pointer(unsafe.SliceData(b))
}

// fail ends the call with an error, and does not return.
func fail(code int32, text string) {
	hostFail(code, pointer(text), uint32(len(text)))
	panic(text) // the host has ended the instance
}
