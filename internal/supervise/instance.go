package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/condensehq/condense/internal/wire"
)

// An instance is a process that has answered, with everything that belongs to it.
type instance struct {
	spec  *Spec
	prog  *program
	dir   string
	child *child
	out   *output
	log   *slog.Logger
	grace time.Duration

	stop   func() // the process, politely; may take for ever
	health grpc_health_v1.HealthClient
	wire   *wire.Client
	about  *wire.Description

	phase   atomic.Value  // what is waited for while it starts, a string
	served  atomic.Int64  // calls that it answered
	changed chan struct{} // has a token when the watcher should look
	settled sync.Once
	over    chan struct{} // closed when the process is gone and it is known why
	crash   *CrashError   // set before over is closed; nil if it was stopped
	gone    chan struct{} // closed when everything of it is gone

	// Guarded by the lock of the Process.
	calls     int       // that run
	idleSince time.Time // if none runs
	abandoned int       // that were given up at their deadline: it may still be working on them
	suspect   bool      // one was just given up
	retired   bool      // gets no more calls, and is stopped when none runs
}

func newInstance(spec *Spec, opts *Options) *instance {
	log := opts.Logger.With("plugin", spec.Name)
	return &instance{
		spec: spec, log: log, grace: opts.Grace, out: newOutput(log), idleSince: time.Now(),
		changed: make(chan struct{}, 1), over: make(chan struct{}), gone: make(chan struct{}),
	}
}

// launch starts a process of prog in the folder dir and waits until it is ready. An error
// leaves nothing behind.
func launch(ctx context.Context, spec *Spec, prog *program, dir string, opts *Options) (*instance, error) {
	i := newInstance(spec, opts)
	i.prog, i.dir = prog, dir
	i.child = newChild(prog, spec, dir, i.out)
	client := plugin.NewClient(i.config(i.callOptions(opts)))
	i.stop = client.Kill
	return i, i.start(ctx, client.Client)
}

// callOptions go with every call.
func (i *instance) callOptions(opts *Options) *wire.ClientOptions {
	o := opts.Client
	if o.Logger == nil {
		o.Logger = i.log
	}
	return &o
}

// start waits until the process is ready that connect connects to. After an error nothing
// of it is left.
func (i *instance) start(ctx context.Context, connect func() (plugin.ClientProtocol, error)) error {
	ctx, cancel := context.WithTimeout(ctx, i.spec.Limits.Start)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { i.child.giveUp(i.late(ctx)) })
	defer stop()
	err := i.prepare(ctx, connect)
	if err == nil && !stop() {
		err = i.late(ctx)
	}
	if err != nil {
		err = i.explain(err)
		i.child.kill()
		return errors.Join(err, i.end())
	}
	return nil
}

// late says why a start took too long; ctx is done.
func (i *instance) late(ctx context.Context) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	missing := "it wrote no handshake to standard output"
	if i.child.addr.Load() != nil {
		missing = "it did not answer on its socket"
	}
	if what, ok := i.phase.Load().(string); ok {
		missing = what
	}
	return fmt.Errorf("it was not ready within %s: %s", i.spec.Limits.Start, missing)
}

// config is what go-plugin is told. See [child] and [link] for what it is not left to do.
func (i *instance) config(client *wire.ClientOptions) *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig:  wire.Handshake,
		VersionedPlugins: wire.Plugins(&wire.Plugin{Options: client}),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         !i.spec.Plaintext,
		SkipHostEnv:      true,
		StartTimeout:     i.spec.Limits.Start + time.Second, // ours comes first
		Logger:           newQuietLogger(i.log, i.out),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: i.dir},
		SyncStdout:       i.out.writer("stdout"),
		SyncStderr:       i.out.writer("stderr"),
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			i.child.setEnv(cmd.Env)
			return i.child, nil
		},
		GRPCDialOptions: i.dialOptions(),
	}
}

func (i *instance) dialOptions() []grpc.DialOption {
	return append(wire.DialTuning(),
		grpc.WithContextDialer(i.child.link.dial),
		grpc.WithChainStreamInterceptor(noBroker),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(wire.MaxEnvelope+64<<10)),
		grpc.WithMaxHeaderListSize(64<<10),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: i.spec.Limits.Start}),
		grpc.WithIdleTimeout(0), // an idle connection must not be closed: it is the only one
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
	)
}

