package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
)

// ofCalls are the headers of a signed request that are the client's. All others stay here: its own signature holds only for the
// host that it called, and who signs must know what is asked.
var ofCalls = []string{"Accept", "Accept-Encoding", "Content-Encoding", "Content-Type", "User-Agent", "Anthropic-Beta", "Traceparent", "Tracestate"}

// maxSigned is the most bytes of a body that is signed: Amazon Bedrock takes 25,000,000.
const maxSigned = 32 << 20

// Signs reports whether the gateway signs a request: with its own credentials, so that the client needs no key.
func (u *Upstream) Signs(h http.Header) bool { return u.Sign != nil && !hasBearer(h) }

// Unsignable returns why a request is not signed, which has this escaped path at the upstream; nil if it is. The machine's account
// may do more than call models, and its owner has agreed to no more.
func (u *Upstream) Unsignable(method, path, query string) error {
	if wire.MayOwn(method, path, query) {
		return nil
	}
	return fmt.Errorf("%w: with the credentials of this machine (serve.bedrock.sign) only models are called (POST /model/ID/invoke, "+
		"invoke-with-response-stream, converse, converse-stream, count-tokens) and listed (GET /foundation-models, "+
		"/inference-profiles); this is %s %s", ErrUnsigned, plain.Clip(method), plain.Clip(path))
}

// hasBearer reports whether a request carries a key, which needs no signature.
func hasBearer(h http.Header) bool {
	scheme, _, _ := strings.Cut(h.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer")
}

// signed returns a copy of a request with the gateway's signature in place of the client's.
func (u *Upstream) signed(r *http.Request) (*http.Request, error) {
	if err := u.Unsignable(r.Method, strings.TrimPrefix(r.URL.EscapedPath(), u.Base.EscapedPath()), r.URL.RawQuery); err != nil {
		return nil, err
	}
	out := r.WithContext(r.Context())
	out.Header = http.Header{}
	for name, values := range r.Header {
		if slices.Contains(ofCalls, name) || strings.HasPrefix(name, "X-Amzn-Bedrock-") || strings.HasPrefix(name, "Amz-Sdk-") {
			out.Header[name] = slices.Clone(values)
		}
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
		body, err := io.ReadAll(io.LimitReader(r.Body, maxSigned+1))
		if err != nil {
			return nil, err
		}
		if len(body) > maxSigned {
			return nil, fmt.Errorf("a body of more than %d MB cannot be signed", maxSigned>>20)
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
