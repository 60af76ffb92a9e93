package coretest

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
)

// This file holds the providers whose answers, if they give any, are lawful.

// Hangs does nothing until it is told to stop.
func Hangs() core.CondensationProvider {
	return core.ProviderFunc(func(ctx context.Context, _ *core.Request) (*core.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

// HangsForever does nothing and does not listen either. It returns when release is
// closed, so that a test can end clean.
func HangsForever(release <-chan struct{}) core.CondensationProvider {
	return core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) {
		<-release
		return nil, errors.New("released")
	})
}

// Dawdles answers in the end, but takes five seconds for every message and never looks
// at its context.
func Dawdles() core.CondensationProvider {
	return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		for range req.Messages {
			<-time.After(5 * time.Second)
		}
		return unchanged(req)
	})
}

// Deaf answers at once, even if nobody waits for it any more.
func Deaf() core.CondensationProvider {
	return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		return unchanged(req)
	})
}

// Panics panics.
func Panics() core.CondensationProvider {
	return attentive(func(*core.Request) (*core.Result, error) { panic("a provider's bug") })
}

// WritesToNilMap has the runtime panic.
func WritesToNilMap() core.CondensationProvider {
	return attentive(func(req *core.Request) (*core.Result, error) {
		var seen struct{ modes map[string]bool }
		seen.modes[req.Mode] = true
		return unchanged(req)
	})
}

// ExitsGoroutine ends the goroutine that it was called in, as a test helper that calls
// t.FailNow does.
func ExitsGoroutine() core.CondensationProvider {
	return attentive(func(*core.Request) (*core.Result, error) {
		runtime.Goexit()
		return nil, nil
	})
}

// ReturnsNilError returns an error that is not nil but holds a nil pointer, so that
// reading it panics.
func ReturnsNilError() core.CondensationProvider {
	return attentive(func(*core.Request) (*core.Result, error) {
		var none *codeError
		return nil, none
	})
}

type codeError struct{ code string }

func (e *codeError) Error() string { return e.code }

// Fails returns an error, whatever it is asked.
func Fails() core.CondensationProvider {
	return attentive(func(*core.Request) (*core.Result, error) { return nil, errors.New("out of order") })
}

// MutatesMessages changes the list of messages that it was given.
func MutatesMessages() core.CondensationProvider {
	return mutator(func(req *core.Request) {
		for i := range req.Messages {
			req.Messages[i].Tokens = 1
		}
	})
}

// MutatesParts changes the parts of the messages that it was given.
func MutatesParts() core.CondensationProvider {
	return mutator(func(req *core.Request) {
		for i := range req.Messages {
			for j := range req.Messages[i].Parts {
				req.Messages[i].Parts[j] = core.Text("mine")
			}
		}
	})
}

// MutatesResults changes the content of the tool results that it was given.
func MutatesResults() core.CondensationProvider {
	return mutator(func(req *core.Request) {
		for i := range req.Messages {
			for _, p := range req.Messages[i].Parts {
				if r, ok := p.(core.ToolResult); ok && len(r.Content) > 0 {
					r.Content[0] = core.Text("mine")
				}
			}
		}
	})
}

// MutatesFiles changes the list of files that it was given.
func MutatesFiles() core.CondensationProvider {
	return mutator(func(req *core.Request) {
		if len(req.FilesRead) > 0 {
			req.FilesRead[0] = "mine"
		}
	})
}

// KeepsRequest changes what it was given by the last call, and its own answer, when the
// next one comes.
func KeepsRequest() core.CondensationProvider {
	var mu sync.Mutex
	var last *core.Request
	return attentive(func(req *core.Request) (*core.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		if last != nil {
			for i := range last.Messages {
				last.Messages[i].Parts = []core.Part{core.Text("mine")}
			}
		}
		last = req
		return unchanged(req)
	})
}

// LiesAboutUsage claims to have been paid.
func LiesAboutUsage() core.CondensationProvider {
	return attentive(func(req *core.Request) (*core.Result, error) {
		return &core.Result{
			Messages: req.Messages,
			Usage:    core.Usage{Calls: -1, InputTokens: math.MinInt, OutputTokens: -5, USD: math.NaN()},
		}, nil
	})
}

func unchanged(req *core.Request) (*core.Result, error) {
	return &core.Result{Messages: req.Messages}, nil
}

// attentive returns a provider that does as f does if its context is not done, so that
// f's sin is the only one.
func attentive(f func(*core.Request) (*core.Result, error)) core.CondensationProvider {
	return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return f(req)
	})
}

// mutator returns a provider that does f to its request and answers what was in it.
func mutator(f func(*core.Request)) core.CondensationProvider {
	return attentive(func(req *core.Request) (*core.Result, error) {
		res := &core.Result{Messages: cloneMessages(req.Messages)}
		f(req)
		return res, nil
	})
}