// prepare brings the process to where it can be called.
func (i *instance) prepare(ctx context.Context, connect func() (plugin.ClientProtocol, error)) error {
	if n := len(filepath.Join(i.dir, "plugin0123456789")); i.dir != "" && n > maxSocketPath {
		return fmt.Errorf("the path of a socket in %s would have %d bytes, and may have %d: set TMPDIR to a shorter folder", i.dir, n, maxSocketPath)
	}
	protocol, err := safely(connect)
	if err != nil {
		return err
	}
	conn := protocol.(*plugin.GRPCClient).Conn //nolint:errcheck // no other protocol is allowed
	i.health = grpc_health_v1.NewHealthClient(conn)
	i.phase.Store("it did not answer a health check")
	if err := i.check(ctx); err != nil {
		return err
	}
	i.phase.Store("it did not say what it is (Describe)")
	raw, err := protocol.Dispense(wire.PluginName)
	if err != nil {
		return err
	}
	i.wire = raw.(*wire.Client) //nolint:errcheck // what wire.Plugins dispenses
	if i.about, err = i.wire.Describe(ctx); err != nil {
		return err
	}
	i.phase.Store("it did not accept its settings (Configure)")
	if err := i.wire.Configure(ctx, i.spec.Settings); err != nil {
		if bad := new(wire.SettingsError); errors.As(err, &bad) {
			return fmt.Errorf("settings: %w", err)
		}
		return err
	}
	return nil
}

// safely makes an error of a panic of go-plugin's: whatever it may find in what a plugin
// sends must not end the host.
func safely(connect func() (plugin.ClientProtocol, error)) (protocol plugin.ClientProtocol, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("go-plugin panics: %v", p)
		}
	}()
	return connect()
}

// check asks the process whether it is well, within ctx.
func (i *instance) check(ctx context.Context) error {
	res, err := i.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	if err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	if s := res.GetStatus(); s != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("health check: it says %s; want SERVING", s)
	}
	return nil
}

// probe is a check with the deadline for checks.
func (i *instance) probe(ctx context.Context) error {
	limit := i.spec.Limits.Health
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := i.check(ctx); errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it hung: no answer to a health check within %s", limit)
	} else if err != nil {
		return short(err)
	}
	return nil
}

// exitDelay is how long after a connection broke the end of the process is waited for, to
// say how it ended. It takes milliseconds, unless the machine is very busy.
const exitDelay = time.Second

// report makes the crash report of a process.
func (i *instance) report() *CrashError {
	headline, text := i.out.crash()
	e := &CrashError{
		Plugin: i.spec.Name, PID: i.child.pid(), Status: "still running", Reason: i.child.reason(),
		Panic: headline, Output: text, Uptime: time.Since(i.child.started), Calls: i.served.Load(),
	}
	select {
	case <-i.child.exited:
		e.Status, e.Uptime = i.child.status, i.child.uptime
	default:
	}
	return e
}

// settle tells waiting calls that the process was stopped, for the reason err if it is not
// nil. Only the first call counts.
func (i *instance) settle(err error) {
	if err == nil {
		i.settleCrash(nil)
		return
	}
	crash := i.report()
	crash.Reason = err
	i.settleCrash(crash)
}

// settleCrash tells waiting calls what became of the process. Only the first call counts.
func (i *instance) settleCrash(crash *CrashError) {
	i.settled.Do(func() {
		i.crash = crash
		close(i.over)
	})
}

// end stops the process, politely if it answers, and releases what it had. go-plugin's
// Kill has no end for a process that is stopped or hung, so it is bounded.
func (i *instance) end() error {
	killed := make(chan struct{})
	go func() { i.stop(); close(killed) }()
	for _, last := range []bool{false, true} {
		select {
		case <-killed:
			i.child.kill() // nothing if go-plugin knew of the process
			if i.child.attached {
				return nil
			}
			i.child.sys.killStrays(i.dir)
			return removeAll(i.dir)
		case <-time.After(i.grace):
		}
		if last {
			break
		}
		i.child.kill()
		i.child.link.cut()
	}
	return fmt.Errorf("plugin %s: process %s cannot be killed", i.spec.Name, strconv.Itoa(i.child.pid()))
}

// touch tells the watcher of i that something has changed.
func (i *instance) touch() {
	select {
	case i.changed <- struct{}{}:
	default:
	}
}
