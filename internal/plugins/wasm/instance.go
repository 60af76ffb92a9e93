package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/wire"
)

// An instance is a module with memory of its own. It is used by one goroutine at a time.
//
// A module with _start, a command, exports functions that can be called only while _start waits in the import serve: there, jobs
// are done. Functions of any other module, a reactor, are called directly.
type instance struct {
	mod  api.Module
	out  *output
	call *wire.GuestCall // nil outside of a call

	jobs  chan func() // of a command, else nil
	ready chan struct{}
	ended chan struct{} // closed when _start has ended
	err   error         // of _start, set before ended is closed
}

type instanceKey struct{}

// current returns the instance that calls an import.
func current(ctx context.Context) *instance {
	return ctx.Value(instanceKey{}).(*instance) //nolint:errcheck,forcetypeassert // every call of a module has it
}

// errClosed ends a command that is no longer needed.
var errClosed = errors.New("the instance is closed")

// open makes an instance. Its output goes to out.
func (m *module) open(ctx context.Context, out io.Writer) (*instance, error) {
	i := &instance{out: &output{to: out}, ready: make(chan struct{}), ended: make(chan struct{})}
	ctx = context.WithValue(ctx, instanceKey{}, i)
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithStdout(i.out).WithStderr(i.out)
	if m.clock {
		config = config.WithSysWalltime().WithSysNanotime().WithSysNanosleep()
	}
	var err error
	if i.mod, err = m.runtime.InstantiateModule(withMemory(ctx), m.compiled, config); err != nil {
		return nil, i.explain(err)
	}
	if f := i.mod.ExportedFunction("_initialize"); f != nil {
		if _, err := f.Call(ctx); err != nil {
			return nil, errors.Join(i.explain(err), i.mod.Close(ctx))
		}
	}
	start := i.mod.ExportedFunction("_start")
	if start == nil {
		return i, nil
	}
	i.jobs = make(chan func())
	go func() {
		defer close(i.ended)
		if _, i.err = start.Call(ctx); i.err == nil {
			i.err = bug("its main function ended without calling the import serve")
		}
	}()
	select {
	case <-i.ready:
		return i, nil
	case <-i.ended:
		return nil, errors.Join(i.explain(i.err), i.mod.Close(ctx))
	}
}

// serve is the import with which the main function of a command waits for jobs.
func serve(ctx context.Context) {
	i := current(ctx)
	select {
	case <-i.ready:
		panic(bug("it calls serve twice"))
	default:
	}
	if i.jobs == nil {
		panic(bug("it calls serve and has no function _start"))
	}
	close(i.ready)
	for job := range i.jobs {
		job()
	}
	panic(errClosed)
}

// invoke calls an exported function with data in memory of the module, and returns a copy of its answer.
func (i *instance) invoke(ctx context.Context, name string, size int, data ...[]byte) (answer []byte, err error) {
	ctx = context.WithValue(ctx, instanceKey{}, i)
	do := func() { answer, err = i.invokeHere(ctx, name, size, data) }
	if i.jobs == nil {
		do()
	} else {
		done := make(chan struct{})
		select {
		case i.jobs <- func() { defer close(done); do() }:
			<-done
		case <-i.ended:
			err = i.err
		}
	}
	if err != nil {
		err = i.explain(err)
	}
	return answer, err
}

func (i *instance) invokeHere(ctx context.Context, name string, size int, data [][]byte) ([]byte, error) {
	var args []uint64
	if data != nil {
		at, err := copyIn(ctx, i.mod, size, data...)
		if err != nil {
			return nil, err
		}
		args = []uint64{uint64(at), uint64(size)}
	}
	res, err := i.mod.ExportedFunction(name).Call(ctx, args...)
	if err != nil {
		return nil, err
	}
	at, n := uint32(res[0]>>32), uint32(res[0])
	if n > maxAnswer {
		return nil, bug("%s answers with %d bytes; at most %d are allowed", name, n, maxAnswer)
	}
	b, ok := i.mod.Memory().Read(at, n)
	if !ok {
		return nil, outside(i.mod, at, n)
	}
	return append([]byte(nil), b...), nil
}

// maxAnswer is the number of bytes that a host accepts in an answer.
const maxAnswer = 64 << 20

// close frees the instance.
func (i *instance) close(ctx context.Context) {
	if i.jobs != nil {
		close(i.jobs)
		<-i.ended
	}
	_ = i.mod.Close(ctx)
}

// explain returns why an instance ended, in a line.
func (i *instance) explain(err error) error {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if e, ok := errors.AsType[*sys.ExitError](err); ok {
		return bug("it ended by itself with exit code %d%s", e.ExitCode(), i.out.headline())
	}
	text, trace, _ := strings.Cut(err.Error(), "\n")
	text = strings.TrimPrefix(strings.TrimSuffix(text, " (recovered by wazero)"), "wasm error: ")
	if m := frame().FindStringSubmatch(trace); m != nil {
		text += " in " + m[1]
	}
	if i.mod != nil && i.mod.Memory() != nil {
		if size, most := int(i.mod.Memory().Size())>>20, memoryPages/16; size >= most/2 {
			text += fmt.Sprintf(", with %d MiB of memory; at most %d MiB are allowed", size, most)
		}
	}
	return bug("it trapped: %s%s", text, i.out.headline())
}

// frame finds the name of a function in the trace of a machine.
var frame = plain.Pattern(`(?m)^\t\.?([^\s(]+)\(`)

// An output passes the output of a module on, and remembers its beginning for errors.
type output struct {
	to io.Writer

	mu   sync.Mutex
	head []byte
}

// maxHead is in bytes.
const maxHead = 4 << 10

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	o.head = append(o.head, p[:min(len(p), maxHead-len(o.head))]...)
	o.mu.Unlock()
	return o.to.Write(p)
}

// headline returns the line in which the runtime of a language says why it ends.
func (o *output) headline() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range strings.Lines(string(o.head)) {
		for _, begin := range []string{"panic: ", "fatal error: ", "runtime: "} {
			if strings.HasPrefix(line, begin) {
				return ": " + strings.TrimSpace(line)
			}
		}
	}
	return ""
}
