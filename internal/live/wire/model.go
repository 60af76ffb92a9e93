package wire

// A ModelReader finds the model in a request of any size that is written to it in pieces. It is for requests that
// [Parse] cannot read, and keeps nothing else. The zero value is ready. It is not safe for concurrent use.
type ModelReader struct {
	json leafScanner
	name string
}

// Write reads the next bytes of the request. It never fails.
func (m *ModelReader) Write(p []byte) (int, error) {
	if m.json.leaf == nil {
		m.json.wanted = func(path []byte) bool { return string(path) == "model" }
		m.json.leaf = func(_ []byte, value string) { m.name = value }
	}
	m.json.write(p)
	return len(p), nil
}

// Model returns the name of the model; empty if it has not come yet. Of several, the last counts, as for most servers.
func (m *ModelReader) Model() string { return m.name }
