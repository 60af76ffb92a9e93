package config

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/secret"
)

func looksSecret(s string) bool { return secret.Shown(s) }

// secretKeys are keys whose value would be a secret, spelled without separators.
var secretKeys = []string{
	"accesskey", "accesstoken", "apikey", "apisecret", "apitoken", "authorization", "authtoken",
	"bearertoken", "clientsecret", "credential", "credentials", "passphrase", "passwd", "password",
	"privatekey", "secret", "secretaccesskey", "secretkey", "sessiontoken", "token",
}

func secretKey(key string) bool {
	return slices.Contains(secretKeys, fold(key))
}

const secretAdvice = "secrets do not belong in a configuration: put it into an environment variable and name that with %s"

// secrets reports every literal secret below n, never its value.
func (c *checker) secrets(n *node, p path) {
	switch n.shape {
	case mapping:
		for _, pair := range n.pairs {
			if s, ok := pair.value.value.(string); ok && s != "" && secretKey(pair.key) && !looksSecret(s) {
				c.fail(pair.value.at, p.with(pair.key), &fault{problem: "is a literal secret", allowed: c.advice()})
				continue
			}
			c.secrets(pair.value, p.with(pair.key))
		}
	case sequence:
		for _, item := range n.items {
			c.secrets(item, p)
		}
	case scalar:
		if s, ok := n.value.(string); ok && looksSecret(s) {
			c.fail(n.at, p, &fault{problem: "holds what looks like a literal secret", allowed: c.advice()})
		}
	}
}

func (c *checker) advice() string {
	return strings.Replace(secretAdvice, "%s", "api_key_env", 1)
}
