// Package servecmd has the commands that run a gateway between agents and the APIs of their
// models: serve, wrap and agent.
package servecmd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/awssign"
	"github.com/condensehq/condense/internal/lab/online"
	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/record"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/live"
)

// Commands returns the commands of this group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{serveCommand(a), wrapCommand(a), agentCommand(a), statsCommand(a), liveCommand(a), statuslineCommand(a), storeCommand(a), tokenCommand(a)}
}

func serveCommand(a *cli.App) *cobra.Command {
	var (
		flags         gatewayFlags
		listen, admin string
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Condense the conversations of running agents: a gateway to their models",
		Long: `serve is a gateway between agents and the APIs of Anthropic and OpenAI, or any API that is compatible. An agent is given its
address as base URL and needs nothing else. Requests that need nothing are forwarded byte for byte. When a conversation
comes near the window of its model, it is condensed by the chain of the configuration, in one step, and then the same
bytes are sent until the next time, so that the vendor's prompt cache keeps working. Answers are never changed, unless
--recall tool adds a tool that the gateway answers itself.

The agents' own keys pass through and are not stored. The settings are in the section serve of the configuration, which
is read again when it changes. The first signal to end waits for answers in progress (serve.drain), a second does not.`,
		Example: `  condense serve
  condense serve --observe
  condense serve --listen 127.0.0.1:0 --upstream openai=http://localhost:11434/v1 --store memory
  ANTHROPIC_BASE_URL=http://127.0.0.1:8765 claude`,
		Args: cli.NoArguments("to run an agent through a gateway of its own: condense wrap"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			set := map[string]string{}
			for key, address := range map[string]string{"serve.listen": listen, "serve.admin.listen": admin} {
				if address != "" {
					set[key] = address
				}
			}
			g, err := flags.open(cmd, a, set, nil)
			if err != nil {
				return err
			}
			return errors.Join(g.serve(cmd.Context(), a), g.Close())
		},
	}
	flags.add(a, cmd)
	cmd.Flags().StringVar(&listen, "listen", "", "`address` to listen on; port 0 takes a free one (default: serve.listen, 127.0.0.1:8765)")
	cmd.Flags().StringVar(&admin, "admin", "", "`address` of the gateway's own pages: statistics, health (default: serve.admin.listen, or the loopback and the next port)")
	return cmd
}

// gatewayFlags are the flags of the commands that run a gateway.
type gatewayFlags struct {
	place         cli.Place
	upstreams     []string
	store, record string
	account       string // a model
	observe       bool
	way           string   // of recall
	recall        bool     // requests without a recall secret carry the gateway's own
	page          bool     // with alone: the pages are shown, with texts, to the user who has their address
	alone         bool     // only a child of this process uses it: no token, no certificate, no audit
	unversioned   []string // upstreams from the agent's own settings whose paths have no /v1
	log, logAs    string
	every         time.Duration // between two looks at the files of the configuration; 0 is the default
}

func (f *gatewayFlags) add(a *cli.App, cmd *cobra.Command) {
	f.place.Flags(a, cmd)
	set := cmd.Flags()
	set.StringArrayVar(&f.upstreams, "upstream", nil, "`NAME=URL` of an API to forward to: anthropic=…, openai=…, or another name, /NAME in the base URL, with what is spoken there: openrouter=openai+https://…; repeat it for each (default: serve.upstreams, the vendors' own)")
	set.StringVar(&f.store, "store", "", "`file` for state that must survive a restart, postgres://… or memory (default: serve.store)")
	set.StringVar(&f.record, "record", "", "`folder` to record conversations in, or off (default: serve.record, off)")
	set.StringVar(&f.account, "account", "", "`model` of the configuration that writes an account of each conversation next to its requests; client for the agent's own with its API key, client-plan also with the login of a plan; or off (default: serve.account, off)")
	set.StringVar(&f.way, "recall", "", "`way` in which agents get back what was condensed: mcp, tool (a tool that the gateway adds and answers) or off (default: serve.recall, mcp)")
	cli.Complete(cmd, "recall", []string{"mcp", "tool", "off"})
	set.BoolVar(&f.observe, "observe", false, "forward everything untouched and report what would have been saved")
	set.StringVar(&f.log, "log", "info", "`level` of the log on standard error: "+strings.Join(cli.LogLevels, ", "))
	cli.Complete(cmd, "log", cli.LogLevels)
	set.StringVar(&f.logAs, "log-format", "text", "`form` of its lines: text or json")
	cli.Complete(cmd, "log-format", []string{"text", "json"})
}

