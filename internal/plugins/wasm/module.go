package wasm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/condensehq/condense/internal/plain"
)

// memoryPages is the most memory of an instance, in pages of 64 KiB: 256 MiB.
const memoryPages = 4096

// wasi is the module of imports that runtimes of Go, Rust and others need. An instance gets no file, no socket, no argument and no
// variable through it.
const wasi = wasi_snapshot_preview1.ModuleName

// A module is a compiled module with checked imports and exports.
type module struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	clock    bool // it asks for one
}

// compile compiles a module. With a cache folder the result is kept there for the next process.
func compile(ctx context.Context, binary []byte, cacheDir string) (_ *module, err error) {
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(memoryPages)
	if cacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(cacheDir)
		if err != nil {
			return nil, err
		}
		config = config.WithCompilationCache(cache)
	}
	m := &module{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.runtime.Close(ctx))
		}
	}()
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, m.runtime); err != nil {
		return nil, err
	}
	if err := provide(ctx, m.runtime); err != nil {
		return nil, err
	}
	workers := experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
	if m.compiled, err = m.runtime.CompileModule(workers, binary); err != nil {
		return nil, fmt.Errorf("it is not a valid module of WebAssembly: %w", firstLine(err))
	}
	return m, m.check()
}

// A signature is the type of a function.
type signature struct{ params, results []api.ValueType }

func (s signature) String() string {
	names := func(types []api.ValueType) string {
		all := plain.Each(types, api.ValueTypeName)
		return "(" + strings.Join(all, ", ") + ")"
	}
	return names(s.params) + " -> " + names(s.results)
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
	f64 = api.ValueTypeF64
)

// exports are the functions that a module exports.
var exports = []struct {
	name     string
	required bool
	signature
}{
	{"alloc", true, signature{[]api.ValueType{i32}, []api.ValueType{i32}}},
	{"describe", true, signature{nil, []api.ValueType{i64}}},
	{"configure", false, signature{[]api.ValueType{i32, i32}, []api.ValueType{i64}}},
	{"check_settings", false, signature{[]api.ValueType{i32, i32}, []api.ValueType{i64}}},
	{"condense", true, signature{[]api.ValueType{i32, i32}, []api.ValueType{i64}}},
}

// check reports everything that a module lacks, or that it imports and nobody provides.
func (m *module) check() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, f := range m.compiled.ImportedFunctions() {
		from, name, _ := f.Import()
		known := m.runtime.Module(from)
		switch {
		case from != hostModule && from != wasi:
			fault("it imports %s.%s, and condense provides only the functions of %s and %s", from, name, hostModule, wasi)
		case known.ExportedFunctionDefinitions()[name] == nil:
			fault("it imports %s.%s, which does not exist", from, name)
		default:
			got, want := signature{f.ParamTypes(), f.ResultTypes()}, known.ExportedFunctionDefinitions()[name]
			if w := (signature{want.ParamTypes(), want.ResultTypes()}); got.String() != w.String() {
				fault("it imports %s.%s with the type %s; want %s", from, name, got, w)
			}
		}
		m.clock = m.clock || from == hostModule && name == clockImport
	}
	for _, f := range m.compiled.ImportedMemories() {
		from, name, _ := f.Import()
		fault("it imports the memory %s.%s; it must export its own", from, name)
	}
	if m.compiled.ExportedMemories()["memory"] == nil {
		fault("it does not export its memory as memory")
	}
	defined := m.compiled.ExportedFunctions()
	for _, e := range exports {
		f := defined[e.name]
		if f == nil && e.required {
			fault("it does not export the function %s%s", e.name, e.signature)
		}
		if f == nil {
			continue
		}
		if got := (signature{f.ParamTypes(), f.ResultTypes()}); got.String() != e.String() {
			fault("its function %s has the type %s; want %s", e.name, got, e.signature)
		}
	}
	return errors.Join(errs...)
}

// has reports whether the module exports the function.
func (m *module) has(name string) bool { return m.compiled.ExportedFunctions()[name] != nil }

// firstLine returns an error with the first line of another: the rest is a trace of the machine.
func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(line)
}
