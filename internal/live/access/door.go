package access

import (
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/plain"
)

// A Door admits callers: by a token, or from this machine.
type Door struct {
	Token  string   // the only token; empty for none
	Tokens *Tokens  // of tenants; nil without them
	Names  []string // host names by which clients with a token may call; empty for any
	Now    func() time.Time
}

// Open reports whether no token is needed.
func (d *Door) Open() bool { return d.Token == "" && d.Tokens == nil }

// Admit returns the owner of a token. If ok is false, text says why the token is not accepted.
func (d *Door) Admit(token string) (who tenant.Caller, text string, ok bool) {
	switch {
	case d.Tokens != nil:
		found, ok := d.Tokens.Find(token)
		who := tenant.Caller{Tenant: found.Tenant, Token: found.ID(), Admin: found.Admin}
		switch {
		case token == "":
			return tenant.Caller{}, "this gateway needs a token", false
		case !ok:
			return tenant.Caller{}, "this gateway does not know the token", false
		case found.Expired(d.Now()):
			return who, "the token " + who.Token + " of tenant " + who.Tenant + " has expired; this gateway needs a new one", false
		}
		return who, "", true
	case d.Token != "":
		return tenant.Caller{Admin: true}, "this gateway needs its token", subtle.ConstantTimeCompare([]byte(token), []byte(d.Token)) == 1
	}
	return tenant.Caller{Admin: true}, "", true
}

// Outside refuses clients on other machines if no token is set, host names that are not the gateway's, and web pages of
// other origins. It checks name and origin because pages in a browser can reach the loopback under any name (DNS
// rebinding).
func (d *Door) Outside(r *http.Request) (status int, text string) {
	free := d.Open()
	switch {
	case free && !isLoopback(r.RemoteAddr):
		return http.StatusForbidden, "condense: this gateway answers only clients on its own machine; to change that, set a token"
	case free && !isLoopback(r.Host):
		return http.StatusForbidden, "condense: this gateway is not called " + plain.Clip(r.Host) + "; use 127.0.0.1 or localhost"
	case !free && !d.called(r.Host):
		return http.StatusForbidden, "condense: this gateway is not called " + plain.Clip(r.Host)
	case !allowedOrigin(r) || strays(r):
		return http.StatusForbidden, "condense: requests from web pages of other origins are not answered"
	}
	return 0, ""
}

// called reports whether a host, with or without a port, is one of the gateway's names.
func (d *Door) called(host string) bool {
	if len(d.Names) == 0 || isLoopback(host) {
		return true
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	_, below, _ := strings.Cut(host, ".")
	return net.ParseIP(strings.Trim(host, "[]")) != nil || slices.ContainsFunc(d.Names, func(name string) bool {
		parent, wild := strings.CutPrefix(name, "*.")
		return strings.EqualFold(name, host) || wild && strings.EqualFold(parent, below)
	})
}

// IsUpgrade reports whether a request asks for another protocol than HTTP.
func IsUpgrade(r *http.Request) bool {
	for _, v := range r.Header.Values("Connection") {
		for token := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return true
			}
		}
	}
	return r.Method == http.MethodConnect || r.Header.Get("Upgrade") != ""
}