// settings returns the flags that were given, as keys of the configuration.
func (f *gatewayFlags) settings(cmd *cobra.Command) (map[string]string, error) {
	set := map[string]string{}
	for _, pair := range f.upstreams {
		name, address, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, cli.Usage(cmd, "--upstream: %q: want NAME=URL, as in openai=http://localhost:11434/v1", pair)
		}
		set["serve.upstreams."+name] = address
	}
	for key, value := range map[string]string{"serve.store": f.store, "serve.record": f.record, "serve.account": f.account} {
		if value != "" {
			set[key] = value
		}
	}
	switch f.way {
	case "":
	case "mcp", "tool", "off":
		set["serve.recall.mcp"] = strconv.FormatBool(f.way == "mcp")
		set["serve.recall.tool"] = strconv.FormatBool(f.way == "tool")
	default:
		return nil, cli.Usage(cmd, "--recall: %q: want mcp, tool or off", f.way)
	}
	if cmd.Flags().Changed("observe") {
		set["serve.observe"] = strconv.FormatBool(f.observe)
	}
	return set, nil
}

// named replaces the keys of the configuration by the flags that the user typed, if all faults are
// in flags.
func named(cmd *cobra.Command, err error) error {
	faults, ok := errors.AsType[config.Errors](err)
	if !ok || slices.ContainsFunc(faults, func(e *config.Error) bool { return e.Origin.Kind != config.FromFlag }) {
		return err
	}
	var typed []error
	for _, e := range faults {
		name := strings.TrimPrefix(e.Origin.Name, "serve.")
		if of, isUpstream := strings.CutPrefix(name, "upstreams."); isUpstream {
			name = "upstream " + of
			if strings.HasPrefix(e.Suggestion, "serve.") { // the name is none
				e.Problem, e.Suggestion = "the name of an upstream has up to 64 letters, digits, dots and dashes", ""
			}
		}
		e.Key, e.Origin = "", config.Origin{Kind: config.OriginKind("--" + name)}
		typed = append(typed, e)
	}
	return cli.Usage(cmd, "%w", errors.Join(typed...))
}

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
	alone     bool
	page      bool
	ready     chan struct{} // closed when Gateway is set, or never will be
	ending    atomic.Pointer[ending]
	recorder  atomic.Pointer[record.Recorder] // nil if nothing is recorded
	audit     *slog.Logger                    // nil if nothing is recorded
	audited   io.Closer
	key       []byte              // of the server; nil for the key in the store
	telemetry *telemetry          // nil if nothing is measured
	tls       *access.Certified   // nil without a certificate
	pages     *online.Watch       // shown unless a child process is alone
	texts     atomic.Bool         // whether the pages may show the conversations
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
	if !slices.Contains(cli.LogLevels, f.log) {
		return nil, cli.Usage(cmd, "--log: no level %q; there are %s", f.log, strings.Join(cli.LogLevels, ", "))
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.log)); err != nil {
		return nil, cli.Usage(cmd, "--log: %w", err)
	}
	var lines slog.Handler = slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: level})
	switch f.logAs {
	case "text":
	case "json":
		lines = slog.NewJSONHandler(a.Stderr, &slog.HandlerOptions{Level: level})
	default:
		return nil, cli.Usage(cmd, "--log-format: %q: want text or json", f.logAs)
	}
	load := a.Names()
	load.Path, load.Require, load.Serving = a.ConfigPath, required(f.alone), true
	var err error
	if load.Flags, err = f.settings(cmd); err != nil {
		return nil, err
	}
	maps.Copy(load.Flags, more)
	c, err := a.LoadWith(load)
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
		settings: c.Serve(), started: c.ReadAtStart(), place: f.place, recall: f.recall, alone: f.alone, page: f.page, upstreams: upstreams, plain: f.unversioned, ready: make(chan struct{}),
		log:   slog.New(lines),
		limit: func(d time.Duration) { cli.EndWithin(ctx, d) },
	}
	logStandard(g.log)
	if s := g.settings.TLS; s.Cert != "" && !g.alone {
		if g.tls, err = access.Certificate(s.Cert, s.Key, func(err error) { g.log.Warn("the changed certificate is not used", "err", err) }); err != nil {
			return nil, fmt.Errorf("serve.tls: %w", err)
		}
	}
	if path := g.settings.KeyFile; path != "" { // the store is shared with wrap
		if g.key, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("serve.key_file: %w", err)
		}
		if len(g.key) < shortestKey {
			return nil, fmt.Errorf("serve.key_file: %s has %d bytes; use at least %d, as from 'openssl rand -hex 32'", cli.FromHere(path), len(g.key), shortestKey)
		}
	}
	if path := g.settings.Audit; path != "" && !g.alone {
		if g.audit, g.audited, err = openAudit(path); err != nil {
			return nil, fmt.Errorf("serve.audit: %w; name another file", err)
		}
	}
	if !g.alone {
		if g.telemetry, err = openTelemetry(ctx, cli.Version(), g.log); err != nil {
			return nil, err
		}
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
	var shadows []string
	if !g.alone {
		shadows = g.settings.Shadow
	}
	if g.pages, err = online.New(ctx, opts.Store.Path, shadows, g.log); err != nil {
		return nil, errors.Join(badStore(opts.Store.Path, err), g.closeRecorder())
	}
	g.watched(opts)
	g.host, err = condense.Open(ctx, &condense.Options{
		Load: &load, Watch: &config.WatchOptions{Changed: g.changed, Interval: f.every},
		Strategies: a.Own, Plugins: cli.Plugins(), Logger: g.log,
	})
	if err != nil {
		close(g.ready)
		return nil, errors.Join(err, g.pages.Close(ctx), g.closeRecorder())
	}
	g.Gateway, err = live.New(g.host, opts)
	close(g.ready)
	if err != nil { // the other options are from a valid configuration
		return nil, errors.Join(badStore(opts.Store.Path, err), g.host.Close(), g.pages.Close(ctx), g.closeRecorder())
	}
	g.texts.Store(opts.Access.Token != "" || opts.Access.Tokens != "")
	g.setEnding(&g.settings)
	return g, nil
}

