package caller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/caller"
	"github.com/condensehq/condense/registry"
)

// agentHistory returns a conversation of about size bytes as an agent's is: a call, then
// a result of some 1.6 kB, sixty percent of all text in results.
func agentHistory(size int) []core.Message {
	var out []core.Message
	out = append(out, coretest.User(core.Text("Find out why the build fails and mend it.")))
	for n := 0; n < size; {
		id := fmt.Sprintf("toolu_%d", len(out))
		say := strings.Repeat("I look at the next file because the error names it. ", 20)
		result := strings.Repeat("func parse(line string) (string, error) { return line, nil }\n", 32)
		out = append(out,
			coretest.Assistant(core.Text(say), core.ToolCall{ID: id, Name: "read_file", Args: `{"path":"src/parser.go"}`}),
			coretest.User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(result)}}))
		n += len(say) + len(result) + 80
	}
	return coretest.Conversation(out...)
}

// planner hides the older half and says so: an answer that costs nothing itself.
func planner() registry.Strategy {
	type config struct{}
	return registry.Define("planner", "Hides the older half.", func() config { return config{} },
		func(context.Context, config, registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
				half := len(req.Messages)/4*2 + 1
				return &core.Result{Messages: append([]core.Message{
					req.Messages[0], {Role: core.RoleUser, Kind: core.KindMarker, Parts: []core.Part{core.Text("[older messages are hidden]")}},
				}, req.Messages[half:]...)}, nil
			}), nil
		})
}

// overSocket serves s on a unix socket and returns its client.
func overSocket(tb testing.TB, s registry.Strategy) *caller.Client {
	tb.Helper()
	listener := listen(tb)
	server := wire.NewServerTransport()
	wire.NewServer(s, nil).Register(server)
	go func() { _ = server.Serve(listener) }()
	conn, err := grpc.NewClient("unix:"+listener.Addr().String(),
		append(caller.DialTuning(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
	})
	c := caller.NewClient(conn, nil)
	if err := c.Configure(tb.Context(), json.RawMessage(`{}`)); err != nil {
		tb.Fatal(err)
	}
	return c
}

var benchSizes = []struct {
	name string
	size int
}{{"100KB", 100 << 10}, {"1MB", 1 << 20}, {"10MB", 10 << 20}}

func BenchmarkCall(b *testing.B) {
	inProcess, err := planner().Open(b.Context(), nil, registry.Env{})
	if err != nil {
		b.Fatal(err)
	}
	socket := overSocket(b, planner())
	for _, size := range benchSizes {
		req := coretest.HalfRequest(agentHistory(size.size))
		run := func(name string, p core.CondensationProvider) {
			b.Run(name+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(size.size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.Condense(b.Context(), req.Clone()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("process", inProcess)
		run("socket", socket)
		b.Run("raw/"+size.name, func(b *testing.B) { rawCopy(b, size.size) })
	}
}

// listen returns a unix socket. The temporary folder of a test is too long a name for one.
func listen(tb testing.TB) net.Listener {
	tb.Helper()
	dir, err := os.MkdirTemp("", "wire") //nolint:usetesting // see above
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = l.Close()
		_ = os.RemoveAll(dir)
	})
	return l
}

// rawCopy sends size bytes over a unix socket to somebody who reads them and answers one.
func rawCopy(b *testing.B, size int) {
	b.Helper()
	l := listen(b)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		buf := make([]byte, size)
		for {
			if _, err := io.ReadFull(c, buf); err != nil {
				return
			}
			if _, err := c.Write(buf[:1]); err != nil {
				return
			}
		}
	}()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	data, ack := make([]byte, size), make([]byte, 1)
	b.SetBytes(int64(size))
	for b.Loop() {
		if _, err := c.Write(data); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, ack); err != nil {
			b.Fatal(err)
		}
	}
}
