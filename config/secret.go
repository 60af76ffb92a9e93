package config

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/tree"
)

func looksSecret(s string) bool { return secret.Shown(s) }

// secretKeys are keys whose value would be a secret, spelled without separators.
var secretKeys = []string{
	"accesskey", "accesstoken", "apikey", "apisecret", "apitoken", "authorization", "authtoken",
	"bearertoken", "clientsecret", "credential", "credentials", "passphrase", "passwd", "password",
	"privatekey", "secret", "secretaccesskey", "secretkey", "sessiontoken", "token",
}

func secretKey(key string) bool {
	return slices.Contains(secretKeys, suggest.Fold(key))
}

const secretAdvice = "secrets do not belong in a configuration: put it into an environment variable and name that with %s"

// secrets reports every literal secret below n, never its value.
func (c *checker) secrets(n *tree.Node, p tree.Path) {
	switch n.Shape {
	case tree.Mapping:
		for _, pair := range n.Pairs {
			if s, ok := pair.Value.Value.(string); ok && s != "" && secretKey(pair.Key) && !looksSecret(s) {
				c.fail(pair.Value.At, p.With(pair.Key), &fault{problem: "is a literal secret", allowed: c.advice()})
				continue
			}
			c.secrets(pair.Value, p.With(pair.Key))
		}
	case tree.Sequence:
		for _, item := range n.Items {
			c.secrets(item, p)
		}
	case tree.Scalar:
		if s, ok := n.Value.(string); ok && looksSecret(s) {
			c.fail(n.At, p, &fault{problem: "holds what looks like a literal secret", allowed: c.advice()})
		}
	}
}

func (c *checker) advice() string {
	return strings.Replace(secretAdvice, "%s", "api_key_env", 1)
}
