package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// A served is what a script with a gateway has: its process, its vendor, and a client.
type served struct {
	vendor  *upstream.Vendor
	process *exec.Cmd
	out     chan string // everything on standard output, once the process has ended
	log     testkit.Log
	sums    sums
	client  *upstream.Client // of the last converse
	said    int              // messages of the client before the last say
}

type servedKey struct{}

// patience is how long a script waits for what must come.
const patience = time.Minute

// serveCommands are the commands of scripts about gateways:
//
//	vendor WINDOW CALLS
//		starts a scripted vendor, which plays an agent's loop of CALLS calls; sets $VENDOR
//	gateway ARG…
//		starts condense serve --listen 127.0.0.1:0 ARG…, or condense serve --config FILE ARG…; sets $GATEWAY and $ADMIN
//	converse API MODEL [PATH [HEADER…]]
//		plays the loop with an agent through $GATEWAY/PATH; "System: …" is its system prompt. It prints what the
//		vendor saw: requests, those that were changed in another way than by the gateway's tool, those with that, the largest in tokens, the
//		messages left by the first epoch
//	[!] say TEXT
//		goes on with the last conversation by a message, or, with !, by that in place of the last one; prints how many messages the client
//		has, how many were sent, whether they are the client's own bytes, and what was refused
//	seen
//		prints path and header of the requests that the vendor got
//	http METHOD URL [HEADER…]
//		sends a request without body; prints status and answer, and when to try again. @FILE at the end of a header is what is in the file. With
//		https, it trusts tls.crt
//	certificate NAME
//		writes tls.crt and tls.key for a host
//	logged PATTERN
//		waits until the gateway has logged a line
//	end SIGNAL CODE
//		sends a signal to the gateway, which must exit with that code; prints its output and log
var serveCommands = map[string]func(*testscript.TestScript, bool, []string){
	"vendor": startVendor, "gateway": startGateway, "converse": converse, "say": goOn, "seen": seen, "http": request, "certificate": certificate, "logged": logged, "end": end,
}

func of(ts *testscript.TestScript) *served { return ts.Value(servedKey{}).(*served) }

func startVendor(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: vendor WINDOW CALLS")
	}
	window, err := strconv.Atoi(args[0])
	ts.Check(err)
	calls, err := strconv.Atoi(args[1])
	ts.Check(err)
	s := of(ts)
	s.vendor = upstream.New(upstream.Options{Window: window, Script: upstream.Loop(calls, 6000, nil)})
	server := httptest.NewServer(s.vendor)
	ts.Defer(server.Close)
	ts.Setenv("VENDOR", server.URL)
}

var listens = regexp.MustCompile(`listens on (https?://[^ /]+)\S* \(what it does: (https?://[^ /]+)/`)

func startGateway(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	s.log.Reset()
	if len(args) == 0 || args[0] != "--config" {
		args = append([]string{"--listen", "127.0.0.1:0"}, args...)
	}
	cmd := exec.Command("condense", append([]string{"serve"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "GORACE", "CONDENSE_TOKEN", "GOCOVERDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Stderr = &s.log
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	s.process, s.out = cmd, make(chan string, 1)
	ts.Defer(func() { _ = cmd.Process.Kill() })
	address := make(chan [2]string, 1)
	go func() {
		var all bytes.Buffer
		buf, sent := make([]byte, 4096), false
		for {
			n, err := stdout.Read(buf)
			all.Write(buf[:n])
			if m := listens.FindSubmatch(all.Bytes()); m != nil && !sent {
				address <- [2]string{string(m[1]), string(m[2])}
				sent = true
			}
			if err != nil {
				s.out <- all.String()
				close(address)
				return
			}
		}
	}()
	if urls := <-address; urls[0] != "" {
		ts.Setenv("GATEWAY", urls[0])
		ts.Setenv("ADMIN", urls[1])
		return
	}
	ts.Fatalf("the gateway ended: %v\n%s", cmd.Wait(), s.log.String())
}

func end(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: end SIGNAL CODE")
	}
	signal, ok := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM}[args[0]]
	if !ok {
		ts.Fatalf("no signal %s", args[0])
	}
	s := of(ts)
	ts.Check(s.process.Process.Signal(signal))
	out := <-s.out
	_ = s.process.Wait()
	_, _ = io.WriteString(ts.Stdout(), out)
	_, _ = io.WriteString(ts.Stderr(), s.log.String())
	if got := strconv.Itoa(s.process.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("exit code %s, want %s\n%s", got, args[1], s.log.String())
	}
}

func seen(ts *testscript.TestScript, _ bool, _ []string) {
	for _, r := range of(ts).vendor.Records() {
		_, _ = fmt.Fprintf(ts.Stdout(), "%s %s?%s %v\n", r.Method, r.Path, r.Query, r.Header)
	}
}

func logged(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for until := time.Now().Add(patience); !pattern.MatchString(of(ts).log.String()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			ts.Fatalf("%s was not logged:\n%s", pattern, of(ts).log.String())
		}
	}
}

