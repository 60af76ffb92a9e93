package config

import (
	"regexp"
	"slices"
	"strings"
)

// secretShapes are the beginnings of keys that vendors hand out. The list is not complete
// and need not be: it exists so that a pasted key is noticed, not so that one can hide.
var secretShapes = regexp.MustCompile(
	`\b(sk-[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|` +
		`xox[abprs]-[A-Za-z0-9-]{10,}|AIza[0-9A-Za-z_-]{30,}|glpat-[A-Za-z0-9_-]{16,}|gsk_[A-Za-z0-9]{20,}|` +
		`xai-[A-Za-z0-9]{20,}|hf_[A-Za-z0-9]{20,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.)`)

func looksSecret(s string) bool { return secretShapes.MatchString(s) }

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
