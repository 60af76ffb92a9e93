package codec

import (
	"encoding/json"
	"fmt"
)

// A header is what a journal keeps of a file in addition to its messages, as its meta.
// With it and the sources of the messages, the file can be written again byte for byte.
type header struct {
	Format   string    `json:"format"`
	System   string    `json:"system,omitempty"`
	Tools    verbatim  `json:"tools,omitempty"`
	Model    string    `json:"model,omitempty"`
	Output   int       `json:"max_output,omitempty"`
	Envelope *Envelope `json:"envelope,omitempty"`
}

// LoadHeader takes from the journal of f the file that the journal was made from. A journal
// without a header is of a conversation that was never in a file.
func (f *File) LoadHeader() error {
	f.Origin = ""
	meta := f.Journal.Meta()
	if meta == nil {
		return nil
	}
	var h header
	if err := json.Unmarshal(meta, &h); err != nil {
		return fmt.Errorf("line 1: meta: %w", err)
	}
	f.System, f.Model, f.MaxOutput = h.System, h.Model, h.Output
	if h.Tools != nil {
		f.Tools = json.RawMessage(h.Tools)
	}
	if h.Envelope != nil {
		f.Origin, f.Envelope = h.Format, *h.Envelope
	}
	return nil
}

// KeepHeader stores in the journal of f what is not among the messages, unless it has a
// header already.
func (f *File) KeepHeader() error {
	if f.Journal.Meta() != nil {
		return nil
	}
	h := header{Format: f.Origin, System: f.System, Tools: verbatim(f.Tools), Model: f.Model, Output: f.MaxOutput}
	if f.Origin != "" {
		h.Envelope = &f.Envelope
	}
	meta, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := f.Journal.SetMeta(meta); err != nil {
		return fmt.Errorf("the journal cannot hold the document: %w", err)
	}
	return nil
}
