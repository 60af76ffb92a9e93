package config

import (
	"net"
	"slices"
	"strconv"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/tree"
)

// tenantName is what 'condense token new' accepts.
var tenantName = plain.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// serve checks the section serve: its addresses and tokens, and the names of its rules.

func (v *validator) serve() {
	s := v.c.values.Serve
	p := tree.Path{string(inServe)}
	tokens := ""
	for _, source := range []struct{ key, value string }{{"token_env", s.TokenEnv}, {"token_file", s.TokenFile}, {"tokens", s.Tokens}} {
		switch {
		case source.value == "":
		case tokens == "":
			tokens = source.key
		default:
			v.fail(p.With(source.key), &fault{problem: "cannot be combined with " + tokens, allowed: "set one of the two"})
		}
	}
	if s.Account == "client-plan" {
		v.fail(p.With("account"), &fault{problem: "client-plan is gone: no account is written with the login of a plan", allowed: "set client for agents with an API key, or a model of the section models"})
	}
	cert := s.TLS
	if (cert.Cert == "") != (cert.Key == "") {
		v.fail(p.With("tls"), &fault{problem: "has no cert or no key", allowed: "set both"})
	}
	if age := p.With("retention").With("age"); s.Retention.Age < Duration(minRetention) && v.c.origins[age.ID()].Kind != FromFlag {
		v.fail(age, &fault{problem: "is less than a day", allowed: "keep conversations for 24h or more; 'condense store gc --age' deletes at once"})
	}
	encrypted := cert.Cert != "" || s.Proxied
	if s.Proxied && tokens == "" {
		v.fail(p.With("behind_proxy"), &fault{problem: "is set, and no token is: everyone who reaches the proxy could send requests", allowed: "set serve.tokens, serve.token_env or serve.token_file too"})
	}
	for _, l := range []struct {
		p       tree.Path
		address string
	}{{p.With("listen"), s.Listen}, {p.With("admin").With("listen"), s.Admin.Listen}} {
		host, _, err := net.SplitHostPort(l.address)
		switch {
		case err != nil || v.faulty(l.p) || loopback(host):
		case tokens == "":
			v.fail(l.p, &fault{
				problem: "is not on the loopback, and no token is set: everyone who reaches it could send requests",
				allowed: "set serve.tokens, serve.token_env or serve.token_file too, or listen on 127.0.0.1",
			})
		case !encrypted:
			v.fail(l.p, &fault{
				problem: "is not on the loopback, and would be sent keys and conversations unencrypted",
				allowed: "set serve.tls too, or serve.behind_proxy if a reverse proxy speaks HTTPS in front of it, or listen on 127.0.0.1",
			})
		}
	}
	for _, name := range sortedKeys(s.Tenants) {
		if !tenantName().MatchString(name) {
			v.fail(p.With("tenants").With(name), &fault{problem: "no tenant can have this name", allowed: "must be letters, digits and ._- only, at most 64, with a letter or digit first"})
		}
	}
	for i, rule := range s.Modes {
		at := p.With("modes").With(strconv.Itoa(i))
		faulty := func(keys ...string) bool {
			return slices.ContainsFunc(keys, func(key string) bool { return v.faulty(at.With(key)) })
		}
		if v.faulty(at) && v.exact[at.ID()] {
			continue // it is no rule
		}
		if rule.Model == "" && rule.Agent == "" && rule.System == "" && !faulty("model", "agent", "system") {
			v.fail(at, &fault{problem: "has no condition", allowed: "must have model, agent or system; for all other requests set default_profile"})
		}
		switch {
		case faulty("mode", "profile"):
		case (rule.Mode == "") == (rule.Profile == ""):
			v.fail(at, &fault{problem: "does not choose", allowed: "must have either mode or profile"})
		case rule.Profile != "":
			v.profile(at.With("profile"), rule.Profile)
		case !v.hasMode(rule.Mode):
			v.fail(at.With("mode"), v.unknown(toMode, rule.Mode, v.c.Modes))
		}
	}
}
