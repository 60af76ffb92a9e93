// Package pluginsdk makes a program of a strategy: a plugin that condense starts. It is
// all that an author imports beside core and registry:
//
//	func main() { pluginsdk.Main(strategy) }
//
// The same [registry.Strategy] can be compiled into a host instead. Nothing of the
// protocol between host and plugin is to be seen here; docs/protocol.md describes it for
// authors in other languages. The folder is plugin-sdk, which no identifier can be.
package pluginsdk

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/registry"
)

// Main serves s to the host that started the program, and does not return. Started by
// hand it says what the program is, with -debug it waits for a host to attach.
//
// What the strategy logs through its Env goes to the host's log: with the context of a
// call it is filed under that call. What it writes to standard output and standard error
// goes there too.
func Main(s registry.Strategy) {
	os.Exit((&program{ //nolint:forbidigo // this is an author's main
		strategy: s, args: os.Args, env: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
	}).run())
}

// A program is Main with what it takes from its process.
type program struct {
	strategy       registry.Strategy
	args           []string
	env            func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// The exit codes, as those of condense.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func (p *program) run() int {
	if _, err := registry.New(p.strategy); err != nil {
		fmt.Fprintln(p.stderr, err)
		return exitFailed
	}
	wantsDebug := false
	for _, a := range p.args[1:] {
		switch strings.TrimLeft(a, "-") {
		case "h", "help":
			p.help(p.stdout)
			return exitDone
		case "version":
			fmt.Fprintln(p.stdout, p.strategy.Name, version())
			return exitDone
		case "debug":
			wantsDebug = true
		default:
			fmt.Fprintf(p.stderr, "unknown argument %q; there are -h, -version and -debug\n", a)
			return exitUsage
		}
	}
	switch {
	case wantsDebug:
		return p.debug()
	case p.env(wire.Handshake.MagicCookieKey) != wire.Handshake.MagicCookieValue:
		p.help(p.stderr)
		return exitUsage
	default:
		return p.serve()
	}
}

// serve is the life of a plugin under a host.
func (p *program) serve() int {
	if p.env(wire.EnvExitWithStdin) == "1" {
		go p.exitWithStdin()
	}
	server := p.server()
	plugin.Serve(p.config(server))
	return p.close(server)
}

// exitWithStdin ends the process when the host has closed the other end of its standard
// input, or has died.
func (p *program) exitWithStdin() {
	_, _ = io.Copy(io.Discard, p.stdin)
	os.Exit(exitDone) //nolint:forbidigo // there is nobody left to answer
}

func (p *program) server() *wire.Server {
	return wire.NewServer(p.strategy, &wire.ServerOptions{
		Version: version(), SDK: "condense-go " + sdkVersion(), Logger: slog.New(logHandler(p.stderr)),
	})
}

func (p *program) config(server *wire.Server) *plugin.ServeConfig {
	return &plugin.ServeConfig{
		HandshakeConfig:  wire.Handshake,
		VersionedPlugins: wire.Plugins(&wire.Plugin{Served: server}),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return wire.NewServerTransport(opts...)
		},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: p.stderr, JSONFormat: true}),
	}
}

// closeTimeout is how long calls and the provider may take to end. A host waits two
// seconds before it kills.
const closeTimeout = time.Second

func (p *program) close(server *wire.Server) int {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := server.Close(ctx); err != nil {
		fmt.Fprintln(p.stderr, err)
		return exitFailed
	}
	return exitDone
}

// logHandler writes records as go-plugin reads them from a plugin's standard error.
func logHandler(w io.Writer) slog.Handler {
	return slog.NewJSONHandler(w, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) > 0 {
				return a
			}
			switch a.Key {
			case slog.TimeKey:
				return slog.String("@timestamp", a.Value.Time().Format("2006-01-02T15:04:05.000000Z07:00"))
			case slog.LevelKey:
				return slog.String("@level", strings.ToLower(a.Value.String()))
			case slog.MessageKey:
				a.Key = "@message"
			}
			return a
		},
	})
}

// version returns that of the program: of its module, or of the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "devel"
}

// sdkVersion returns the version of this module in the program.
func sdkVersion() string {
	const module = "github.com/condensehq/condense"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == module && m.Version != "" {
			return m.Version
		}
	}
	return "devel"
}
