package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
)

// explainStart says what the kernel's answer to exec means. The path in it is that of our
// copy, which the user does not know.
func explainStart(err error) error {
	if pe := new(os.PathError); errors.As(err, &pe) {
		err = pe.Err
	}
	switch {
	case isNoExec(err):
		return errors.New("it is not a program for this system: built for another one, empty, or a script without a #! line")
	case errors.Is(err, os.ErrNotExist):
		return errors.New("the interpreter or loader that it names does not exist here")
	case errors.Is(err, os.ErrPermission):
		return errors.New("it may not be executed: the folder for temporary files may forbid it (noexec); set TMPDIR to one that does not")
	}
	return err
}

// early explains the end of a process that never got ready.
func (c *child) early() error {
	when := "before its handshake"
	if c.addr.Load() != nil {
		when = "before it was ready"
	}
	headline, all := c.out.crash()
	for _, h := range hints {
		if strings.Contains(all, h.text) {
			return fmt.Errorf("it ended %s (%s): %s", when, c.status, h.meaning)
		}
	}
	switch said := cmp.Or(headline, c.out.lastLines(3)); said {
	case "":
		return fmt.Errorf("it ended %s (%s) and wrote nothing", when, c.status)
	default:
		return fmt.Errorf("it ended %s (%s); it wrote: %s", when, c.status, said)
	}
}

// hints are what plugins write that will not start, and what it means.
var hints = []struct{ text, meaning string }{
	{"This binary is a plugin. These are not meant to be executed directly.", "it is a plugin of another program: its handshake has another cookie"},
	{"is a plugin of condense, which shortens", "it does not know this host's handshake: it was built for another release of condense"},
	{"bind: invalid argument", "the path of its socket is too long: set TMPDIR to a shorter folder"},
}
