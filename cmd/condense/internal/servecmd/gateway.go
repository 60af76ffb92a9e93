package servecmd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/record"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lab/online"
	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/live"
)

// A gateway is a live.Gateway with the host that it condenses with. It follows the configuration.
type gateway struct {
	*live.Gateway

	settings  config.Serve      // at the start
	started   map[string]string // the settings that are read then only
	place     cli.Place
	host      *condense.Host
	log       *slog.Logger
	upstreams map[string]string // for vendors without a configured one
	plain     []string          // upstreams whose paths have no /v1
	recall    bool
	knows     *knowing      // with alone
	folder    string        // begins the paths of wrap's page; empty without one
	ready     chan struct{} // closed when Gateway is set, or never will be
	ending    atomic.Pointer[ending]
	recorder  atomic.Pointer[record.Recorder] // nil if nothing is recorded
	audit     *slog.Logger                    // nil if nothing is recorded
	audited   io.Closer
	key       []byte              // of the server; nil for the key in the store
	orders    string              // the secret of the user where no token is needed
	telemetry *telemetry          // nil if nothing is measured
	tls       *access.Certified   // nil without a certificate
	pages     *online.Watch       // shown unless a child process is alone
	limit     func(time.Duration) // that the process may take to end
}

// An ending has the time limits of ending the process: new requests are served for a delay, then answers in progress
// may go on.
type ending struct{ delay, drain time.Duration }

// open makes the gateway that the configuration and the flags ask for. More has keys of the
// configuration that override it; upstreams are the addresses of vendors for which neither the
// configuration nor a flag has one.
func (f *gatewayFlags) open(cmd *cobra.Command, a *cli.App, more, upstreams map[string]string) (*gateway, error) {
	ctx := cmd.Context()
	log, err := f.logger(cmd, a)
	if err != nil {
		return nil, err
	}
	load := a.Names()
	load.Require, load.Serving = required(f.alone), true
	if load.Flags, err = f.settings(cmd); err != nil {
		return nil, err
	}
	maps.Copy(load.Flags, more)
	c, err := a.LoadToUse(load)
	if errors.As(err, new(*config.UntrustedError)) {
		return nil, fmt.Errorf("not started: %w", err)
	}
	if err != nil {
		return nil, named(cmd, err)
	}
	if err := f.place.Check(cmd, a, c); err != nil {
		return nil, err
	}
	g := &gateway{
		settings: c.Serve(), started: c.ReadAtStart(), place: f.place, recall: f.recall, knows: f.knows, upstreams: upstreams,
		plain: f.unversioned, ready: make(chan struct{}),
		log:   log,
		limit: func(d time.Duration) { cli.EndWithin(ctx, d) },
	}
	if f.page {
		g.folder = "/" + rand.Text()
	}
	logStandard(g.log)
	for _, w := range c.Warnings() {
		if strings.HasPrefix(w.Key, "serve.") {
			g.log.WarnContext(ctx, "a setting of the gateway", "setting", w.Key, "problem", w.Problem)
		}
	}
	if g.orders, err = access.Orders(true); err != nil {
		g.log.InfoContext(ctx, "without a token nobody directs conversations at the admin address", "err", err)
		g.orders = rand.Text()
	}
	if err := g.openFiles(ctx); err != nil {
		return nil, err
	}
	opts, err := g.options(c)
	if err != nil {
		return nil, err
	}
	if opts.Store.Path == "" {
		return nil, errors.New("there is no home folder to keep the store in: name a file with --store, or --store memory")
	}
	if err := g.record(g.settings.Record, opts); err != nil {
		return nil, err
	}
	if g.pages, err = online.New(ctx, opts.Store.Path, g.log); err != nil {
		return nil, errors.Join(badStore(opts.Store.Path, err), g.closeRecorder())
	}
	g.watched(opts)
	g.host, err = condense.Open(ctx, &condense.Options{
		Load: &load, Watch: &config.WatchOptions{Changed: g.changed, Interval: f.every},
		Strategies: a.Own, Plugins: cli.Plugins(), Logger: g.log,
	})
	if err != nil {
		close(g.ready)
		return nil, errors.Join(err, g.pages.Close(), g.closeRecorder())
	}
	g.Gateway, err = live.New(g.host, opts)
	close(g.ready)
	if err != nil { // the other options are from a valid configuration
		return nil, errors.Join(badStore(opts.Store.Path, err), g.host.Close(), g.pages.Close(), g.closeRecorder())
	}
	g.setEnding(&g.settings)
	return g, nil
}

// logger returns the log that the flags ask for.
func (f *gatewayFlags) logger(cmd *cobra.Command, a *cli.App) (*slog.Logger, error) {
	if !slices.Contains(cli.LogLevels, f.log) {
		return nil, cli.Usage(cmd, "--log: no level %q; there are %s", f.log, strings.Join(cli.LogLevels, ", "))
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.log)) // it is one of them
	switch f.logAs {
	case "text":
		return slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: level})), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.Stderr, &slog.HandlerOptions{Level: level})), nil
	}
	return nil, cli.Usage(cmd, "--log-format: %q: want text or json", f.logAs)
}

