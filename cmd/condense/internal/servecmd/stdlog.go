package servecmd

import (
	"bytes"
	"log" //nolint:depguard // to redirect it
	"log/slog"
)

// logStandard sends the standard logger's output to to, without quoted text: net/http quotes the first bytes of an
// unexpected answer, and these are a text of a model.
func logStandard(to *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(standardLog{to})
}

type standardLog struct{ to *slog.Logger }

// Write logs a line.
func (l standardLog) Write(line []byte) (int, error) {
	text, _, quoted := bytes.Cut(bytes.TrimSpace(line), []byte(`"`))
	if quoted {
		text = append(bytes.Clone(text), "…"...)
	}
	l.to.Debug("a package of the program says", "text", string(text))
	return len(line), nil
}