func request(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: http METHOD URL [HEADER…]")
	}
	r, err := http.NewRequestWithContext(context.Background(), args[0], args[1], nil)
	ts.Check(err)
	for _, h := range args[2:] {
		name, value, _ := strings.Cut(h, ": ")
		if value, file, ok := strings.Cut(value, "@"); ok {
			r.Header.Set(name, value+strings.TrimSpace(ts.ReadFile(file)))
			continue
		}
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	client := http.DefaultTransport.(*http.Transport).Clone()
	defer client.CloseIdleConnections()
	if r.URL.Scheme == "https" {
		client.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		client.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(ts.ReadFile("tls.crt")))
	}
	answer, err := client.RoundTrip(r)
	if err != nil {
		_, _ = fmt.Fprintln(ts.Stdout(), err)
		return
	}
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	ts.Check(answer.Body.Close())
	_, _ = fmt.Fprintf(ts.Stdout(), "%d\n%s\n", answer.StatusCode, body)
	if after := answer.Header.Get("Retry-After"); after != "" {
		_, _ = fmt.Fprintf(ts.Stdout(), "Retry-After: %s\n", after)
	}
}

func certificate(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: certificate NAME")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	ts.Check(err)
	c := &x509.Certificate{
		SerialNumber: serial, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{args[0]}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
}

// sums are the checksums of the bodies that a client sent. Each body is sent when no condensation is being prepared, so that a
// conversation does not depend on how fast the machine is.
type sums struct {
	mu    sync.Mutex
	all   []string
	admin string // URL of the gateway's pages
}

func (s *sums) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := s.settled(r.Context()); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	s.mu.Lock()
	s.all = append(s.all, hex.EncodeToString(sum[:]))
	s.mu.Unlock()
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(r)
}

// settled waits until the gateway, if there is one, prepares no condensation.
func (s *sums) settled(ctx context.Context) error {
	for s.admin != "" {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.admin+"/condense/status", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return err
		}
		var status struct{ Preparing int }
		if answer.StatusCode == http.StatusOK { // some gateways want a token
			err = json.NewDecoder(answer.Body).Decode(&status)
		}
		if err = errors.Join(err, answer.Body.Close()); err != nil || status.Preparing == 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func goOn(ts *testscript.TestScript, instead bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: say TEXT")
	}
	s := of(ts)
	before, refused := len(s.vendor.Records()), len(s.vendor.Refusals())
	s.sums = sums{admin: ts.Getenv("ADMIN")}
	s.client.URL = ts.Getenv("GATEWAY")
	if instead {
		s.client.History = s.client.History[:s.said]
	}
	s.said = len(s.client.History)
	_, err := s.client.Say(context.Background(), args[0])
	ts.Check(err)
	records := s.vendor.Records()[before:]
	var sent, own struct{ Messages, Input []json.RawMessage }
	ts.Check(json.Unmarshal(records[0].Body, &sent))
	ts.Check(json.Unmarshal(s.client.Body, &own))
	body, _ := withoutTool(records[0].Body)
	sum := sha256.Sum256(body)
	_, _ = fmt.Fprintf(ts.Stdout(), "requests: %d\nhas: %d\nsent: %d\nown: %t\n", len(records), len(own.Messages)+len(own.Input), len(sent.Messages)+len(sent.Input), hex.EncodeToString(sum[:]) == s.sums.all[0])
	for _, r := range s.vendor.Refusals()[refused:] {
		_, _ = fmt.Fprintf(ts.Stdout(), "refused: %s: %s\n", r.Rule, r.Error)
	}
}

