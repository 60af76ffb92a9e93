// Package sdktest shows an author's strategy through the protocol of plugins, in the
// process of a test.
package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/extractive"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/caller"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// Extractive returns a model for tests, without a key: it picks sentences of its prompt, always the same, and labels them as an extract.
func Extractive() model.Generator { return extractive.New() }

// Loopback opens s with settings, a JSON object or nil for the defaults, and returns the provider that a host would
// see if s were a plugin: everything goes through the real protocol, but without a process. The test ends at once if
// the settings are refused. The strategy's log appears in the log of the test. Everything is closed when the test
// ends.
//
// One line runs the conformance suite over it:
//
//	coretest.Run(t, func(t *testing.T) core.CondensationProvider {
//		return sdktest.Loopback(t, Strategy(), nil)
//	})
func Loopback(tb testing.TB, s registry.Strategy, settings json.RawMessage) core.CondensationProvider {
	tb.Helper()
	return LoopbackModels(tb, s, settings, nil)
}

// LoopbackModels is [Loopback] with a host that provides these language models, by name; the one with an empty name
// is the host's choice. Their usage is part of the usage of a result, whether the strategy reports it or not.
func LoopbackModels(tb testing.TB, s registry.Strategy, settings json.RawMessage, models map[string]model.Generator) core.CondensationProvider {
	tb.Helper()
	out := &output{w: tb.Output()}
	log := slog.New(slog.NewTextHandler(out, nil))
	plugin := wire.NewServer(s, &wire.ServerOptions{Version: "test", SDK: "sdktest", Logger: log})
	server := wire.NewServerTransport()
	plugin.Register(server)
	listener := bufconn.Listen(1 << 20)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil {
			log.Error("serving", "error", err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///loopback",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		serving.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := plugin.Close(ctx); err != nil {
			tb.Errorf("close %s: %v", s.Name, err)
		}
		out.end()
	})
	client := caller.NewClient(conn, addModels(models, &caller.Options{Host: "sdktest", Logger: log}))
	if _, err := client.Describe(tb.Context()); err != nil { // as a host does: its abilities are in force from here on
		tb.Fatal(err)
	}
	if err := client.Configure(tb.Context(), settings); err != nil {
		tb.Fatalf("%s refuses its settings: %v", s.Name, err)
	}
	return client
}

// addModels adds these models to the options of a host.
func addModels(models map[string]model.Generator, opts *caller.Options) *caller.Options {
	if len(models) == 0 {
		return opts
	}
	names := slices.Sorted(maps.Keys(models))
	opts.Model = func(_ *core.Request, name string) (model.Generator, error) {
		if m, ok := models[name]; ok {
			return m, nil
		}
		return nil, fmt.Errorf("the test has no language model %q; there are %q", name, names)
	}
	opts.Models = func(*core.Request) iter.Seq2[string, model.Info] {
		return func(yield func(string, model.Info) bool) {
			for _, name := range names {
				if !yield(name, models[name].Info()) {
					return
				}
			}
		}
	}
	return opts
}

// closeTimeout is how long a provider may go on working when its test has ended.
const closeTimeout = 10 * time.Second

// An output is the log of a test until the test ends: writing to it later would panic.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil {
		return len(p), nil
	}
	return o.w.Write(p)
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = nil
}
