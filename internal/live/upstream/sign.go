package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// A Signer signs a request to an upstream in place of its client: it sets headers. The hash is that of the body, a
// SHA-256 in hexadecimal. It is called for every request, from several goroutines.
type Signer func(r *http.Request, hash string) error

// ofSignature are the headers of the client's own signature, which holds only for the body and the host that it sent.
var ofSignature = []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"}

// mostSigned is the most bytes of a body that is signed: Amazon Bedrock takes 25,000,000.
const mostSigned = 32 << 20

// hasBearer reports whether a request carries a key, which needs no signature.
func hasBearer(h http.Header) bool {
	scheme, _, _ := strings.Cut(h.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer")
}

// signed returns a copy of a request with the gateway's signature in place of the client's.
func (u *Upstream) signed(r *http.Request) (*http.Request, error) {
	out := r.WithContext(r.Context())
	out.Header = r.Header.Clone()
	for _, name := range ofSignature {
		out.Header.Del(name)
	}
	hash := sha256.New()
	switch {
	case r.Body == nil || r.Body == http.NoBody:
	case r.GetBody != nil:
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(hash, body); err != nil {
			return nil, err
		}
		if err := body.Close(); err != nil {
			return nil, err
		}
	default:
		body, err := io.ReadAll(io.LimitReader(r.Body, mostSigned+1))
		if err != nil {
			return nil, err
		}
		if len(body) > mostSigned {
			return nil, fmt.Errorf("a body of more than %d MB cannot be signed", mostSigned>>20)
		}
		_, _ = hash.Write(body)
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	if err := u.Sign(out, hex.EncodeToString(hash.Sum(nil))); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	return out, nil
}

// ErrUnsigned is the error of a request that was not sent because it could not be signed.
var ErrUnsigned = errors.New("the request could not be signed")
