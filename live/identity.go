package live

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live/internal/seal"
)

// loginOf returns the subject of a plan's token, which stays the same in all tokens of a login; empty if the token is
// no JWT, like those of Claude's plans, or has no subject. The signature is not checked here, but by the vendor.
func loginOf(authorization string) string {
	_, token, _ := strings.Cut(authorization, " ")
	parts := strings.Split(token, ".")
	const inJWT = 3
	if len(parts) != inJWT {
		return ""
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || !json.Valid(claims) || !rawjson.IsObject(claims) {
		return ""
	}
	return rawjson.Text(rawjson.Field(claims, "sub"))
}

// opening returns a session ID for clients that send none: the rolling hash at the first message of the user. Without
// it all their conversations would share one session, which an SDK in a server fills with thousands.
func opening(messages []wire.Message, rolling []wire.Hash) string {
	i := max(0, slices.IndexFunc(messages, func(m wire.Message) bool { return m.Role == "user" }))
	return "opening:" + hex.EncodeToString(rolling[i][:])
}

// secrets are the keys that tell clients apart and protect their data. Each is derived from Options.Key, or stored.
type secrets struct {
	tenant []byte // key of the hash that stands for credentials
	recall string // see [Gateway.RecallSecret]
	seals  seal.Sealer
}

// newSecrets derives the secrets from key. Without a key it takes them from the store.
func newSecrets(ctx context.Context, key []byte, in store.Store) (*secrets, error) {
	of := func(name string) ([]byte, error) {
		if key == nil {
			return in.Secret(ctx, name)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(name))
		return mac.Sum(nil), nil
	}
	tenant, err := of("tenant")
	if err != nil {
		return nil, err
	}
	recall, err := of("recall")
	if err != nil {
		return nil, err
	}
	seals, err := of("compaction")
	return &secrets{tenant: tenant, recall: hex.EncodeToString(recall), seals: seals}, err
}

// tenantOf returns a keyed hash of a request's credentials: it identifies a client, but cannot be used as its key. The
// token of a plan changes every few hours, in the middle of conversations, so for plans the account that the client
// names is hashed instead, together with the token's subject if it has one. Neither is verified here; the vendor does
// that later. A false claim gains nothing: conversations are found by their content, so a client that names another's
// account only gets a condensation of messages that it sent itself. For a client with a tenant's token, the tenant's
// name is part of the hash, and its prefix.
func (s *secrets) tenantOf(c tenant.Caller, h http.Header, body []byte) string {
	mac, name := hmac.New(sha256.New, s.tenant), ""
	if c.Tenant != "" {
		name = c.Tenant + ":"
		mac.Write([]byte("tenant\x00" + c.Tenant + "\x00"))
	}
	account := ""
	if agents.Subscription(h) {
		if account = h.Get("Chatgpt-Account-Id"); account == "" {
			account = rawjson.Text(rawjson.Field(rawjson.Field(body, "metadata"), "user_id"))
		}
		if login := loginOf(h.Get("Authorization")); account != "" && login != "" {
			account += "\x00login\x00" + login
		}
	}
	if account != "" {
		mac.Write([]byte("account\x00" + account))
	} else {
		for _, name := range []string{"X-Api-Key", "Authorization", "Api-Key"} {
			for _, v := range h.Values(name) {
				if id := wire.SignedBy(h, ""); id != "" && name == "Authorization" { // each request has another signature
					v = id
				}
				mac.Write([]byte(name + "\x00" + v + "\x00"))
			}
		}
	}
	const size = 16
	return name + hex.EncodeToString(mac.Sum(nil)[:size])
}

// ofAccess are the headers on which access to stored answers depends.
var ofAccess = []string{
	"Authorization", "X-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization", "Chatgpt-Account-Id", "Openai-Organization", "Openai-Project",
}

// credentialOf returns a keyed hash of the credentials of a request themselves, whatever account they claim. Another token of
// the same login has another hash: only the vendor could tell that they belong together.
func (s *secrets) credentialOf(c tenant.Caller, r *http.Request) string {
	mac := hmac.New(sha256.New, s.tenant)
	fmt.Fprintf(mac, "access\x00%q%q", c.Tenant, r.URL.RawQuery)
	for _, name := range ofAccess {
		fmt.Fprintf(mac, "%q", r.Header[name])
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// readerOf returns the identity that can recall the content of a request: a keyed hash of its recall secret. It is
// empty if nobody can.
func (s *secrets) readerOf(r *Recall, t *target) string {
	secret := t.recall
	if secret == "" && r.Own && !t.mcp {
		secret = s.recall
	}
	if r.Off || len(secret) < shortestSecret {
		return ""
	}
	mac := hmac.New(sha256.New, s.tenant)
	if t.who.Tenant == "" {
		mac.Write([]byte("recall\x00" + secret))
	} else { // so that another tenant with the same secret reads nothing
		mac.Write([]byte("recall of a tenant\x00" + t.who.Tenant + "\x00" + secret))
	}
	const size = 16
	return hex.EncodeToString(mac.Sum(nil)[:size])
}
