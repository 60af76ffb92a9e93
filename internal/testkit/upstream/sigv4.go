package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/plain"
)

// checkSignature verifies the key or the signature of a request to Amazon. The signature is computed from the
// documentation, "Create a signed AWS API request", not with the library that signs.
func (v *Vendor) checkSignature(r *Record) *refusal {
	forbidden := func(text string) *refusal {
		return &refusal{status: http.StatusForbidden, rule: "key", text: text}
	}
	header := r.Header.Get("Authorization")
	if token, ok := strings.CutPrefix(header, "Bearer "); ok {
		if token == "" || r.Header.Get("X-Amz-Date") != "" {
			return forbidden("Authentication failed: Please make sure your API Key is valid.")
		}
		return nil
	}
	fields, ok := strings.CutPrefix(header, "AWS4-HMAC-SHA256 ")
	if !ok {
		return forbidden("Missing Authentication Token")
	}
	part := map[string]string{}
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		part[name] = value
	}
	scope := strings.Split(part["Credential"], "/")
	const fieldsOfScope = 5
	if len(scope) != fieldsOfScope || scope[3] != "bedrock" || scope[4] != "aws4_request" {
		return forbidden("Credential should be scoped to correct service: 'bedrock'.")
	}
	secret, ok := v.o.Secrets[scope[0]]
	if !ok {
		return forbidden("The security token included in the request is invalid.")
	}
	date := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", date)
	if err != nil || !strings.HasPrefix(date, scope[1]) || time.Since(at).Abs() > 5*time.Minute {
		return forbidden("Signature expired: " + date)
	}
	names := strings.Split(part["SignedHeaders"], ";")
	// Over HTTP/2 the host is in :authority; here the last hop has no TLS, and so HTTP/1.1.
	host := slices.Contains(names, "host") || slices.Contains(names, ":authority")
	if !slices.IsSorted(names) || !host || !slices.Contains(names, "x-amz-date") {
		return forbidden("The headers that must be signed are not.")
	}
	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + awsEscape(r.route.escaped, true) + "\n" + awsQuery(r.Query) + "\n")
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host", ":authority":
			value = r.route.host
		case "content-length":
			value = strconv.Itoa(len(r.Body))
		}
		canonical.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	canonical.WriteString("\n" + part["SignedHeaders"] + "\n" + r.Sum)
	hash := sha256.Sum256([]byte(canonical.String()))
	toSign := "AWS4-HMAC-SHA256\n" + date + "\n" + strings.Join(scope[1:], "/") + "\n" + hex.EncodeToString(hash[:])
	key := []byte("AWS4" + secret)
	for _, s := range append(slices.Clone(scope[1:]), toSign) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(s))
		key = mac.Sum(nil)
	}
	if hex.EncodeToString(key) != part["Signature"] {
		return forbidden("The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key " +
			"and signing method. Consult the service documentation for details.")
	}
	return nil
}

// awsEscape encodes all but unreserved characters; in a path, slashes stay.
func awsEscape(s string, path bool) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0, path && c == '/':
			b.WriteByte(c)
		default:
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	return b.String()
}

func awsQuery(raw string) string {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return ""
	}
	var pairs []string
	for name, values := range query {
		pairs = append(pairs, plain.Each(values, func(v string) string { return awsEscape(name, false) + "=" + awsEscape(v, false) })...)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}
