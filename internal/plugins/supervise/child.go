package supervise

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/condensehq/condense/internal/wire"
)

// A child runs a program for go-plugin, as its runner. It separates the two because of
// three faults of go-plugin v1.8 that let a plugin harm its host:
//
//   - A line on standard error that is almost a log entry panics the host. So go-plugin
//     sees an empty standard error, and package supervise reads the real one.
//   - Kill and Ping wait forever for a suspended process. So a process is killed without
//     go-plugin, and health checks have a deadline.
//   - A grandchild that inherited the pipes keeps the dead process alive for go-plugin. So
//     its pipes are ours, and end when the process ends.
//
// A child also ensures that nothing survives: the process leads a process group, which is
// killed with it, ends with its host, and has limits.
type child struct {
	attached bool      // not started by the host: see [attach]
	over     sync.Once // closes exited if it is attached
	link     *link
	path     string
	args     []string // the first one is the name that the program sees
	allow    []string // of Spec.Env
	env      []string
	work     string // working directory
	sys      system
	dir      string // for its socket and temporary files
	limits   *Limits
	mtls     bool
	out      *output

	stdout  *io.PipeReader // the handshake, then nothing until the process ends
	toHost  *io.PipeWriter
	stderr  *io.PipeReader // nothing until the process ends
	silence *io.PipeWriter
	stdin   *os.File // our end: a process that reads it notices our end

	fault   atomic.Pointer[error] // why the host killed it; the first one counts
	started time.Time
	exited  chan struct{} // closed when the process has ended and its output was read
	status  string        // set before exited is closed
	uptime  time.Duration // set before exited is closed

	addr atomic.Pointer[handshake]

	mu    sync.Mutex
	cmd   *exec.Cmd // nil until started
	alive bool      // the process exists, so no other has its PID
}

var _ runner.Runner = (*child)(nil)

func newChild(prog *program, s *Spec, dir string, out *output) *child {
	c := &child{
		path: prog.path, args: slices.Concat(prog.args, s.Args), allow: s.Env, work: prog.dir,
		dir: dir, limits: &s.Limits, mtls: !s.Plaintext, out: out, exited: make(chan struct{}),
	}
	c.link = newLink(c.address)
	c.stdout, c.toHost = io.Pipe()
	c.stderr, c.silence = io.Pipe()
	return c
}

// setEnv sets the environment of the process: the allowed part of the host's, the
// variables of go-plugin, and ours.
func (c *child) setEnv(goPlugin []string) {
	own := append(slices.Clone(goPlugin),
		plugin.EnvUnixSocketDir+"="+c.dir,
		"TMPDIR="+c.dir, "TEMP="+c.dir, "TMP="+c.dir,
		wire.EnvExitWithStdin+"=1")
	allow := c.allow
	if c.limits.Memory > 0 {
		// Makes a Go program collect garbage before it reaches the limit.
		allow = append([]string{fmt.Sprintf("GOMEMLIMIT=%d", c.limits.Memory/10*9)}, allow...)
	}
	c.env = environment(os.Environ(), allow, own)
}

// Start launches the process. It is called once.
func (c *child) Start(context.Context) error {
	launched := make(chan error, 1)
	go c.live(launched) //nolint:contextcheck // the process outlives its start
	return <-launched
}

// live runs the process from launch to end. On Linux the process is killed when the thread
// that launched it ends, so this goroutine keeps its thread until the process has ended.
func (c *child) live(launched chan<- error) {
	unlock := lockThread()
	defer unlock()
	pipes, err := c.launch()
	if err != nil {
		close(c.exited)
		_ = c.toHost.CloseWithError(err)
		_ = c.silence.Close()
		launched <- err
		return
	}
	launched <- nil

	var reading sync.WaitGroup
	reading.Go(func() { c.readStdout(pipes[0]) })
	reading.Go(func() { c.out.read(pipes[1], "stderr") })

	state := c.reap()
	c.uptime = time.Since(c.started)
	// Its output is in the pipes. Another process that still holds them is not waited for.
	drained := make(chan struct{})
	go func() { reading.Wait(); close(drained) }()
	c.out.hurry()
	select {
	case <-drained:
	case <-time.After(drainTime):
		_ = c.stdout.Close() // nothing reads the handshake any more
	}
	for _, f := range pipes {
		_ = f.Close()
	}
	<-drained
	_ = c.stdin.Close()
	c.link.cut() // a grandchild may have the other end
	c.out.close()
	c.status = state
	_ = c.toHost.Close()
	_ = c.silence.Close()
	close(c.exited)
}

// drainTime bounds the time for reading the output of a process that has ended. A pipe
// contains at most 64 KiB, which takes microseconds.
const drainTime = 500 * time.Millisecond

