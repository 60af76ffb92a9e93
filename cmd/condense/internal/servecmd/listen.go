package servecmd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/size"
)

// serve listens until ctx is done, then ends: answers in progress go on for a while.
func (g *gateway) serve(ctx context.Context, a *cli.App) error {
	l, err := bind(ctx, g.settings.Listen, "--listen or serve.listen")
	if err != nil {
		return err
	}
	pages, err := bindAdmin(ctx, g.settings.Admin.Listen, l.Addr())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	models, admin := g.server(g.Gateway), g.server(g.Admin())
	failed := make(chan error, 2) //nolint:mnd // one for each
	go func() { failed <- models.Serve(g.encrypted(l)) }()
	go func() { failed <- admin.Serve(g.encrypted(pages)) }()
	base := g.address(l.Addr())
	defer announce(g.base(pages.Addr()) + "/condense/")()
	term.Printf(a.Stdout, "condense listens on %s (what it does: %s/condense/)\n", base, g.base(pages.Addr()))
	term.Printf(a.Stdout, "point an agent here: ANTHROPIC_BASE_URL=%[1]s claude, or OPENAI_BASE_URL=%[1]s/v1 for clients of OpenAI's APIs\n", base)
	_ = term.PrintText(a.Stdout, accountText("serve.account: client", g.settings.Account, "")) // whoever reads it may be gone
	select {
	case err := <-failed:
		return errors.Join(err, models.Close(), admin.Close())
	case <-ctx.Done():
	}
	e, drain := g.ending.Load(), g.ending.Load().drain
	g.Drain()
	if e.delay > 0 {
		g.log.InfoContext(ctx, "ending soon: new requests are served until balancers know", "delay", e.delay)
		select {
		case err := <-failed:
			return errors.Join(err, models.Close(), admin.Close())
		case <-time.After(e.delay):
		}
	}
	g.log.InfoContext(ctx, "ending: no new requests; answers in progress may go on, unless there is a second signal", "limit", drain)
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := errors.Join(models.Shutdown(rest), g.Finish(rest)); err != nil {
		g.log.WarnContext(ctx, "answers in progress were cut", "limit", drain)
		if err := models.Close(); err != nil {
			g.log.DebugContext(ctx, "close", "err", err)
		}
	}
	if err := admin.Close(); err != nil {
		g.log.DebugContext(ctx, "close", "err", err)
	}
	s := g.Stats()
	said := []any{"requests", s.Requests, "tokens_sent", size.Group(s.Tokens.Sent), "tokens_saved", size.Group(s.Tokens.Net), "epochs", s.EpochCount}
	if o := s.Observed; o != nil {
		said = append(said, "only_observed", true, "would_have_saved", size.Group(o.Saved), "would_have_condensed", o.Epochs)
	}
	g.log.InfoContext(ctx, "ended", said...)
	return nil
}

// server returns a server for a handler. It has no time-outs that would cut an answer.
func (g *gateway) server(h http.Handler) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true) // AWS's SDK for JavaScript speaks nothing else to Bedrock
	return &http.Server{
		Handler: h, Protocols: &protocols, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 3 * time.Minute,
		ErrorLog: slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
}

// encrypted returns a listener that speaks TLS, if there is a certificate.
func (g *gateway) encrypted(l net.Listener) net.Listener {
	if g.tls == nil {
		return l
	}
	return tls.NewListener(l, g.tls.Config)
}

// bindAdmin listens for the gateway's own pages. Without an address it takes the port after the models' port, or a
// free one if that is in use.
func bindAdmin(ctx context.Context, address string, models net.Addr) (net.Listener, error) {
	if address != "" {
		return bind(ctx, address, "--admin or serve.admin.listen")
	}
	const last = 65535
	if at, ok := models.(*net.TCPAddr); ok && at.Port < last {
		if l, err := bind(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port+1)), ""); err == nil {
			return l, nil
		}
	}
	return bind(ctx, "127.0.0.1:0", "--admin or serve.admin.listen")
}

// bind listens on an address. Its error suggests the setting, named in with, for another address.
func bind(ctx context.Context, address, with string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	advice := ""
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "; another program listens there, perhaps another condense serve: choose another port with " + with + " (0 takes a free one)"
	case errors.Is(err, syscall.EACCES):
		advice = "; choose a port above 1023 with " + with
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		advice = "; it is no address of this machine"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		err = e.Err
	}
	return nil, fmt.Errorf("cannot listen on %s: %w%s", address, err, advice)
}

// address is the base URL for clients, with the token as they may write it in a shell.
func (g *gateway) address(at net.Addr) string {
	base := g.base(at)
	switch s := g.settings; {
	case s.TokenEnv != "":
		base += "/token/$" + s.TokenEnv
	case s.TokenFile != "":
		base += "/token/$(cat " + cli.FromHere(s.TokenFile) + ")"
	case s.Tokens != "":
		base += "/token/TOKEN"
	}
	return base
}

// base is the URL of an address that the gateway listens on.
func (g *gateway) base(at net.Addr) string {
	scheme := "http://"
	if g.tls != nil {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return scheme + at.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		name, _ := os.Hostname()
		host = cmp.Or(name, host)
	}
	return scheme + net.JoinHostPort(host, port)
}
