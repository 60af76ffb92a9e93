package transcript

// A codec reads and writes one file format. The table in formats.go lists them all.
type codec struct {
	name string // what --format and --to take
	doc  string // one line: whose format it is and how it looks
	// detect reports whether data, the whole file after gunzip, is of this format. It is
	// cheap: it looks at the first record and never decodes everything.
	detect func(data []byte) bool
	// read fills d from data. Errors are *SyntaxError with line or message index.
	read func(data []byte, d *Document) error
	// write writes d. Formats that can record condensations write everything, the
	// others what would be sent: d.Journal.View().
	write func(d *Document) ([]byte, error)
}