// launch starts the process and returns our ends of its output.
func (c *child) launch() (pipes [2]*os.File, err error) {
	var opened []*os.File
	defer func() {
		if err != nil {
			for _, f := range opened {
				_ = f.Close()
			}
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				opened = append(opened, r, w)
			}
		}
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	if err != nil {
		return pipes, err
	}
	cmd, err := c.start(inR, outW, errW)
	if err != nil {
		return pipes, explainStart(err)
	}
	c.started = time.Now()
	c.stdin = inW
	for _, f := range []*os.File{inR, outW, errW} {
		_ = f.Close()
	}
	c.mu.Lock()
	c.cmd, c.alive = cmd, true
	c.mu.Unlock()
	if err := c.sys.started(cmd.Process, c.limits); err != nil {
		c.giveUp(fmt.Errorf("its limits cannot be set: %w", err))
	}
	if c.reason() != nil {
		c.kill() // the host gave up before the process existed
	}
	return [2]*os.File{outR, errR}, nil
}

// start starts the command. A file that was just written may be busy for a moment: if
// another goroutine of the host forks at that time, its child has our descriptor until it
// executes its program.
func (c *child) start(stdin, stdout, stderr *os.File) (*exec.Cmd, error) {
	shared := false // the namespaces of the host
	for wait := time.Millisecond; ; wait *= 2 {
		cmd := &exec.Cmd{Path: c.path, Args: c.args, Env: c.env, Dir: c.work, Stdin: stdin, Stdout: stdout, Stderr: stderr}
		c.sys.prepare(cmd, shared)
		err := cmd.Start()
		switch {
		case err == nil && shared:
			c.sys.shares()
		case err != nil && c.sys.refused(cmd, err):
			shared = true // a file that may not be executed has the same errors: the second try decides
			continue
		}
		if err == nil || !isBusy(err) || wait > 200*time.Millisecond {
			return cmd, err
		}
		time.Sleep(wait) //nolint:forbidigo // there is no event when the file is free
	}
}

// readStdout passes on the handshake if it is valid, and treats the rest as output.
func (c *child) readStdout(f *os.File) {
	in := bufio.NewReaderSize(f, maxHandshake)
	line, err := in.ReadSlice('\n')
	if len(line) > 0 && (err == nil || errors.Is(err, bufio.ErrBufferFull) || errors.Is(err, io.EOF)) {
		h, fault := parseHandshake(string(line), c.mtls)
		if fault == nil {
			fault = c.sys.checkAddress(h, c.dir, c.mtls)
		}
		if fault != nil {
			c.out.write(line, "stdout")
			c.giveUp(fault)
		} else {
			c.addr.Store(&h)
			if _, err := io.WriteString(c.toHost, h.line()); err != nil {
				c.giveUp(err)
			}
		}
	}
	c.out.read(in, "stdout")
}

// reap waits for the process to end, kills its group and returns its exit status.
func (c *child) reap() string {
	if c.sys.await(c.cmd.Process) {
		c.end() // before another process can get its PID
	}
	err := c.cmd.Wait()
	c.end()
	if c.cmd.ProcessState == nil {
		return err.Error()
	}
	return c.cmd.ProcessState.String()
}

// end kills the descendants of the process that are still running, once.
func (c *child) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alive {
		c.alive = false
		c.sys.kill(c.cmd.Process)
	}
}

// giveUp kills the process because of err.
func (c *child) giveUp(err error) {
	c.fault.CompareAndSwap(nil, &err)
	c.kill()
}

// reason returns why the host killed the process; nil if it did not.
func (c *child) reason() error { return stored(&c.fault) }

// kill ends the process and its group at once.
func (c *child) kill() {
	if c.attached {
		c.link.cut()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alive {
		c.sys.kill(c.cmd.Process)
	}
}

// address returns where the process listens, once it has announced it.
func (c *child) address() handshake {
	if h := c.addr.Load(); h != nil {
		return *h
	}
	return handshake{}
}

// Wait waits for the end of the process.
func (c *child) Wait(context.Context) error {
	<-c.exited
	return nil
}

// Kill ends the process.
func (c *child) Kill(context.Context) error {
	c.kill()
	return nil
}

// Stdout has the handshake.
func (c *child) Stdout() io.ReadCloser { return c.stdout }

// Stderr has nothing.
func (c *child) Stderr() io.ReadCloser { return c.stderr }

// Name is for go-plugin's logs.
func (c *child) Name() string { return c.args[0] }

// ID is the process id; empty if nothing was started.
func (c *child) ID() string {
	if pid := c.pid(); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

func (c *child) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// Diagnose is for go-plugin's errors, which are not shown.
func (c *child) Diagnose(context.Context) string { return "" }

// PluginToHost returns the address as the plugin announced it.
func (c *child) PluginToHost(network, address string) (hostNetwork, hostAddress string, err error) {
	return network, address, nil
}

// HostToPlugin is for brokers, which are not used.
func (c *child) HostToPlugin(string, string) (network, address string, err error) {
	return "", "", errors.ErrUnsupported
}
