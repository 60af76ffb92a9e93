// Package awssign signs requests to Amazon Bedrock with the AWS credentials of this machine.
package awssign

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/condensehq/condense/internal/plain"
)

// service names the service in signatures, for inference and for the control plane.
const service = "bedrock"

// ofRegion matches the hosts of the service, which name their region.
var ofRegion = plain.Pattern(`^(?:.*\.)?bedrock(?:-runtime)?(?:-fips)?\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|vpce\.amazonaws\.com|api\.aws)$`)

// Machine returns a signer of requests to host. The AWS SDK finds the credentials in variables, files, single sign-on
// or the role of the machine: with the first request, and again when they expire. The region comes from the host name,
// else from the configuration of this machine. The signer may be used concurrently.
func Machine(ctx context.Context, host string) (func(r *http.Request, hash string) error, error) {
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("the configuration of AWS: %w", err)
	}
	region := c.Region
	if m := ofRegion().FindStringSubmatch(host); m != nil {
		region = m[1]
	}
	if region == "" {
		return nil, fmt.Errorf("the region of %s is not known: set AWS_REGION, or use the address bedrock-runtime.REGION.amazonaws.com", host)
	}
	return With(c.Credentials, region), nil
}

// With returns a signer of requests to region. Its argument hash is the SHA-256 of the body, in hexadecimal. It signs only
// the host and the headers that the service reads, because proxies may change the others.
func With(from aws.CredentialsProvider, region string) func(r *http.Request, hash string) error {
	signer := v4.NewSigner()
	return func(r *http.Request, hash string) error {
		if from == nil {
			return errors.New("there are no AWS credentials")
		}
		credentials, err := from.Retrieve(r.Context())
		if err != nil {
			return fmt.Errorf("AWS credentials: %w", err)
		}
		target := *r.URL
		signed := &http.Request{Method: r.Method, URL: &target, Host: r.Host, Header: http.Header{}, ContentLength: r.ContentLength}
		for name, values := range r.Header {
			if strings.HasPrefix(name, "X-Amzn-Bedrock-") || name == "Content-Type" {
				signed.Header[name] = values
			}
		}
		if err := signer.SignHTTP(r.Context(), credentials, signed, hash, service, region, time.Now()); err != nil {
			return err
		}
		for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"} {
			if value := signed.Header.Get(name); value != "" {
				r.Header.Set(name, value)
			}
		}
		return nil
	}
}