// openFiles reads the certificate and the server's key, and opens the audit log and telemetry, if the settings name them.
func (g *gateway) openFiles(ctx context.Context) (err error) {
	if s := g.settings.TLS; s.Cert != "" && g.knows == nil {
		if g.tls, err = access.Certificate(s.Cert, s.Key, func(err error) { g.log.WarnContext(ctx, "the changed certificate is not used", "err", err) }); err != nil {
			return fmt.Errorf("serve.tls: %w", err)
		}
	}
	if path := g.settings.KeyFile; path != "" { // the store is shared with wrap
		if g.key, err = os.ReadFile(path); err != nil {
			return fmt.Errorf("serve.key_file: %w", err)
		}
		if len(g.key) < shortestKey {
			return fmt.Errorf("serve.key_file: %s has %d bytes; use at least %d, as from 'openssl rand -hex 32'", cli.FromHere(path), len(g.key), shortestKey)
		}
	}
	if path := g.settings.Audit; path != "" && g.knows == nil {
		if g.audit, g.audited, err = openAudit(path); err != nil {
			return fmt.Errorf("serve.audit: %w; name another file", err)
		}
	}
	if g.knows != nil {
		return nil
	}
	g.telemetry, err = openTelemetry(ctx, cli.Version(), g.log)
	return err
}

// doors are the keys of the section serve that control how callers reach the gateway and who may. The gateway of a
// single child process has none.
var doors = []string{"serve.listen", "serve.admin", "serve.tls", "serve.behind_proxy", "serve.token_env", "serve.token_file", "serve.tokens", "serve.audit"}

// required reports which parts of a file must not be ignored for lack of trust: without them the gateway would be
// open, or send conversations to other addresses than the file's. With parts that tune it, it would condense as a stranger says.
func required(alone bool) func(config.Claim) bool {
	return func(part config.Claim) bool {
		isDoor := slices.ContainsFunc(doors, func(key string) bool { return part.Key == key || strings.HasPrefix(part.Key, key+".") })
		return part.Tunes || strings.HasPrefix(part.Key, "serve.") && (!alone || !isDoor)
	}
}

// shortestKey is the length in bytes below which a server key is refused.
const shortestKey = 32

// badStore adds advice to the error of a store that cannot be used.
func badStore(address string, err error) error {
	if store.IsPostgres(address) {
		return fmt.Errorf("%w; a gateway starts only if it can use its database; the address is in --store or serve.store, the password in PGPASSWORD or PGPASSFILE", err)
	}
	return fmt.Errorf("%w; name another file with --store or serve.store, or --store memory", err)
}

// closing is how long it may take to close the store and the plugins after the last answer.
const closing = 5 * time.Second

// flush is how long the last numbers may take to reach a collector.
const flush = 2 * time.Second

// Close closes the gateway and the host.
func (g *gateway) Close() error {
	err := errors.Join(g.Gateway.Close(), g.host.Close(), g.closeRecorder(), g.pages.Close())
	if g.audited != nil {
		err = errors.Join(err, g.audited.Close())
	}
	if g.telemetry != nil {
		ctx, cancel := context.WithTimeout(context.Background(), flush)
		defer cancel()
		if err := g.telemetry.close(ctx); err != nil { // a collector that is away is no fault of the gateway
			g.log.Warn("telemetry: the last numbers were not sent", "err", err)
		}
	}
	return err
}

// changed applies a changed configuration. The host has it already.
func (g *gateway) changed(before, after *config.Config) {
	<-g.ready
	if g.Gateway == nil {
		return
	}
	old, s := before.Serve(), after.Serve()
	if keys := config.Changed(before, after); len(keys) > 0 {
		g.log.Info("the configuration has changed", "keys", strings.Join(keys, ", "))
	}
	opts, err := g.options(after)
	switch r := g.recorder.Load(); {
	case err != nil:
	case s.Record != old.Record:
		err = g.record(s.Record, opts)
	case r != nil:
		opts.Reports.Record = r.Record
	}
	if err == nil {
		err = g.Reload(opts)
	}
	if err != nil {
		g.log.Warn("the changed section serve is not used", "err", err)
		return
	}
	g.setEnding(&s)
	was, is := before.ReadAtStart(), after.ReadAtStart()
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if is[key] != was[key] && is[key] != g.started[key] {
			g.log.Warn("a setting that is read at the start only has changed: restart to use it", "key", key, "now", g.started[key], "changed", is[key])
		}
	}
}

func (g *gateway) setEnding(s *config.Serve) {
	e := &ending{time.Duration(s.DrainDelay), time.Duration(s.Drain)}
	if g.knows != nil { // its client ends first
		e.delay = 0
	}
	g.ending.Store(e)
	g.limit(e.delay + e.drain + closing)
}

// watched makes opts show the pages and collect their data. The pages last as long as the process.
func (g *gateway) watched(opts *live.Options) {
	if g.pages == nil { // it is made later
		return
	}
	if opts.Reports.Watch = g.pages; g.knows == nil || g.folder != "" {
		opts.Reports.Pages = g.pages.Pages(g.folder, func() live.Stats { return g.Stats() })
	}
}

// record makes opts record in a folder, and ends an earlier recording. An empty folder records
// nothing.
func (g *gateway) record(dir string, opts *live.Options) error {
	var r *record.Recorder
	if dir != "" {
		var err error
		if r, err = record.New(dir, g.log); err != nil {
			return fmt.Errorf("serve.record: %w; name another folder, or record nothing with --record off", err)
		}
		opts.Reports.Record = r.Record
	}
	if old := g.recorder.Swap(r); old != nil {
		return old.Close()
	}
	return nil
}

func (g *gateway) closeRecorder() error { return g.record("", &live.Options{}) }
