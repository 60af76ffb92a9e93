package live_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/condensehq/condense/internal/awssign"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// machine has the credentials of the gateway's machine.
type machine struct{ id, secret, session string }

func (m machine) Retrieve(context.Context) (aws.Credentials, error) {
	if m.id == "" {
		return aws.Credentials{}, errors.New("no EC2 IMDS role found")
	}
	return aws.Credentials{AccessKeyID: m.id, SecretAccessKey: m.secret, SessionToken: m.session}, nil
}

// signing makes the gateway sign.
func signing(m machine) func(*live.Options) {
	return func(o *live.Options) {
		onEveryUpstream(o)
		o.Upstreams.Signer = func(string) (live.Signer, error) { return awssign.With(m, "eu-west-1"), nil }
	}
}

// signed signs the requests of a client as the AWS SDK does, for the host that it calls.
type signed struct{ machine }

func (s signed) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, body); err != nil {
		return nil, err
	}
	c, err := s.Retrieve(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	err = v4.NewSigner().SignHTTP(r.Context(), c, r, hex.EncodeToString(hash.Sum(nil)), "bedrock", "us-east-1", time.Now()) //nolint:contextcheck // the clone's
	if err != nil {
		return nil, err
	}
	return http.DefaultTransport.RoundTrip(r)
}

// The gateway signs with its own credentials: a client without any, and one that signs with keys of its own, which the
// vendor does not know. The vendor verifies each signature with an implementation of its own.
func TestGatewaySignsForAmazon(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	own := machine{"AKIAGATEWAY", "gateway's secret", "session"}
	for _, api := range []upstream.API{upstream.Messages, upstream.Converse} {
		for name, client := range map[string]*http.Client{"no keys": nil, "dummy keys": {Transport: signed{machine{"AKIADUMMY", "dummy", ""}}}} {
			t.Run(string(api)+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := upstream.Client{
					API: api, Cloud: upstream.Bedrock, Model: inferenceProfile, Thinking: "adaptive", Session: "s1", Stream: true, HTTP: client,
					Header: http.Header{"Authorization": {"none"}},
				}
				o := upstream.Options{Script: work(20, 6000), Secrets: map[string]string{own.id: own.secret}}
				p := newPlay(t, o, c, signing(own))
				p.works(t)
				p.check(t, 1)
				for _, r := range p.vendor.Records() {
					if r.Cloud == upstream.Bedrock && (r.Header.Get("X-Amz-Security-Token") != own.session || strings.Contains(r.Header.Get("Authorization"), "DUMMY")) {
						t.Errorf("request %d has the client's credentials", r.N)
					}
				}
			})
		}
	}
}

// Where the gateway signs, it also signs the requests with the results of its own tool.
func TestGatewaySignsRecalls(t *testing.T) {
	t.Parallel()
	own := machine{"AKIAGATEWAY", "gateway's secret", ""}
	for _, api := range []upstream.API{upstream.Messages, upstream.Converse} {
		script := looking(5, "NEEDLE-1", map[int]upstream.Step{3: {Text: "I look.", Calls: []upstream.Call{wants(map[string]any{"grep": "NEEDLE"})}}})
		c := upstream.Client{
			API: api, Cloud: upstream.Bedrock, Model: inferenceProfile, Session: "s1", Stream: true, HTTP: &http.Client{Transport: signed{machine{"AKIADUMMY", "dummy", ""}}},
			Header: http.Header{"Authorization": {"none"}},
		}
		p := newPlay(t, upstream.Options{Script: script, Secrets: map[string]string{own.id: own.secret}}, c, func(o *live.Options) {
			signing(own)(o)
			o.Recall.Tool = true
		})
		p.say(t)
		p.unseen(t)
		if all := p.toolResults(t); len(all) != 1 || len(p.vendor.Refusals()) > 0 {
			t.Errorf("%s: %d recalls, refused %+v", api, len(all), p.vendor.Refusals())
		}
	}
}

