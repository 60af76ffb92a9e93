// Package cli is the program condense, for variants of condense with strategies of their own:
//
//	func main() { cli.Main(tidy.Strategy()) }
//
// All commands know these strategies like the built-in ones. 'condense build' writes such a program.
package cli

import (
	"context"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/pkoukk/tiktoken-go"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/command"
	"github.com/condensehq/condense/plugin-sdk/host/wasm"
	"github.com/condensehq/condense/registry"
	"github.com/condensehq/condense/tokens"
)

// Main runs the command given by the arguments of the process, with these strategies in addition to the built-in
// ones, and ends the process. A name that two strategies share, built in or not, is an error of every command.
func Main(strategies ...registry.Strategy) {
	wasm.Init()
	for _, name := range []string{tokens.O200kBase, tokens.CL100kBase} {
		tokens.Register("tiktoken/"+name, func() (func(s string) int, error) {
			tiktoken.SetBpeLoader(embedded{})
			e, err := tiktoken.GetEncoding(name)
			return func(s string) int { return len(e.EncodeOrdinary(s)) }, err
		})
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	ctx, limit := cli.WithCleanup(ctx)
	caught := endOnSignal(cancel, limit)
	code := command.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, strategies...)
	if n := caught(); n != 0 && code == cli.ExitFailed {
		code = n
	}
	os.Exit(code)
}

type embedded struct{}

// LoadTiktokenBpe gives tiktoken-go the vocabularies of the program, which it would download.
func (embedded) LoadTiktokenBpe(address string) (map[string]int, error) {
	return tokens.Ranks(strings.TrimSuffix(path.Base(address), ".tiktoken"))
}

// endOnSignal makes the first SIGINT or SIGTERM cancel the command. A second signal ends the
// process at once, as does a command that runs longer than limit allows: files are written under
// another name first, so no half file remains. The returned function gives the exit code of the
// caught signal, 128 plus its number as in a shell, or 0 if there was none.
func endOnSignal(cancel context.CancelCauseFunc, limit func() time.Duration) func() int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	codes := make(chan int, 1)
	go func() {
		s := <-signals
		code := signalCode(s)
		codes <- code
		cancel(received{s})
		select {
		case s := <-signals:
			code = signalCode(s)
		case <-time.After(limit()):
		}
		os.Exit(code)
	}()
	return func() int {
		select {
		case code := <-codes:
			return code
		default:
			return 0
		}
	}
}

// A received signal is the cause of the end of a context, as with signal.NotifyContext.
type received struct{ signal os.Signal }

func (r received) Error() string { return r.signal.String() + " signal received" }

// Is reports that the end by a signal is a cancellation.
func (r received) Is(target error) bool { return target == context.Canceled }

func signalCode(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return cli.ExitFailed
}
