package supervise

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/condensehq/condense/internal/wire"
)

// A link is the only connection to a process. When it breaks, the process is given up:
// nothing is dialed twice, so a call never reaches another address than the handshake's.
// When the process ends the link is cut, because a grandchild may have the other end.
type link struct {
	address func() handshake

	mu     sync.Mutex
	conn   net.Conn
	dialed bool
	cutOff bool
	err    error // of dialing
	once   sync.Once
	broken chan struct{} // closed when the connection is lost
}

func newLink(address func() handshake) *link {
	return &link{address: address, broken: make(chan struct{})}
}

var errDialed = errors.New("the connection to the plugin is lost")

// dial connects to the process, the first time.
func (l *link) dial(ctx context.Context, _ string) (net.Conn, error) {
	l.mu.Lock()
	first := !l.dialed && !l.cutOff
	l.dialed = true
	l.mu.Unlock()
	if !first {
		return nil, errDialed
	}
	h := l.address()
	conn, err := new(net.Dialer).DialContext(ctx, h.network, h.address)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = err; err != nil {
		l.lost()
		return nil, err
	}
	if l.cutOff {
		_ = conn.Close()
		return nil, errDialed
	}
	l.conn = conn
	return &linkConn{conn, l}, nil
}

// cut ends the connection, now or before it begins.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutOff = true
	l.lost()
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

func (l *link) lost() { l.once.Do(func() { close(l.broken) }) }

// dialError returns why the connection never began; nil if it did.
func (l *link) dialError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *link) isBroken() bool {
	select {
	case <-l.broken:
		return true
	default:
		return false
	}
}

// A linkConn notifies its link when it breaks.
type linkConn struct {
	net.Conn

	link *link
}

// Read implements [net.Conn].
func (c *linkConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.link.lost()
	}
	return n, err
}

// Close implements [net.Conn].
func (c *linkConn) Close() error {
	c.link.lost()
	return c.Conn.Close()
}

// noBroker prevents go-plugin's broker from starting. Condense does not use it, and for
// every message that a plugin sends to it go-plugin starts a goroutine for five seconds.
func noBroker(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if method == "/plugin.GRPCBroker/StartStream" {
		return nil, status.Error(codes.Unimplemented, "condense uses no broker")
	}
	return streamer(ctx, desc, cc, method, opts...)
}

// maxHandshake bounds the handshake line on standard output. With a certificate of AutoMTLS
// it has about 900 bytes.
const maxHandshake = 8 << 10

// A handshake is go-plugin's line CORE|VERSION|NETWORK|ADDRESS|PROTOCOL|CERT. go-plugin parses it, too, but its
// errors give no advice, and it connects to any address.
type handshake struct {
	network, address string
	cert             string // of mutual TLS; empty without
}

// line returns the line for go-plugin. It is not the plugin's own: go-plugin v1.8 panics if
// there is a certificate that it did not ask for.
func (h handshake) line() string {
	return fmt.Sprintf("%d|%d|%s|%s|%s|%s\n", plugin.CoreProtocolVersion, wire.ProtocolVersion, h.network, h.address, plugin.ProtocolGRPC, h.cert)
}

// parseHandshake parses the first line of a plugin's standard output. The runner checks the
// address.
func parseHandshake(line string, mutualTLS bool) (handshake, error) {
	f := strings.Split(strings.TrimSpace(line), "|")
	if _, err := strconv.Atoi(f[0]); len(f) < 4 || err != nil {
		return handshake{}, fmt.Errorf("it wrote %s to standard output before its handshake; standard output is for the handshake, write logs to standard error", quote(line))
	}
	if f[0] != strconv.Itoa(plugin.CoreProtocolVersion) {
		return handshake{}, fmt.Errorf("it uses version %s of go-plugin's handshake, this host version %d", quote(f[0]), plugin.CoreProtocolVersion)
	}
	if f[1] != strconv.Itoa(wire.ProtocolVersion) {
		return handshake{}, fmt.Errorf("it uses version %s of the condense protocol, this host version %d; %s", quote(f[1]), wire.ProtocolVersion, older(f[1]))
	}
	if len(f) < 5 || f[4] != string(plugin.ProtocolGRPC) {
		return handshake{}, errors.New("it does not offer gRPC: the fifth field of its handshake must be grpc")
	}
	h := handshake{network: f[2], address: f[3]}
	if mutualTLS {
		if len(f) < 6 || f[5] == "" {
			return handshake{}, errors.New("it offers no certificate: it must serve with TLS if PLUGIN_CLIENT_CERT is set and announce its certificate, or be configured as plaintext")
		}
		if _, err := base64.RawStdEncoding.DecodeString(f[5]); err != nil {
			return handshake{}, fmt.Errorf("the certificate in its handshake is not base64 without padding: %w", err)
		}
		h.cert = f[5]
	}
	return h, nil
}

// older says which side must be updated.
func older(version string) string {
	if v, err := strconv.Atoi(version); err == nil && v > wire.ProtocolVersion {
		return "update the host"
	}
	return "rebuild the plugin with a current SDK"
}

// checkSocket checks that address is a socket in the folder dir and no link: a plugin must
// not make the host connect to another process.
func checkSocket(network, address, dir string) error {
	if network != "unix" {
		return fmt.Errorf("it listens on %s %s; want a unix socket in the folder that %s names", quote(network), quote(address), plugin.EnvUnixSocketDir)
	}
	if filepath.Dir(address) != dir {
		return fmt.Errorf("it listens on %s, which is not in the folder that %s names", quote(address), plugin.EnvUnixSocketDir)
	}
	return isSocket(address)
}

// quote quotes text of a plugin for an error, shortened and without control characters.
func quote(s string) string {
	const most = 200
	if s = strings.TrimSpace(s); len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// A quietLogger writes go-plugin's log to the host's log, all of it at level debug. This package itself logs
// everything that matters to users.
type quietLogger struct {
	hclog.Logger

	log *slog.Logger
	out *output // its rate limit applies, because a plugin can make go-plugin log at will
}

// Log logs at the level debug, whatever the level.
func (l quietLogger) Log(_ hclog.Level, msg string, args ...any) {
	ctx := context.Background()
	if !l.log.Enabled(ctx, slog.LevelDebug) || !l.out.room() {
		return
	}
	args = slices.Clone(args)
	for i, a := range args {
		switch a.(type) {
		case string, error:
			args[i] = clip(printable(fmt.Sprint(a)), maxAttrBytes)
		}
	}
	l.log.DebugContext(ctx, msg, args...) //nolint:sloglint // go-plugin's words
}

// Trace is dropped: go-plugin traces every piece of output.
func (quietLogger) Trace(string, ...any) {}

// Debug implements [hclog.Logger].
func (l quietLogger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }

// Info implements [hclog.Logger].
func (l quietLogger) Info(msg string, args ...any) { l.Log(hclog.Info, msg, args...) }

// Warn implements [hclog.Logger].
func (l quietLogger) Warn(msg string, args ...any) { l.Log(hclog.Warn, msg, args...) }

// Error implements [hclog.Logger].
func (l quietLogger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

// With returns a logger that adds args.
func (l quietLogger) With(args ...any) hclog.Logger {
	return quietLogger{l.Logger, l.log.With(args...), l.out}
}

// Named returns l: slog has no names of loggers.
func (l quietLogger) Named(string) hclog.Logger { return l }

// ResetNamed returns l.
func (l quietLogger) ResetNamed(string) hclog.Logger { return l }

// GetLevel makes go-plugin parse no lines.
func (quietLogger) GetLevel() hclog.Level { return hclog.Off }
