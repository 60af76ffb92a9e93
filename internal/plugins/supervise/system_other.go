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

// A system has the functions that depend on the operating system. Limitations compared with
// Linux: children of a plugin are not killed with it, it has no limits, it notices only by
// its standard input that its host was killed, and it listens on a local port, so mutual TLS
// cannot be turned off.
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
		return fmt.Errorf("it listens on %s %s; want a local port", quote(h.network), quote(h.address))
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

const maxSocketPath = 103

// Without locks nothing is swept: the folder of a host that was killed remains.

func lockFile(string) (*os.File, error)         { return nil, nil }
func abandoned(string) (lock *os.File, ok bool) { return nil, false }
func ownDir(fs.FileInfo) bool                   { return false }
