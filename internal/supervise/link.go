package supervise

import (
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A link is the one connection to a process. When it breaks, the process is done for:
// nothing is dialed twice, so a call never lands where the handshake did not lead. When
// the process ends it is cut, because a grandchild may hold the other end.
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

// A linkConn tells its link when it breaks.
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

// noBroker keeps go-plugin's broker from starting: condense does not use it, and for every
// message that a plugin sends there, go-plugin starts a goroutine of five seconds.
func noBroker(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if method == "/plugin.GRPCBroker/StartStream" {
		return nil, status.Error(codes.Unimplemented, "condense uses no broker")
	}
	return streamer(ctx, desc, cc, method, opts...)
}
