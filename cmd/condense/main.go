// Command condense shortens recorded conversations between people, language models and
// their tools, and shows what it did and why.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	caught := endOnSignal(cancel)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if n := caught(); n != 0 && code == exitFailed {
		code = n
	}
	os.Exit(code)
}

// cleanup is how long a command may take to end after a signal: to stop plugins, and to
// remove what it was writing.
const cleanup = 5 * time.Second

// endOnSignal has the first SIGINT or SIGTERM cancel the command. A second one ends the
// process at once, and so does a command that goes on for too long: files are written under
// another name first, so that half a file is never left. The function that it returns gives
// the exit code that a caught signal asks for, 128 and its number as in a shell; 0 if there
// was none.
func endOnSignal(cancel context.CancelCauseFunc) func() int {
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
		case <-time.After(cleanup):
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

// A received signal is why a context ended, as signal.NotifyContext has it.
type received struct{ signal os.Signal }

func (r received) Error() string        { return r.signal.String() + " signal received" }
func (r received) Is(target error) bool { return target == context.Canceled }

func signalCode(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return exitFailed
}

// await returns the result of f, or the cause of ctx's end as soon as ctx ends. It is for what
// cannot be interrupted: reading from a terminal or a pipe, parsing, counting. f is then
// left to itself, for the process is about to end; it must not write anything.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
