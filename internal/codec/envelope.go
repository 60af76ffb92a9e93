package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/rawjson"
)

// An Envelope is everything in a file but its messages, byte for byte: the text before the first, between two, and
// after the last. A file is
//
//	head message gap message gap message tail
//
// where a gap belongs to the message after it and is left out with it.
type Envelope struct {
	Head, Tail []byte
	Sep        []byte            // the usual gap; also used before new messages
	gaps       map[string][]byte // the unusual ones, by the ID of the message after it
	// order and read are set by [File.Settle].
	order []string
	read  *stamp
}

// SetGap records the text before the message id.
func (e *Envelope) SetGap(id string, gap []byte) {
	if bytes.Equal(gap, e.Sep) {
		return
	}
	if e.gaps == nil {
		e.gaps = map[string][]byte{}
	}
	e.gaps[id] = gap
}

// Gap returns the text to write before the message id.
func (e *Envelope) Gap(id string) []byte {
	if g, ok := e.gaps[id]; ok {
		return g
	}
	return e.Sep
}

// envelopeJSON is how the journal's header stores an envelope.
type envelopeJSON struct {
	Head verbatim            `json:"head"`
	Tail verbatim            `json:"tail"`
	Sep  verbatim            `json:"sep"`
	Gaps map[string]verbatim `json:"gaps,omitempty"`

	Order []string `json:"order,omitzero"` // an empty one says that no message has a place
	Read  *stamp   `json:"read,omitempty"`
}

// verbatim is bytes as JSON: a string, or base64 in an object if they are not UTF-8.
type verbatim []byte

// MarshalJSON writes v as a string if it is UTF-8, else as base64.
func (v verbatim) MarshalJSON() ([]byte, error) {
	if utf8.Valid(v) {
		return rawjson.AppendQuote(nil, string(v)), nil
	}
	return json.Marshal(struct {
		Base64 []byte `json:"base64"`
	}{v})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (v *verbatim) UnmarshalJSON(data []byte) error {
	if rawjson.IsString(data) {
		*v = []byte(rawjson.Unquote(data))
		return nil
	}
	var w struct {
		Base64 []byte `json:"base64"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*v = w.Base64
	return nil
}

// MarshalJSON writes e for the header of a journal.
func (e *Envelope) MarshalJSON() ([]byte, error) {
	w := envelopeJSON{Head: e.Head, Tail: e.Tail, Sep: e.Sep, Order: e.order, Read: e.read}
	for id, gap := range e.gaps {
		if w.Gaps == nil {
			w.Gaps = make(map[string]verbatim, len(e.gaps))
		}
		w.Gaps[id] = gap
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads the output of MarshalJSON.
func (e *Envelope) UnmarshalJSON(data []byte) error {
	var w envelopeJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*e = Envelope{Head: w.Head, Tail: w.Tail, Sep: w.Sep, order: w.Order, read: w.Read}
	for id, gap := range w.Gaps {
		if e.gaps == nil {
			e.gaps = make(map[string][]byte, len(w.Gaps))
		}
		e.gaps[id] = gap
	}
	return nil
}

// A header is a journal's record, as its meta, of the rest of a file. With it and the sources of the messages, the
// file can be written again byte for byte.
type header struct {
	Format   string    `json:"format"`
	System   string    `json:"system,omitempty"`
	Tools    verbatim  `json:"tools,omitempty"`
	Model    string    `json:"model,omitempty"`
	Output   int       `json:"max_output,omitempty"`
	Envelope *Envelope `json:"envelope,omitempty"`
}

// LoadHeader restores f from the header in its journal. A journal without a header holds a
// conversation that was never in a file.
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

// KeepHeader stores the rest of the file in the journal of f, unless the journal has a header.
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