// A client's signature holds for the host that it called. The vendor would refuse it, so the client is told how to go on.
func TestSignatureForTheGateway(t *testing.T) {
	t.Parallel()
	ask := func(t *testing.T, transport http.RoundTripper, change func(*live.Options)) (*play, error) {
		t.Helper()
		c := upstream.Client{
			API: upstream.Converse, Cloud: upstream.Bedrock, Model: "anthropic.claude-opus-4-8", Stream: true, HTTP: &http.Client{Transport: transport},
			Header: http.Header{"Authorization": {"none"}},
		}
		p := newPlay(t, upstream.Options{Secrets: map[string]string{"AKIA1": "s"}}, c, change)
		_, _, err := p.client.Step(t.Context())
		return p, err
	}
	p, err := ask(t, signed{machine{"AKIA1", "s", ""}}, onEveryUpstream)
	if err == nil || !strings.Contains(err.Error(), "serve.bedrock.sign: true") || !strings.Contains(err.Error(), "AWS_BEARER_TOKEN_BEDROCK") || len(p.vendor.Records()) > 0 {
		t.Errorf("got %v, and the vendor %d requests", err, len(p.vendor.Records()))
	}
	// The machine of a gateway that signs has no credentials.
	p, err = ask(t, http.DefaultTransport, signing(machine{}))
	if err == nil || !strings.Contains(err.Error(), "403") || !strings.Contains(err.Error(), "could not be signed: AWS credentials: no EC2") || len(p.vendor.Turns()) > 0 {
		t.Errorf("got %v", err)
	}
}