// withoutTool returns a body without the gateway's own tool, which is the last one, and whether it had that.
func withoutTool(body []byte) ([]byte, bool) {
	at := bytes.Index(body, []byte(`"name":"condense_recall"`))
	if at < 0 {
		return body, false
	}
	from := bytes.LastIndexByte(body[:at], ',')
	for _, lead := range []string{`,{"type":"function","function":{`, `,{"type":"function",`, `,{`} {
		if bytes.HasSuffix(body[:at], []byte(lead)) {
			from = at - len(lead)
			break
		}
	}
	var tool json.RawMessage
	d := json.NewDecoder(bytes.NewReader(body[from+1:]))
	if err := d.Decode(&tool); err != nil {
		return body, false
	}
	return slices.Concat(body[:from], body[from+1+int(d.InputOffset()):]), true
}

func converse(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: converse API MODEL [PATH [HEADER…]]")
	}
	s := of(ts)
	seen := len(s.vendor.Records())
	s.sums = sums{admin: ts.Getenv("ADMIN")}
	c := &upstream.Client{
		URL: ts.Getenv("GATEWAY"), API: upstream.API(args[0]), Model: args[1], Session: fmt.Sprintf("session-%d", seen), Stream: true,
		HTTP: &http.Client{Transport: &s.sums}, Header: http.Header{"X-Api-Key": {"sk-dummy"}},
	}
	if len(args) > 2 {
		c.URL += path.Clean("/" + args[2])
		c.URL = strings.TrimSuffix(c.URL, "/")
	}
	for _, h := range args[min(3, len(args)):] {
		name, value, _ := strings.Cut(h, ": ")
		if c.Header.Set(name, value); name == "System" { // not a header
			c.System = value
			c.Header.Del(name)
		}
	}
	s.client = c
	text, err := c.Say(context.Background(), "Please read every file and report.")
	records := s.vendor.Records()[seen:]
	changed, tooled, largest := 0, 0, 0
	before, left := 0, 0 // messages before and after the first epoch
	for i, r := range records {
		var sent struct{ Messages, Input []json.RawMessage }
		ts.Check(json.Unmarshal(r.Body, &sent))
		n := len(sent.Messages) + len(sent.Input)
		if n < before && left == 0 {
			left = n
		}
		before = n
		body, has := withoutTool(r.Body)
		if has {
			tooled++
		}
		if sum := sha256.Sum256(body); i < len(s.sums.all) && hex.EncodeToString(sum[:]) != s.sums.all[i] {
			changed++
		}
		largest = max(largest, r.Tokens)
	}
	_, _ = fmt.Fprintf(ts.Stdout(), "answer: %s\nrequests: %d\nchanged: %d\ntooled: %d\nlargest: %d\nleft: %d\n", text, len(records), changed, tooled, largest, left)
	for _, r := range s.vendor.Refusals() {
		_, _ = fmt.Fprintf(ts.Stdout(), "refused: %s: %s\n", r.Rule, r.Error)
	}
	switch {
	case err != nil && !neg:
		ts.Fatalf("%v\n%s\n%s", err, c.Answer, s.log.String())
	case err == nil && neg:
		ts.Fatalf("the conversation ended well")
	case err != nil:
		_, _ = fmt.Fprintf(ts.Stderr(), "%v\n%s\n", err, c.Answer)
	}
}
