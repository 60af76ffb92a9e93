package access

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

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