// Conversations belong to a key. The ID of an access key stands for the signature, which is another with each request.
func TestTenantsOfAmazon(t *testing.T) {
	t.Parallel()
	own := machine{"AKIAGATEWAY", "gateway's secret", ""}
	play := func(t *testing.T, keys ...http.RoundTripper) int {
		t.Helper()
		c := upstream.Client{API: upstream.Messages, Cloud: upstream.Bedrock, Model: "us.anthropic.claude-opus-4-8-v1:0", Session: "s1", Header: http.Header{"Authorization": {"none"}}}
		var mu sync.Mutex
		tenants := map[string]bool{}
		o := upstream.Options{Script: upstream.Loop(4, 100, nil), Secrets: map[string]string{own.id: own.secret}}
		p := newPlay(t, o, c, func(o *live.Options) {
			signing(own)(o)
			o.Reports.Record = func(_ context.Context, e *live.Exchange) {
				mu.Lock()
				defer mu.Unlock()
				tenants[e.Tenant] = true
			}
		})
		for i, key := range keys {
			p.client.HTTP = &http.Client{Transport: key}
			if i > 0 {
				p.client.History = p.client.History[:1]
			}
			if _, err := p.client.Say(t.Context(), task); err != nil {
				t.Fatal(err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		return len(tenants)
	}
	one, two := signed{machine{"AKIAONE", "1", ""}}, signed{machine{"AKIATWO", "2", ""}}
	if n := play(t, one, one); n != 1 {
		t.Errorf("one key is %d tenants", n)
	}
	if n := play(t, one, two); n != 2 {
		t.Errorf("two keys are %d tenants", n)
	}
}

// A prompt above the window, by both of the texts in which Amazon says it, is condensed and sent again.
func TestOverflowOfAmazon(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, api := range []upstream.API{upstream.Messages, upstream.Converse} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			c := upstream.Client{API: api, Cloud: upstream.Bedrock, Model: "us.anthropic.claude-opus-4-8-v1:0", Session: "s1", Stream: true}
			p := playIn(t, 4*window, upstream.Options{Window: window, Script: upstream.Loop(20, 6000, nil)}, c, onEveryUpstream)
			if _, err := p.client.Say(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			if s := p.Stats(); s.EpochCount == 0 || s.Errors["retry_overflow"] == 0 || len(p.vendor.Refusals()) > 0 {
				t.Errorf("%d epochs, %v", s.EpochCount, s.Errors)
			}
		})
	}
}

// Bodies of other vendors' models, and requests for other things, pass unread.
func TestOtherModelsOfAmazon(t *testing.T) {
	t.Parallel()
	g, to := recorded(t, map[string]string{"bedrock": "http://bedrock-runtime.us-east-1.amazonaws.com"})
	for _, body := range []string{
		`{"prompt":"hello","max_gen_len":9}`,
		`{"messages":[{"role":"user","content":[{"text":"hello"}]}],"inferenceConfig":{"max_new_tokens":9}}`,
	} {
		r := request(http.MethodPost, "/model/us.amazon.nova-pro-v1%3A0/invoke")
		r.Header.Set("Authorization", "Bearer ABSK1")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		if status, text := visit(g, r); status != http.StatusOK {
			t.Errorf("%d %s", status, text)
		}
		if got := to.take(); len(got) != 1 || got[0].URL.EscapedPath() != "/model/us.amazon.nova-pro-v1%3A0/invoke" {
			t.Errorf("%s: sent %v", body, got)
		}
	}
}

// With the machine's credentials only models are called, and the two lists read, however an upstream is addressed. Whoever reaches
// the gateway cannot delete, start or buy anything with them.
func TestOnlyModelCallsAreSigned(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method+" "+r.RequestURI)
		for name := range r.Header {
			if strings.Contains(name, "Override") || name == "Cookie" || name == "X-Amz-Target" {
				t.Errorf("%s %s: signed with the header %s", r.Method, r.RequestURI, name)
			}
		}
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(vendor.Close)
	_, s := serveWith(t, vendor.URL, nil, func(o *live.Options) {
		signing(machine{"AKIAGATEWAY", "gateway's secret", ""})(o)
		o.Upstreams.URLs = map[string]string{"bedrock": vendor.URL, "ours": "bedrock+" + vendor.URL + "/base"}
	})
	ask := func(method, path string) (int, string, []string) {
		mu.Lock()
		asked = nil
		mu.Unlock()
		status, body := raw(t, s, method+" "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nCookie: a=b\r\nX-Amz-Target: Delete\r\n"+
			"X-HTTP-Method-Override: DELETE\r\nX-Method-Override: PUT\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
		mu.Lock()
		defer mu.Unlock()
		return status, body, asked
	}
	prefixes := []string{"", "/bedrock", "/ours", "/mode/m/bedrock", "/recall/0123456789abcdef0123456789abcdef", "/profile/p"}
	const arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.x.y-v1%3A0"
	for _, prefix := range prefixes {
		for _, call := range [][2]string{
			{"POST", "/model/a.b/invoke"},
			{"POST", "/model/a.b/invoke-with-response-stream"},
			{"POST", "/model/a.b-v1:0/converse"},
			{"POST", "/model/a.b-v1%3A0/converse-stream"},
			{"POST", "/model/a.b/count-tokens"},
			{"POST", "/model/" + arn + "/converse"},
			{"GET", "/foundation-models"},
			{"GET", "/foundation-models?byProvider=anthropic"},
			{"GET", "/inference-profiles"},
		} {
			if status, body, got := ask(call[0], prefix+call[1]); status != http.StatusOK || len(got) != 1 {
				t.Errorf("%s %s%s: %d %s, sent %q", call[0], prefix, call[1], status, body, got)
			}
		}
		for _, path := range []string{
			"/inference-profiles/x", "/inference-profiles", "/inference-profiles/", "/foundation-models/x", "/foundation-models", "/async-invoke",
			"/guardrail/x/version/1/apply", "/guardrails", "/custom-models", "/imported-models/x", "/model-invocation-job", "/model-customization-jobs",
			"/provisioned-model-throughput", "/model/x", "/model/x/other", "/model/x/y/converse", "/model/x/invoke/", "//model/x/invoke",
			"/model//invoke", "/model/x//invoke", "/model/x%2Finvoke", "/model%2Fx/invoke", "/model/x%2Fy/invoke", "/model/x%252Finvoke/invoke",
			"/model/x/invoke%2F..%2F..%2Fcustom-models", "/model/..%2Fcustom-models/invoke", "/model/x/../../custom-models", "/model/x;a/invoke",
			"/%6Dodel/x/invoke", "/model/x/invoke?X-HTTP-Method-Override=DELETE", "/model/x/invoke?a=b", "/custom-models?/model/x/invoke",
			"/model/x%3F/invoke", "/model/x%23/invoke", "/model/x%5C..%5Cy/invoke", "/foundation%2Dmodels", "/custom-models/model/x/invoke",
			"/model/arn%3Aaws%3Abedrock%3A%3A%3Aa%2F..%2F..%2Fcustom-models/invoke", "/v1/model/x/invoke", "/",
		} {
			for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
				if method == "GET" && (path == "/foundation-models" || path == "/inference-profiles") {
					continue
				}
				status, body, got := ask(method, prefix+path)
				if len(got) > 0 || status != http.StatusForbidden && status != http.StatusBadRequest && status != http.StatusNotFound {
					t.Errorf("%s %s%s: %d %s, sent %q", method, prefix, path, status, body, got)
				}
			}
		}
	}
	for _, call := range [][2]string{{"DELETE", "/inference-profiles/x"}, {"PUT", "/foundation-models"}, {"POST", "/bedrock/custom-models"}} {
		if status, body, _ := ask(call[0], call[1]); status != http.StatusForbidden || !strings.Contains(body, "serve.bedrock.sign") {
			t.Errorf("%v: %d %s", call, status, body)
		}
	}
}
