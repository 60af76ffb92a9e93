package live_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/access"
)

// A tokenFile has a token for each of some tenants.
type tokenFile struct {
	path string
	of   map[string]string // the token, by tenant
}

func tokensFile(t *testing.T, tenants ...string) *tokenFile {
	t.Helper()
	f := &tokenFile{path: filepath.Join(t.TempDir(), "tokens"), of: map[string]string{}}
	for _, name := range tenants {
		f.add(t, &access.Token{Tenant: name, Created: time.Now()})
	}
	return f
}

func (f *tokenFile) add(t *testing.T, token *access.Token) {
	t.Helper()
	f.of[token.Tenant] = token.New()
	if err := access.Add(f.path, token); err != nil {
		t.Fatal(err)
	}
}
