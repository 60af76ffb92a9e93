//go:build unix

package pluginexamples_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/wire/caller"
)

// TestStranger calls a plugin's socket from another client: it answers only the host that started
// it, which has the key to the certificate.
func TestStranger(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	own := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, own, own, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	strangers := map[string]credentials.TransportCredentials{
		"in plain text":         insecure.NewCredentials(),
		"without a certificate": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}),
		"with its own certificate": credentials.NewTLS(&tls.Config{
			InsecureSkipVerify: true, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		}),
	}
	each(t, func(t *testing.T, l *language) {
		var temp string
		p := open(t, l.example, "", func(_ *supervise.Spec, o *supervise.Options) { temp = o.TempDir })
		if err := p.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		sockets, err := filepath.Glob(filepath.Join(temp, "cnd-*", "*", "plugin*"))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, socket := range sockets {
			if info, err := os.Stat(socket); err != nil || info.Mode()&os.ModeSocket == 0 {
				continue
			}
			found++
			for name, as := range strangers {
				conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(as))
				if err != nil {
					t.Fatal(err)
				}
				if d, err := caller.NewClient(conn, nil).Describe(t.Context()); err == nil {
					t.Errorf("%s: it answers %+v", name, d)
				}
				_ = conn.Close()
			}
		}
		if found != 1 {
			t.Errorf("there are %d sockets in %q", found, sockets)
		}
		if err := p.Ping(t.Context()); err != nil {
			t.Errorf("afterwards its host: %v", err)
		}
	})
}
