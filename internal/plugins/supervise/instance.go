package supervise

import (
	"cmp"
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
	"github.com/condensehq/condense/internal/wire/caller"
)

// An instance is one process of the plugin, with everything that belongs to it.
type instance struct {
	spec  *Spec
	prog  *program
	dir   string
	child *child
	out   *output
	log   *slog.Logger
	grace time.Duration

	stop   func() // asks the process to exit; may never return
	health grpc_health_v1.HealthClient
	wire   *caller.Client
	about  *caller.Description

	phase   atomic.Value  // the step that a start is waiting for, a string
	served  atomic.Int64  // calls that it answered
	changed chan struct{} // has a token when the watcher should look
	settled sync.Once
	over    chan struct{} // closed when the process has ended and the reason is known
	crash   *CrashError   // set before over is closed; nil if it was stopped
	gone    chan struct{} // closed when nothing of it is left

	// Guarded by the lock of the Process.
	calls     int       // that run
	idleSince time.Time // if none runs
	abandoned int       // calls that ended at their deadline: it may still be working on them
	suspect   bool      // a call has just failed that way
	retired   bool      // gets no more calls, and is stopped when none runs
}

func newInstance(spec *Spec, opts *Options) *instance {
	log := opts.Logger.With("plugin", spec.Name)
	return &instance{
		spec: spec, log: log, grace: opts.Grace, out: newOutput(log),
		changed: make(chan struct{}, 1), over: make(chan struct{}), gone: make(chan struct{}),
	}
}

// launch starts a process of prog in the folder dir and waits until it is ready. After an
// error nothing of it is left.
func launch(ctx context.Context, spec *Spec, prog *program, dir string, opts *Options) (*instance, error) {
	i := newInstance(spec, opts)
	i.prog, i.dir = prog, dir
	i.child = newChild(prog, spec, dir, i.out)
	client := plugin.NewClient(i.config(i.callOptions(opts)))
	i.stop = client.Kill
	return i, i.start(ctx, client.Client)
}

// callOptions returns the options of every call.
func (i *instance) callOptions(opts *Options) *caller.Options {
	o := opts.Client
	o.Logger = cmp.Or(o.Logger, i.log)
	return &o
}

// start connects to the process and waits until it is ready. After an error nothing of it
// is left.
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
		if err = i.explain(err); len(i.spec.Interpreter) > 0 && i.child.addr.Load() == nil && !errors.Is(err, errData) {
			err = fmt.Errorf("%w; a program runs modules if main calls Init of plugin-sdk/host/wasm first: does %s?", err, i.spec.Interpreter[0])
		}
		i.child.kill()
		return errors.Join(err, i.end())
	}
	return nil
}

// late returns why a start took too long; ctx is done.
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

// config returns the configuration of go-plugin. See [child] and [link] for what go-plugin
// does not do itself.
func (i *instance) config(client *caller.Options) *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig:  wire.Handshake,
		VersionedPlugins: caller.Plugins(client),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         !i.spec.Plaintext,
		SkipHostEnv:      true,
		StartTimeout:     i.spec.Limits.Start + time.Second, // ours ends first
		Logger:           quietLogger{hclog.NewNullLogger(), i.log.With("by", "go-plugin"), i.out},
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
	return append(caller.DialTuning(),
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

// prepare makes the process ready for calls.
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
	i.phase.Store("it did not describe itself (Describe)")
	raw, err := protocol.Dispense(wire.PluginName)
	if err != nil {
		return err
	}
	i.wire = raw.(*caller.Client) //nolint:errcheck // the type that wire.Plugins dispenses
	if i.about, err = i.wire.Describe(ctx); err != nil {
		return err
	}
	if may := i.spec.Abilities; may != 0 && (i.about.Abilities == 0 || !may.Allow(i.about.Abilities)) {
		return fmt.Errorf("it declares abilities that it did not have before: %q, and was %q", i.about.Abilities, may)
	}
	i.phase.Store("it did not accept its settings (Configure)")
	if err := i.wire.Configure(ctx, i.spec.Settings); err != nil {
		if bad := new(caller.SettingsError); errors.As(err, &bad) {
			bad.About = i.about
			return fmt.Errorf("settings: %w", err)
		}
		return err
	}
	return nil
}

// safely turns a panic of go-plugin into an error: no data from a plugin may end the host.
func safely(connect func() (plugin.ClientProtocol, error)) (protocol plugin.ClientProtocol, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("go-plugin panics: %v", p)
		}
	}()
	return connect()
}

// check does a health check.
func (i *instance) check(ctx context.Context) error {
	res, err := i.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	if err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	if s := res.GetStatus(); s != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("health check: the answer is %s; want SERVING", s)
	}
	return nil
}

// probe does a health check with the time limit for health checks.
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

// exitDelay is how long to wait for the end of a process after its connection broke, to
// report how it ended. It takes milliseconds unless the machine is very busy.
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

// settle informs waiting calls how the process ended: nil if it was stopped. Only the first call has an effect.
func (i *instance) settle(crash *CrashError) {
	i.settled.Do(func() {
		i.crash = crash
		close(i.over)
	})
}

// end stops the process and removes its files. It asks the process to exit and kills it
// after the grace period: go-plugin's Kill never returns for a process that is suspended.
func (i *instance) end() error {
	killed := make(chan struct{})
	go func() { i.stop(); close(killed) }()
	for _, last := range []bool{false, true} {
		select {
		case <-killed:
			i.child.kill() // does nothing if go-plugin has killed it
			if i.child.attached {
				return nil
			}
			i.child.sys.killEscaped(i.dir)
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

// touch wakes the watcher of i.
func (i *instance) touch() {
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

// explain returns why the process did not become ready: the host's reason for killing it,
// else how it ended, else err.
func (i *instance) explain(err error) error {
	if i.child.pid() == 0 {
		return err
	}
	if i.child.link.isBroken() {
		// A call fails before the end of the process is known.
		select {
		case <-i.child.exited:
		case <-time.After(exitDelay):
		}
	}
	reason := i.child.reason()
	select {
	case <-i.child.exited:
		if reason == nil {
			return i.child.early()
		}
	default:
	}
	if dial := i.child.link.dialError(); reason == nil && dial != nil {
		return fmt.Errorf("it does not accept connections at its announced address: %w", dial)
	}
	if reason == nil {
		// The process runs, and the host has no objection: the plugin itself refused.
		return short(err)
	}
	return reason
}

// explainCall explains the error of a call with ctx: if the connection broke, by the end of
// the process; if the time was over, only by that.
func (i *instance) explainCall(ctx context.Context, err error) error {
	name := i.spec.Name
	end, limited := ctx.Deadline()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("plugin %s: %w", name, context.Cause(ctx))
	case limited && !time.Now().Before(end): // gRPC may notice before ctx does
		return &lateError{name}
	case !i.child.link.isBroken():
		return fmt.Errorf("plugin %s: %w", name, err)
	}
	select {
	case <-i.over:
		if i.crash != nil {
			return i.crash
		}
		return fmt.Errorf("plugin %s: its process was stopped: %w", name, ErrClosed)
	case <-time.After(2 * exitDelay):
		return fmt.Errorf("plugin %s: %w", name, err)
	}
}
