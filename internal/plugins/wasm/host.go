package wasm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"google.golang.org/grpc/codes"

	"github.com/condensehq/condense/internal/wire"
)

// hostModule is the module of the imports that condense provides, and clockImport the one that asks for a clock.
const (
	hostModule  = "condense"
	clockImport = "clock"
)

// maxLine is in bytes. A host cuts longer lines.
const maxLine = 8 << 10

// provide makes the imports of plugin-sdk/wasm.md. A function that panics ends the instance with that error.
func provide(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder(hostModule)
	for name, f := range map[string]any{
		"serve":     serve,
		clockImport: func() int64 { return time.Now().UnixMilli() },
		"log": func(ctx context.Context, m api.Module, level int32, at, size uint32) {
			text := view(m, at, min(size, maxLine))
			if c := current(ctx).call; c != nil {
				c.Log(slog.Level(level), string(text))
			}
		},
		"progress": func(ctx context.Context, m api.Module, fraction float64, at, size uint32) {
			text := view(m, at, min(size, maxLine))
			if c := current(ctx).call; c != nil {
				c.Progress(fraction, string(text))
			}
		},
		"report": func(ctx context.Context, m api.Module, at, size uint32) {
			if c := during(ctx, "report"); c != nil {
				check(c.Report(view(m, at, size)))
			}
		},
		"generate": asks("generate"),
		"count":    asks("count"),
		"fail": func(_ context.Context, m api.Module, code int32, at, size uint32) {
			text := view(m, at, min(size, maxLine))
			if code <= 0 || code > int32(codes.Unauthenticated) {
				code = int32(codes.Unknown)
			}
			panic(&fault{codes.Code(code), string(text)})
		},
	} {
		b.NewFunctionBuilder().WithFunc(f).Export(name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// asks returns the import that passes a request of the guest to the host, and the reply to memory of the guest.
func asks(name string) func(ctx context.Context, m api.Module, at, size uint32) uint64 {
	return func(ctx context.Context, m api.Module, at, size uint32) uint64 {
		reply, err := during(ctx, name).Ask(ctx, name, view(m, at, size))
		check(err)
		to, err := copyIn(ctx, m, len(reply), reply)
		check(err)
		return uint64(to)<<32 | uint64(len(reply))
	}
}

// during returns the call of the instance, without which the import name cannot be used.
func during(ctx context.Context, name string) *wire.GuestCall {
	c := current(ctx).call
	if c == nil {
		panic(bug("it calls %s outside of condense", name))
	}
	return c
}

// A fault is why an instance was ended.
type fault struct {
	code codes.Code
	text string
}

// Error returns the reason.
func (f *fault) Error() string { return f.text }

func bug(format string, args ...any) *fault {
	return &fault{codes.Internal, fmt.Sprintf(format, args...)}
}

// check ends the instance if there is an error.
func check(err error) {
	if err == nil {
		return
	}
	if f, ok := errors.AsType[*fault](err); ok {
		panic(f)
	}
	panic(bug("%v", firstLine(err)))
}

// view returns memory of the guest, without copying it.
func view(m api.Module, at, size uint32) []byte {
	b, ok := m.Memory().Read(at, size)
	if !ok {
		panic(outside(m, at, size))
	}
	return b
}

func outside(m api.Module, at, size uint32) *fault {
	return bug("it gives the address %d with %d bytes, and its memory has %d", at, size, m.Memory().Size())
}

// copyIn copies data of this size in all to memory that the guest allocates, and returns its address.
func copyIn(ctx context.Context, m api.Module, size int, data ...[]byte) (uint32, error) {
	res, err := m.ExportedFunction("alloc").Call(ctx, uint64(size))
	if err != nil {
		return 0, err
	}
	at := uint32(res[0])
	for _, d := range data {
		if !m.Memory().Write(at, d) {
			return 0, outside(m, uint32(res[0]), uint32(size))
		}
		at += uint32(len(d))
	}
	return uint32(res[0]), nil
}
