//go:build !wasip1

package pluginsdk

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/hashicorp/go-plugin"

	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/registry"
)

// Main serves s to the host that started the program, and does not return. Started by a user,
// the program prints its help; with -debug it waits for a host to attach.
//
// Log records of the strategy, and its writes to standard output and standard error, go to the host's log. Records
// logged with the context of a call are attributed to that call.
func Main(s registry.Strategy) {
	os.Exit((&program{ //nolint:forbidigo // this is an author's main
		strategy: s, args: os.Args, env: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
	}).run())
}

// Now returns the time. For a module of WebAssembly, its use asks for a clock.
func Now() time.Time { return time.Now() }

// A program is Main with its process's arguments, environment and streams.
type program struct {
	strategy       registry.Strategy
	args           []string
	env            func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// The exit codes, which are the same as condense's.
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
	debug.SetGCPercent(400)
	server := p.server()
	plugin.Serve(wire.ServeConfig(server, p.stderr))
	return p.close(server)
}

// exitWithStdin ends the process when the host has closed the other end of its standard
// input, or has died.
func (p *program) exitWithStdin() {
	_, _ = io.Copy(io.Discard, p.stdin)
	os.Exit(exitDone) //nolint:forbidigo // the host is gone
}

func (p *program) server() *wire.Server {
	return wire.NewServer(p.strategy, &wire.ServerOptions{
		Version: version(), SDK: "condense-go " + sdkVersion(), Logger: slog.New(logHandler(p.stderr)),
	})
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

// debug serves until it is interrupted, for a host that does not start the program but
// attaches to it: somebody wants to look at it with a debugger.
func (p *program) debug() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	server := p.server()
	attach := make(chan *plugin.ReattachConfig, 1)
	closed := make(chan struct{})
	config := wire.ServeConfig(server, p.stderr)
	config.Test = &plugin.ServeTestConfig{Context: ctx, ReattachConfigCh: attach, CloseCh: closed}
	go plugin.Serve(config)
	select {
	case a := <-attach:
		line, err := json.Marshal(map[string]wire.Reattach{p.strategy.Name: {
			Protocol: string(a.Protocol), ProtocolVersion: a.ProtocolVersion, Pid: a.Pid, Test: a.Test,
			Addr: wire.ReattachAddr{Network: a.Addr.Network(), String: a.Addr.String()},
		}})
		if err != nil {
			fmt.Fprintln(p.stderr, err)
			return exitFailed
		}
		fmt.Fprintf(p.stdout, `%s waits for a host. It runs until it is interrupted; the connection is not
encrypted. If your condense.yaml has another name for the provider than %q,
write that one into this line, and put the line before your command:

%s='%s' \
  condense run conversation.jsonl
`, p.strategy.Name, p.strategy.Name, wire.EnvReattach, line)
	case <-closed:
		fmt.Fprintln(p.stderr, "could not listen")
		return exitFailed
	}
	<-closed
	return p.close(server)
}

// help describes the program and its use.
func (p *program) help(w io.Writer) {
	s := p.strategy
	path, err := os.Executable()
	if err != nil {
		path = p.args[0]
	}
	fmt.Fprintf(w, "%s is a plugin of condense, which shortens conversations with language models.\n\n", filepath.Base(path))
	fmt.Fprintf(w, "%s\n", wrapped(s.Doc, "  "))
	fmt.Fprintf(w, "It does nothing by itself: condense starts it. Configure it in condense.yaml:\n\n")
	fmt.Fprintf(w, "  providers:\n    %s:\n      plugin: %s\n", s.Name, path)
	settings := s.Settings()
	if len(settings) > 0 {
		fmt.Fprintf(w, "      settings:\n")
		for _, set := range settings {
			fmt.Fprintf(w, "        %s: %s\n", set.Name, set.Default)
		}
		fmt.Fprintf(w, "\nSettings, with their defaults:\n\n")
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		registry.Nested(settings, func(set registry.Setting, _ int) {
			doc := set.Doc
			if len(set.Enum) > 0 {
				doc = strings.TrimSpace(doc + " One of " + strings.Join(set.Enum, ", ") + ".")
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", set.Name, set.Type, set.Default, doc)
		})
		_ = t.Flush()
	}
	fmt.Fprintf(w, "\nTest it with     condense plugin test %s\n", path)
	fmt.Fprintf(w, "Debug it with    %s -debug    which prints what to give to condense\n", path)
}

// wrapped returns the paragraphs of text in lines of at most 78 characters.
func wrapped(text, indent string) string {
	const width = 78
	var b strings.Builder
	for para := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		line := indent
		for word := range strings.FieldsSeq(para) {
			if len(line)+1+len(word) > width && line != indent {
				b.WriteString(line + "\n")
				line = indent
			}
			if line != indent {
				line += " "
			}
			line += word
		}
		b.WriteString(line + "\n\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
