package sessions

import (
	"bufio"
	"bytes"
	"io"
)

// Folder returns the folder that a session in JSON lines names as the agent's; empty if it names none. Format is the
// transcript format.
func Folder(format string, session io.Reader) string {
	for _, a := range Agents() {
		if a.Format != format || a.inside || !a.InFiles() {
			continue
		}
		const most = 1 << 20 // bytes: agents name it in the first lines
		s := &Session{}
		lines := bufio.NewScanner(io.LimitReader(session, most))
		lines.Buffer(nil, most)
		for s.Dir == "" && lines.Scan() {
			a.describe(bytes.TrimSpace(lines.Bytes()), s)
		}
		return s.Dir
	}
	return ""
}
