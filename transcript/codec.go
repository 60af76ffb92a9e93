package transcript

import (
	"bytes"
	"fmt"
)

// A codec reads and writes one file format. The table in formats.go lists them all.
type codec struct {
	name string // what --format and --to take
	doc  string // one line: whose format it is and how it looks
	// readOnly says that write refuses what is not exactly the file that was read.
	readOnly bool
	// vendor is whose signed or encrypted reasoning the messages hold; nobody else can
	// read it. Empty if messages of several vendors may stand in one file.
	vendor vendor
	// detect reports whether data, the whole file after gunzip and without byte order
	// mark, is of this format. It is cheap: it looks at the first records and never
	// decodes everything. data need not be valid in any way.
	detect func(data []byte) bool
	// read fills d from data, which it may keep: every Source is a part of it. Errors
	// are *SyntaxError; Read adds the name of the file and the line.
	read func(data []byte, d *Document) error
	// write writes d. If d.Origin is the codec's own name, what did not change is written as
	// it was; else d is converted. Formats that can record condensations write
	// everything, the others what would be sent: d.view().
	write func(d *Document, out *output) error
}

// An output is a file in the making, and what the file could not hold. A file is made
// in memory first, so that an error leaves nothing half written.
type output struct {
	bytes.Buffer
	vendor   vendor // of the document's origin
	warnings []Warning
}

// add appends pieces. A buffer cannot fail.
func (o *output) add(pieces ...[]byte) {
	for _, p := range pieces {
		_, _ = o.Write(p)
	}
}

// adds appends s.
func (o *output) adds(s string) { _, _ = o.WriteString(s) }

// warn notes a loss at the message with the given ID; empty if it concerns no single
// message.
func (o *output) warn(message, format string, args ...any) {
	o.warnings = append(o.warnings, Warning{Message: message, Text: fmt.Sprintf(format, args...)})
}

// A vendor is a maker of models with a wire format of its own.
type vendor string

const (
	vendorAnthropic vendor = "anthropic"
	vendorOpenAI    vendor = "openai"
)
