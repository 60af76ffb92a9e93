package supervise

import (
	"context"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/condensehq/condense/internal/wire"
)

// attach connects to a plugin that somebody else has started. go-plugin could do it, but
// would ask every second whether that process is still there, for as long as it is.
func attach(ctx context.Context, spec *Spec, opts *Options) (*instance, error) {
	i := newInstance(spec, opts)
	i.log.WarnContext(ctx, "plugin is not started but attached to, without encryption", "address", spec.Attach.Addr.String)
	c := &child{attached: true, limits: &spec.Limits, out: i.out, started: time.Now(), exited: make(chan struct{})}
	c.addr.Store(&handshake{network: spec.Attach.Addr.Network, address: spec.Attach.Addr.String})
	c.link = newLink(c.address)
	i.child = c
	conn, err := grpc.NewClient("passthrough:///plugin", append(i.dialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, err
	}
	i.stop = func() {
		c.link.cut()
		_ = conn.Close()
		c.over.Do(func() {
			c.status, c.uptime = "connection closed", time.Since(c.started)
			close(c.exited)
		})
	}
	go func() {
		<-c.link.broken
		i.stop()
	}()
	return i, i.start(ctx, func() (plugin.ClientProtocol, error) {
		plugins := wire.Plugins(&wire.Plugin{Options: i.callOptions(opts)})[wire.ProtocolVersion]
		return &plugin.GRPCClient{Conn: conn, Plugins: plugins}, nil
	})
}
