// Package seal encrypts condensed messages, so that a client can keep them and only a gateway can read them.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live/internal/payload"
)

// A sealed compaction is the gateway's answer to a request to compact: the condensed messages, encrypted so that only
// gateways can read them. The client sends it back in every later request; the gateway opens it, so the vendor never
// sees it. It is self-contained: every instance with the same secret can open it.
//
// Format: the prefix, then in base64 (URL, without padding) a nonce and the ciphertext of AES-256-GCM, whose
// additional data is the prefix. The key is HKDF-SHA256 of the store's secret for the prefix and the tenant. The
// plaintext is zstd of {"at":"TIME","messages":[…]}.
const (
	Name         = "condense-"
	sealedPrefix = Name + "1."
	sealedFor    = 365 * 24 * time.Hour
	Most         = 16 << 20 // size limit of the messages, in bytes
)

var (
	errForeign = errors.New("it was made for another key or by a gateway with another store, or was changed on the way")
	errOld     = errors.New("it is older than a year")
	errNewer   = errors.New("it was made by a newer version of condense")
	errLarge   = errors.New("it is too large")
)

// A Sealer seals compactions with the secret that it consists of.
type Sealer []byte

// sealing returns the cipher of a tenant.
func (k Sealer) sealing(tenant string) (cipher.AEAD, error) {
	const bits = 256
	key, err := hkdf.Key(sha256.New, k, nil, sealedPrefix+tenant, bits/8)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Seal returns messages as a sealed compaction. The error is errLarge if they exceed maxSealed.
func (k Sealer) Seal(tenant string, messages [][]byte, now time.Time) (string, error) {
	text := rawjson.Append(nil, `{"at":?,"messages":?}`, now, rawjson.Array(messages))
	if len(text) > Most {
		return "", errLarge
	}
	aead, err := k.sealing(tenant)
	if err != nil {
		return "", err
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return "", err
	}
	box := aead.Seal(nil, nil, z.EncodeAll(text, nil), []byte(sealedPrefix)) //nolint:gosec // the cipher adds a random nonce
	return sealedPrefix + base64.RawURLEncoding.EncodeToString(box), nil
}

// Unseal returns the messages of a sealed compaction, which must begin with sealedName. limit is the largest accepted
// size in bytes.
func (k Sealer) Unseal(tenant, sealed string, now time.Time, limit int64) ([][]byte, error) {
	rest, ok := strings.CutPrefix(sealed, sealedPrefix)
	if !ok {
		return nil, errNewer
	}
	box, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	if err != nil {
		return nil, errForeign
	}
	aead, err := k.sealing(tenant)
	if err != nil {
		return nil, err
	}
	packed, err := aead.Open(nil, nil, box, []byte(sealedPrefix))
	if err != nil {
		return nil, errForeign
	}
	text, err := payload.Decode(packed, "zstd", min(limit, Most))
	if err != nil {
		return nil, errLarge
	}
	if now.Sub(rawjson.Time(rawjson.Field(text, "at"))) > sealedFor {
		return nil, errOld
	}
	return slices.Collect(rawjson.Elements(rawjson.Field(text, "messages"))), nil
}

// In returns the content of item if it is a sealed compaction.
func In(item []byte) (string, bool) {
	if !IsCompaction(item) {
		return "", false
	}
	sealed := rawjson.Text(rawjson.Field(item, "encrypted_content"))
	return sealed, strings.HasPrefix(sealed, Name)
}

// IsCompaction reports whether an item of the Responses API is a compaction.
func IsCompaction(item []byte) bool {
	switch rawjson.Text(rawjson.Field(item, "type")) {
	case "compaction", "compaction_summary", "context_compaction":
		return true
	}
	return false
}