// allowedOrigin reports whether a request has no origin, so that no web page sent it, or only origins on the loopback
// or at the gateway's own host.
func allowedOrigin(r *http.Request) bool {
	for _, origin := range r.Header["Origin"] {
		if origin == "" {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !isLoopback(u.Host) && u.Host != r.Host {
			return false
		}
	}
	return true
}

// strays reports whether a page of another site sent the request without naming its origin, as browsers do for images.
// Links that a user follows are not counted.
func strays(r *http.Request) bool {
	return r.Header.Get("Origin") == "" && slices.ContainsFunc(r.Header["Sec-Fetch-Site"],
		func(site string) bool { return strings.EqualFold(site, "cross-site") }) &&
		(r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate")
}

// isLoopback reports whether a host, with or without a port, names this machine.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if i := strings.IndexByte(host, '%'); i >= 0 { // the zone of an IPv6 address
		host = host[:i]
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost")
}

// ordersFile is the file, in the folder for state, with the secret of [Orders].
const ordersFile = "orders.key"

// Orders returns the secret with which the user of this machine directs the conversations of gateways that need no token. Only
// the user can read its file. With create, the file is made if there is none. Several processes may call Orders at once.
func Orders(create bool) (string, error) {
	dir, err := disk.StateDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, ordersFile)
	if _, err := os.Lstat(path); create && errors.Is(err, fs.ErrNotExist) {
		if err := putFirst(dir, path); err != nil {
			return "", err
		}
	}
	info, err := os.Lstat(path) // a link or a pipe could lead anywhere
	if err != nil {
		return "", err
	}
	const others, most = 0o077, 1 << 10
	damaged := fmt.Errorf("%s: others can read it, or it is damaged; delete it and start the gateway again", disk.FromHere(path))
	if !info.Mode().IsRegular() || info.Size() > most || runtime.GOOS != "windows" && info.Mode()&others != 0 {
		return "", damaged
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < len(rand.Text()) {
		return "", damaged
	}
	return secret, nil
}

// putFirst writes a new secret, unless another process is faster: a link replaces nothing.
func putFirst(dir, path string) error {
	const own = 0o700
	if err := os.MkdirAll(dir, own); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".orders-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(rand.Text() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return disk.SyncDir(dir)
}

// A file is the parsed content of files, which is read again after they have changed. Changes are looked for by get,
// at most once a second.
type file[T any] struct {
	paths  []string
	read   func() (T, error)
	failed func(error)

	mu     sync.Mutex
	looked time.Time
	seen   []stamp
	fault  string // of the last attempt to read them
	value  T
}

// A stamp changes with a file.
type stamp struct {
	time time.Time
	size int64
	info os.FileInfo // for its identity
}

// every is how often a file is looked at.
const every = time.Second

func open[T any](failed func(error), read func() (T, error), paths ...string) (*file[T], error) {
	f := &file[T]{paths: paths, read: read, failed: failed, looked: time.Now()}
	f.seen = f.stamps()
	var err error
	f.value, err = read()
	return f, err
}

func (f *file[T]) stamps() []stamp {
	all := make([]stamp, len(f.paths))
	for i, path := range f.paths {
		if info, err := os.Stat(path); err == nil {
			all[i] = stamp{info.ModTime(), info.Size(), info}
		}
	}
	return all
}

func (s stamp) same(o stamp) bool {
	return s.time.Equal(o.time) && s.size == o.size && (s.info == nil) == (o.info == nil) && (s.info == nil || os.SameFile(s.info, o.info))
}

// get returns the content of the files, or their last valid content.
func (f *file[T]) get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.looked) < every {
		return f.value
	}
	f.looked = now
	seen := f.stamps()
	changed := f.fault != "" // the failure may have been temporary: a revoked token must not stay valid until the next change
	for i := range seen {
		changed = changed || !seen[i].same(f.seen[i])
	}
	if !changed {
		return f.value
	}
	f.seen = seen
	was := f.fault
	switch value, err := f.again(); {
	case err == nil:
		f.value, f.fault = value, ""
	case err.Error() != was: // once
		f.fault = err.Error()
		f.failed(err)
	}
	return f.value
}

// again reads the files, unless one has become a pipe: all requests would wait for its writer.
func (f *file[T]) again() (value T, err error) {
	for i := range f.seen {
		if info := f.seen[i].info; info != nil && !info.Mode().IsRegular() {
			return value, fmt.Errorf("%s is no file any more", f.paths[i])
		}
	}
	return f.read()
}

// Certified are the settings of a server with a certificate.
type Certified struct {
	Config *tls.Config
	Names  []string // host names in the certificate when it was first read
}

// Certificate reads a certificate and its key, and again whenever the files change. It reports later faults to failed
// and keeps using the last valid pair.
func Certificate(cert, key string, failed func(error)) (*Certified, error) {
	f, err := open(failed, func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("certificate %s with key %s: %w", cert, key, err)
		}
		return &pair, nil
	}, cert, key)
	if err != nil {
		return nil, err
	}
	return &Certified{
		Names: f.value.Leaf.DNSNames,
		Config: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			NextProtos:     []string{"h2", "http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.get(), nil },
		},
	}, nil
}
