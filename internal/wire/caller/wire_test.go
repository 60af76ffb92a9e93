package caller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/caller"
	"github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect returns a connection to a server with the services of register.
func connect(tb testing.TB, register func(grpc.ServiceRegistrar)) *grpc.ClientConn {
	tb.Helper()
	server := wire.NewServerTransport()
	register(server)
	listener := bufconn.Listen(1 << 20)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	conn, err := grpc.NewClient("passthrough:///test",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		<-done
	})
	return conn
}

// serve returns a client of s, configured.
func serve(tb testing.TB, s registry.Strategy, opts *caller.Options) *caller.Client {
	tb.Helper()
	srv := wire.NewServer(s, nil)
	c := caller.NewClient(connect(tb, srv.Register), opts)
	tb.Cleanup(func() {
		if err := srv.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	if err := c.Configure(tb.Context(), nil); err != nil {
		tb.Fatal(err)
	}
	return c
}

// strategy returns one without settings that answers with f.
func strategy(f func(context.Context, *core.Request, registry.Env) (*core.Result, error)) registry.Strategy {
	type none struct{}
	return registry.Define("test", "A test.", func() none { return none{} },
		func(_ context.Context, _ none, env registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
				return f(ctx, req, env)
			}), nil
		})
}

// provided returns a strategy that is p.
func provided(p core.CondensationProvider) registry.Strategy {
	return strategy(func(ctx context.Context, req *core.Request, _ registry.Env) (*core.Result, error) {
		return p.Condense(ctx, req)
	})
}

// A peer is a plugin that speaks the protocol by hand.
type peer struct {
	condensepb.UnimplementedProviderServiceServer

	describe func() *condensepb.DescribeResponse
	condense func(stream grpc.BidiStreamingServer[condensepb.CondenseRequest, condensepb.CondenseResponse]) error
}

func (p *peer) Describe(context.Context, *condensepb.DescribeRequest) (*condensepb.DescribeResponse, error) {
	return p.describe(), nil
}

func (p *peer) Condense(stream grpc.BidiStreamingServer[condensepb.CondenseRequest, condensepb.CondenseResponse]) error {
	return p.condense(stream)
}

func (p *peer) client(tb testing.TB, opts *caller.Options) *caller.Client {
	tb.Helper()
	return caller.NewClient(connect(tb, func(r grpc.ServiceRegistrar) { condensepb.RegisterProviderServiceServer(r, p) }), opts)
}

// chat returns a conversation of n messages of two parts each.
func chat(n int) []core.Message {
	var out []core.Message
	for i := range n {
		m := coretest.User(core.Text(fmt.Sprintf("message %d", i)), core.Text(strings.Repeat("word ", 10)))
		if i%2 == 1 {
			m.Role = core.RoleAssistant
		}
		out = append(out, m)
	}
	return coretest.Conversation(out...)
}

// ids lists the IDs of messages; of a new one its text in quotes.
func ids(messages []core.Message) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		if out[i] = m.ID; m.ID == "" {
			out[i] = fmt.Sprintf("%q", m.Parts)
		}
	}
	return out
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }
