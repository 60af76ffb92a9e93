package pluginsdk

import (
	"context"
	"encoding/json"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/hashicorp/go-plugin"

	"github.com/condensehq/condense/internal/wire"
)

// debug serves until it is interrupted, for a host that does not start the program but
// attaches to it: somebody wants to look at it with a debugger.
func (p *program) debug() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	server := p.server()
	attach := make(chan *plugin.ReattachConfig, 1)
	closed := make(chan struct{})
	config := p.config(server)
	config.Test = &plugin.ServeTestConfig{Context: ctx, ReattachConfigCh: attach, CloseCh: closed}
	go plugin.Serve(config)
	select {
	case a := <-attach:
		line, err := json.Marshal(map[string]wire.Reattach{p.strategy.Name: {
			Protocol: string(a.Protocol), ProtocolVersion: a.ProtocolVersion, Pid: a.Pid, Test: a.Test,
			Addr: wire.ReattachAddr{Network: a.Addr.Network(), String: a.Addr.String()},
		}})
		if err != nil {
			fmt.Fprintln(p.stderr, err)
			return exitFailed
		}
		fmt.Fprintf(p.stdout, `%s waits for a host. It runs until it is interrupted; the connection is not
encrypted. If your condense.yaml has another name for the provider than %q,
write that one into this line, and put the line before your command:

%s='%s' \
  condense run conversation.jsonl
`, p.strategy.Name, p.strategy.Name, wire.EnvReattach, line)
	case <-closed:
		fmt.Fprintln(p.stderr, "could not listen")
		return exitFailed
	}
	<-closed
	return p.close(server)
}
