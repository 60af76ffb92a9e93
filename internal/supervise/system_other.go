//go:build !unix

package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
)

// A system is what operating systems do each in their own way. What is less here than on
// Linux: children of a plugin are not killed with it, it has no limits, nothing but its
// standard input tells it that its host was killed, and it listens on a port of this
// machine, so mutual TLS cannot be turned off.
type system struct{}

func (system) prepare(*exec.Cmd, bool)            {}
func (system) refused(*exec.Cmd, error) bool      { return false }
func (system) shares()                            {}
func (system) started(*os.Process, *Limits) error { return nil }
func (system) await(*os.Process) bool             { return false }
func (system) kill(p *os.Process)                 { _ = p.Kill() }

func (system) checkAddress(h handshake, dir string, mutualTLS bool) error {
	if h.network == "unix" {
		return checkSocket(h.network, h.address, dir)
	}
	if a, err := netip.ParseAddrPort(h.address); h.network != "tcp" || err != nil || !a.Addr().IsLoopback() {
		return fmt.Errorf("it listens on %s %s; want a port of this machine", quote(h.network), quote(h.address))
	}
	if !mutualTLS {
		return errors.New("without a private folder for its socket it must use mutual TLS; it is configured as plaintext")
	}
	return nil
}

func isSocket(string) error { return nil }

func executable(fs.FileInfo) bool { return true }

func isBusy(error) bool   { return false }
func isNoExec(error) bool { return false }