// doors are the keys of the section serve that control how callers reach the gateway and who may. The gateway of a
// single child process has none.
var doors = []string{"serve.listen", "serve.admin", "serve.tls", "serve.behind_proxy", "serve.token_env", "serve.token_file", "serve.tokens", "serve.audit"}

// required reports which parts of a file must not be ignored for lack of trust: without them the gateway would be
// open, or send conversations to other addresses than the file's.
func required(alone bool) func(config.Claim) bool {
	return func(part config.Claim) bool {
		isDoor := slices.ContainsFunc(doors, func(key string) bool { return part.Key == key || strings.HasPrefix(part.Key, key+".") })
		return strings.HasPrefix(part.Key, "serve.") && (!alone || !isDoor)
	}
}

// badStore adds advice to the error of a store that cannot be used.
func badStore(address string, err error) error {
	if store.IsPostgres(address) {
		return fmt.Errorf("%w; a gateway starts only if it can use its database; the address is in --store or serve.store, the password in PGPASSWORD or PGPASSFILE", err)
	}
	return fmt.Errorf("%w; name another file with --store or serve.store, or --store memory", err)
}

// closing is how long it may take to close the store and the plugins after the last answer.
const closing = 5 * time.Second

// lastMeasures is the time limit for measuring epochs after the last answer.
const lastMeasures = 2 * time.Second

// flush is how long the last numbers may take to reach a collector.
const flush = 2 * time.Second

