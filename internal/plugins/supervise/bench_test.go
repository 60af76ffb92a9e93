//go:build linux

package supervise_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins/supervise"
)

// benchmarked returns a plugin whose own work takes no time.
func benchmarked(b *testing.B, plaintext bool) *supervise.Process {
	b.Helper()
	dir, err := os.MkdirTemp("", "t") //nolint:usetesting // b.TempDir is too long for a socket
	must(err)
	exe, err := os.Executable()
	must(err)
	sum, err := digest()
	must(err)
	p, err := supervise.Open(supervise.Spec{
		Name: "acme", Path: exe, SHA256: sum, Args: []string{"plugin", "plans", "in=" + dir}, Plaintext: plaintext,
	}, &supervise.Options{TempDir: dir})
	must(err)
	b.Cleanup(func() {
		must(p.Close())
		must(os.RemoveAll(dir))
	})
	return p
}

// BenchmarkStart goes from nothing to the first answer: hash, launch, handshake, health,
// description, settings, a call.
func BenchmarkStart(b *testing.B) {
	for name, plaintext := range map[string]bool{"mtls": false, "plaintext": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				p := benchmarked(b, plaintext)
				b.StartTimer()
				if _, err := p.Condense(b.Context(), request()); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				must(p.Close())
				b.StartTimer()
			}
		})
	}
}

// history returns an agent's session of about size bytes, and its exact size.
func history(size int) (*core.Request, int) {
	var messages []core.Message
	bytes := 0
	text := func(n, of int) core.Text {
		s := fmt.Sprintf("%06d ", n)
		s += strings.Repeat("func (p *Parser) Next() error { return nil } // ", of/48+1)[:of]
		bytes += len(s)
		return core.Text(s)
	}
	for n := 0; bytes < size; n++ {
		id := fmt.Sprintf("call%d", n)
		messages = append(messages,
			coretest.Assistant(text(n, 600), coretest.Call(id)),
			coretest.User(core.ToolResult{CallID: id, Content: []core.Part{text(n, 2500)}}),
		)
	}
	messages[0] = coretest.User(text(0, 600))
	messages[1] = coretest.Assistant(text(1, 600))
	return coretest.HalfRequest(coretest.Conversation(messages...)), bytes
}

var sizes = []struct {
	name  string
	bytes int
}{{"100KB", 100_000}, {"1MB", 1_000_000}, {"10MB", 10_000_000}}

// BenchmarkCall measures a whole call: in process, through a process with and without TLS,
// and for comparison the same number of bytes written to a unix socket, read by another
// process, and acknowledged.
func BenchmarkCall(b *testing.B) {
	for _, size := range sizes {
		req, n := history(size.bytes)
		call := func(p core.CondensationProvider) func(*testing.B) {
			return func(b *testing.B) {
				b.Helper()
				if _, err := p.Condense(b.Context(), req); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.Condense(b.Context(), req); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		b.Run(size.name+"/inprocess", call(core.ProviderFunc(plan)))
		b.Run(size.name+"/plaintext", func(b *testing.B) { call(benchmarked(b, true))(b) })
		b.Run(size.name+"/mtls", func(b *testing.B) { call(benchmarked(b, false))(b) })
		b.Run(size.name+"/rawsocket", func(b *testing.B) { rawSocket(b, n) })
	}
}

// rawSocket measures the minimum: another process reads n bytes.
func rawSocket(b *testing.B, n int) {
	b.Helper()
	dir, err := os.MkdirTemp("", "t") //nolint:usetesting // b.TempDir is too long for a socket
	must(err)
	defer func() { must(os.RemoveAll(dir)) }()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	must(err)
	defer func() { must(l.Close()) }()
	stop := startReader(l.Addr().String(), n)
	defer stop()
	conn, err := l.Accept()
	must(err)
	defer func() { must(conn.Close()) }()
	data, ack := make([]byte, n), make([]byte, 1)
	b.SetBytes(int64(n))
	for b.Loop() {
		if _, err := conn.Write(data); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(conn, ack); err != nil {
			b.Fatal(err)
		}
	}
}
