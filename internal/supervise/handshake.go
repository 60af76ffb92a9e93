package supervise

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/go-plugin"

	"github.com/condensehq/condense/internal/wire"
)

// maxHandshake bounds the one line that a plugin writes to its standard output. With a
// certificate of AutoMTLS it has about 900 bytes.
const maxHandshake = 8 << 10

// A handshake is what go-plugin's line says: CORE|VERSION|NETWORK|ADDRESS|PROTOCOL|CERT.
// go-plugin reads it too, but its errors do not say what to do, and it connects to
// wherever the line points.
type handshake struct {
	network, address string
	cert             string // of mutual TLS; empty without
}

// line is what go-plugin is told. It is not the plugin's: given a certificate that nobody
// asked for, go-plugin v1.8 panics.
func (h handshake) line() string {
	return fmt.Sprintf("%d|%d|%s|%s|%s|%s\n", plugin.CoreProtocolVersion, wire.ProtocolVersion, h.network, h.address, plugin.ProtocolGRPC, h.cert)
}

// parseHandshake checks the first line of a plugin's standard output. The address is not
// checked: that is the runner's.
func parseHandshake(line string, mutualTLS bool) (handshake, error) {
	f := strings.Split(strings.TrimSpace(line), "|")
	if _, err := strconv.Atoi(f[0]); len(f) < 4 || err != nil {
		return handshake{}, fmt.Errorf("it wrote %s to standard output before its handshake; standard output belongs to the handshake, logs go to standard error", quote(line))
	}
	if f[0] != strconv.Itoa(plugin.CoreProtocolVersion) {
		return handshake{}, fmt.Errorf("it speaks version %s of go-plugin's handshake, this host version %d", quote(f[0]), plugin.CoreProtocolVersion)
	}
	if f[1] != strconv.Itoa(wire.ProtocolVersion) {
		return handshake{}, fmt.Errorf("it speaks version %s of the condense protocol, this host version %d; %s", quote(f[1]), wire.ProtocolVersion, older(f[1]))
	}
	if len(f) < 5 || f[4] != string(plugin.ProtocolGRPC) {
		return handshake{}, errors.New("it does not offer gRPC: the fifth field of its handshake must be grpc")
	}
	h := handshake{network: f[2], address: f[3]}
	if mutualTLS {
		if len(f) < 6 || f[5] == "" {
			return handshake{}, errors.New("it offers no certificate: it must serve with TLS if PLUGIN_CLIENT_CERT is set and announce its certificate, or be configured as plaintext")
		}
		if _, err := base64.RawStdEncoding.DecodeString(f[5]); err != nil {
			return handshake{}, fmt.Errorf("the certificate in its handshake is not base64 without padding: %w", err)
		}
		h.cert = f[5]
	}
	return h, nil
}

// older says who is to be updated.
func older(version string) string {
	if v, err := strconv.Atoi(version); err == nil && v > wire.ProtocolVersion {
		return "update the host"
	}
	return "rebuild the plugin with a current SDK"
}

// checkSocket sees to it that address is a socket in the folder dir, and not a way out of
// it: a plugin must not have the host talk to another process.
func checkSocket(network, address, dir string) error {
	if network != "unix" {
		return fmt.Errorf("it listens on %s %s; want a unix socket in the folder that %s names", quote(network), quote(address), plugin.EnvUnixSocketDir)
	}
	if filepath.Dir(address) != dir {
		return fmt.Errorf("it listens on %s, which is not in the folder that %s names", quote(address), plugin.EnvUnixSocketDir)
	}
	return isSocket(address)
}

// quote shows text of a plugin's in an error: no more of it than a person would read, and
// nothing that a terminal would obey.
func quote(s string) string {
	const most = 200
	if s = strings.TrimSpace(s); len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