func (g *gateway) setEnding(s *config.Serve) {
	e := &ending{time.Duration(s.DrainDelay), time.Duration(s.Drain)}
	if g.alone { // its client ends first
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
	if opts.Reports.Watch = g.pages; !g.alone {
		opts.Reports.Shadow = g.settings.Shadow
		opts.Reports.Pages = g.pages.Pages(func() live.Stats { return g.Stats() }, g.texts.Load)
	} else if g.page {
		opts.Reports.Pages = g.pages.Pages(func() live.Stats { return g.Stats() }, func() bool { return true })
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

// Close closes the gateway and the host.
func (g *gateway) Close() error {
	measured, cancel := context.WithTimeout(context.Background(), lastMeasures)
	defer cancel()
	err := errors.Join(g.Gateway.Close(), g.host.Close(), g.closeRecorder(), g.pages.Close(measured))
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

// accountOf returns the account that a value of serve.account names.
func accountOf(value string) live.Account {
	switch value {
	case "":
		return live.AccountOff
	case config.AccountClient, config.AccountPlan:
		return live.Account(value)
	}
	return live.AccountModel
}

// options returns the options of a gateway for a configuration.
func (g *gateway) options(c *config.Config) (*live.Options, error) {
	s := c.Serve()
	if g.alone {
		s.TokenEnv, s.TokenFile, s.Tokens = "", "", ""
	}
	token, err := readToken(s)
	if err != nil {
		return nil, err
	}
	opts := &live.Options{
		Upstreams: live.Upstreams{URLs: s.Upstreams, Compaction: map[string]live.Compaction{"openai": live.Compaction(s.Compaction.OpenAI)}},
		Store:     live.Store{Path: s.Store, KeepFor: time.Duration(s.Retention.Age), KeepBytes: s.Retention.Size, Key: g.key},
		Access:    live.Access{Token: token, Tokens: s.Tokens, Limits: limitsOf(s.Limits)},
		Reports:   live.Reports{Audit: g.audit, Logger: g.log},
		Choice:    live.Choice{Profile: g.place.Profile, Mode: g.place.Mode},
		Observe:   s.Observe,
		Account:   accountOf(s.Account),
		Bounds:    live.Bounds{MaxBody: s.MaxBody, Deadline: time.Duration(s.Deadline)},
		Recall:    live.Recall{Off: !s.Recall.MCP && !s.Recall.Tool, NoMCP: !s.Recall.MCP, Tool: s.Recall.Tool, Own: g.recall, MaxSize: s.Recall.MaxSize, MaxResult: s.Recall.MaxResult},
		Source:    s.Source,
		Ingest:    live.Ingest{Off: !s.Ingest.Lossless, MaxResult: s.Ingest.MaxResult},
		Epoch:     live.EpochOptions{Target: s.Epoch.Target, IgnoreCold: !s.Epoch.Cold, IgnorePayback: !s.Epoch.Payback, MinSize: s.Epoch.MinSize, Risk: s.Epoch.Risk, Patience: s.Epoch.Boundary},
	}
	if s.Bedrock.Sign {
		opts.Upstreams.Signer = func(host string) (live.Signer, error) { return awssign.Machine(context.Background(), host) }
	}
	if g.alone { // the agent is started in this folder
		if opts.Folder, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Upstreams)) {
		if err := live.CheckUpstream(name, s.Upstreams[name]); err != nil {
			return nil, fmt.Errorf("serve.upstreams.%s: %w", name, err)
		}
	}
	for name, l := range s.Tenants {
		if opts.Access.Tenants == nil {
			opts.Access.Tenants = map[string]live.Limits{}
		}
		opts.Access.Tenants[name] = limitsOf(l)
	}
	g.watched(opts)
	if g.tls != nil {
		opts.Access.Names = g.tls.Names
	}
	if g.telemetry != nil {
		g.telemetry.fill(opts)
	}
	for name, address := range g.upstreams {
		if o, _ := c.Origin("serve", "upstreams", name); o.Kind == config.FromDefault || o.Kind == "" {
			opts.Upstreams.URLs[name] = address
			if slices.Contains(g.plain, name) {
				opts.Upstreams.Unversioned = append(opts.Upstreams.Unversioned, name)
			}
		}
	}
	for i, r := range s.Modes {
		if r.Agent != "" {
			agent := agents.Find(r.Agent)
			if agent == nil {
				return nil, fmt.Errorf("serve.modes[%d].agent: there is no agent %q%s; there are %s", i, r.Agent, suggest.DidYouMean(r.Agent, agents.Names()), strings.Join(agents.Names(), ", "))
			}
			r.Agent = agent.Name
		}
		opts.Choice.Rules = append(opts.Choice.Rules, live.Rule{Model: r.Model, Agent: r.Agent, System: r.System, Profile: r.Profile, Mode: r.Mode})
	}
	return opts, nil
}

func limitsOf(l config.ServeLimits) live.Limits {
	return live.Limits{Requests: int(l.Requests), Concurrent: int(l.Concurrent), Bytes: l.Bytes, ModelEpochs: int(l.ModelEpochs), Cost: l.Cost}
}

// shortestKey is the length in bytes below which a server key is refused.
const shortestKey = 32

// shortestToken is the length in bytes below which a token could be guessed.
const shortestToken = 16

// readToken returns the token of the settings; empty if they have none.
func readToken(s config.Serve) (string, error) {
	token, key, from := "", "token_env", "the environment variable "+s.TokenEnv
	switch {
	case s.TokenEnv != "":
		token = os.Getenv(s.TokenEnv)
	case s.TokenFile != "":
		key, from = "token_file", "the file "+cli.FromHere(s.TokenFile)
		text, err := os.ReadFile(s.TokenFile)
		if err != nil {
			return "", fmt.Errorf("serve.%s: %w", key, err)
		}
		token = strings.TrimSpace(string(text))
	default:
		return "", nil
	}
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == '%' || r == '?' || r == '#' }
	switch {
	case token == "":
		return "", fmt.Errorf("serve.%s: %s is empty or not set; it should hold the token", key, from)
	case len(token) < shortestToken:
		return "", fmt.Errorf("serve.%s: the token in %s has %d characters; use at least %d, as from 'openssl rand -hex 24'", key, from, len(token), shortestToken)
	case strings.ContainsFunc(token, odd):
		return "", fmt.Errorf("serve.%s: the token in %s has a character that a URL cannot have; use letters and digits, as from 'openssl rand -hex 24'", key, from)
	}
	return token, nil
}

// changed applies a changed configuration. The host has it already.
func (g *gateway) changed(before, after *config.Config) {
	<-g.ready
	if g.Gateway == nil {
		return
	}
	old, s := before.Serve(), after.Serve()
	opts, err := g.options(after)
	switch r := g.recorder.Load(); {
	case err != nil:
	case s.Record != old.Record:
		err = g.record(s.Record, opts)
	case r != nil:
		opts.Reports.Record = r.Record
	}
	if err == nil {
		texts := g.texts.Swap(false) // not between the settings
		if err = g.Reload(opts); err == nil {
			texts = opts.Access.Token != "" || opts.Access.Tokens != ""
		}
		g.texts.Store(texts)
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

// server returns a server for a handler. It has no time-outs that would cut an answer.
func (g *gateway) server(h http.Handler) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true) // AWS's SDK for JavaScript speaks nothing else to Bedrock
	return &http.Server{
		Handler: h, Protocols: &protocols, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 3 * time.Minute,
		ErrorLog: slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
}

// serve listens until ctx is done, then ends: answers in progress go on for a while.
func (g *gateway) serve(ctx context.Context, a *cli.App) error {
	l, err := bind(ctx, g.settings.Listen, "--listen or serve.listen")
	if err != nil {
		return err
	}
	pages, err := bindAdmin(ctx, g.settings.Admin.Listen, l.Addr())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	models, admin := g.server(g.Gateway), g.server(g.Admin())
	failed := make(chan error, 2) //nolint:mnd // one for each
	go func() { failed <- models.Serve(g.encrypted(l)) }()
	go func() { failed <- admin.Serve(g.encrypted(pages)) }()
	base := g.address(l.Addr())
	term.Printf(a.Stdout, "condense listens on %s (what it does: %s/condense/)\n", base, g.base(pages.Addr()))
	term.Printf(a.Stdout, "point an agent here: ANTHROPIC_BASE_URL=%[1]s claude, or OPENAI_BASE_URL=%[1]s/v1 for clients of OpenAI's APIs\n", base)
	select {
	case err := <-failed:
		return errors.Join(err, models.Close(), admin.Close())
	case <-ctx.Done():
	}
	e, drain := g.ending.Load(), g.ending.Load().drain
	g.Drain()
	if e.delay > 0 {
		g.log.InfoContext(ctx, "ending soon: new requests are served until balancers know", "delay", e.delay)
		select {
		case err := <-failed:
			return errors.Join(err, models.Close(), admin.Close())
		case <-time.After(e.delay):
		}
	}
	g.log.InfoContext(ctx, "ending: no new requests; answers in progress may go on, unless there is a second signal", "limit", drain)
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := errors.Join(models.Shutdown(rest), g.Finish(rest)); err != nil {
		g.log.WarnContext(ctx, "answers in progress were cut", "limit", drain)
		if err := models.Close(); err != nil {
			g.log.DebugContext(ctx, "close", "err", err)
		}
	}
	if err := admin.Close(); err != nil {
		g.log.DebugContext(ctx, "close", "err", err)
	}
	s := g.Stats()
	said := []any{"requests", s.Requests, "tokens_sent", size.Group(s.Tokens.Sent), "tokens_saved", size.Group(s.Tokens.Net), "epochs", s.EpochCount}
	if o := s.Observed; o != nil {
		said = append(said, "only_observed", true, "would_have_saved", size.Group(o.Saved), "would_have_condensed", o.Epochs)
	}
	g.log.InfoContext(ctx, "ended", said...)
	return nil
}

// encrypted returns a listener that speaks TLS, if there is a certificate.
func (g *gateway) encrypted(l net.Listener) net.Listener {
	if g.tls == nil {
		return l
	}
	return tls.NewListener(l, g.tls.Config)
}

// bindAdmin listens for the gateway's own pages. Without an address it takes the port after the models' port, or a
// free one if that is in use.
func bindAdmin(ctx context.Context, address string, models net.Addr) (net.Listener, error) {
	if address != "" {
		return bind(ctx, address, "--admin or serve.admin.listen")
	}
	const last = 65535
	if at, ok := models.(*net.TCPAddr); ok && at.Port < last {
		if l, err := bind(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port+1)), ""); err == nil {
			return l, nil
		}
	}
	return bind(ctx, "127.0.0.1:0", "--admin or serve.admin.listen")
}

// bind listens on an address. Its error suggests the setting, named in with, for another address.
func bind(ctx context.Context, address, with string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	advice := ""
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "; another program listens there, perhaps another condense serve: choose another port with " + with + " (0 takes a free one)"
	case errors.Is(err, syscall.EACCES):
		advice = "; choose a port above 1023 with " + with
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		advice = "; it is no address of this machine"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		err = e.Err
	}
	return nil, fmt.Errorf("cannot listen on %s: %w%s", address, err, advice)
}

// address is the base URL for clients, with the token as they may write it in a shell.
func (g *gateway) address(at net.Addr) string {
	base := g.base(at)
	switch s := g.settings; {
	case s.TokenEnv != "":
		base += "/token/$" + s.TokenEnv
	case s.TokenFile != "":
		base += "/token/$(cat " + cli.FromHere(s.TokenFile) + ")"
	case s.Tokens != "":
		base += "/token/TOKEN"
	}
	return base
}

// base is the URL of an address that the gateway listens on.
func (g *gateway) base(at net.Addr) string {
	scheme := "http://"
	if g.tls != nil {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return scheme + at.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		name, _ := os.Hostname()
		host = cmp.Or(name, host)
	}
	return scheme + net.JoinHostPort(host, port)
}
