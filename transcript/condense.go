package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/condensehq/condense/core/history"
)

var condenseCodec = codec{
	name: "condense",
	doc:  "the journal of condense: JSON lines with every message and condensation, nothing lost",
	detect: func(data []byte) bool {
		for k := range fields(data) {
			return string(k) == "condense"
		}
		return false
	},
	read:  readJournal,
	write: writeJournal,
}

// A header is what the journal keeps of a document beside its messages, as its meta.
// With it and the sources of the messages the file that the document was read from can
// be written again byte for byte.
type header struct {
	Format   string    `json:"format"`
	System   string    `json:"system,omitempty"`
	Tools    verbatim  `json:"tools,omitempty"`
	Model    string    `json:"model,omitempty"`
	Output   int       `json:"max_output,omitempty"`
	Envelope *envelope `json:"envelope,omitempty"`
}

func readJournal(data []byte, d *Document) error {
	j, lost, err := history.Decode(bytes.NewReader(data))
	if err != nil {
		return err
	}
	d.Journal = j
	if lost != nil {
		d.Warnings = append(d.Warnings, Warning{Text: lost.String()})
	}
	d.Origin = ""
	meta := j.Meta()
	if meta == nil {
		return nil
	}
	var h header
	if err := json.Unmarshal(meta, &h); err != nil {
		return fmt.Errorf("line 1: meta: %w", err)
	}
	d.System, d.Model, d.MaxOutput = h.System, h.Model, h.Output
	if h.Tools != nil {
		d.Tools = json.RawMessage(h.Tools)
	}
	if h.Envelope == nil {
		return nil // a host's own conversation, not a file's
	}
	d.Origin, d.envelope = h.Format, *h.Envelope
	return nil
}

// keepHeader makes the journal carry what is beside the messages.
func (d *Document) keepHeader() error {
	h := header{Format: d.Origin, System: d.System, Tools: verbatim(d.Tools), Model: d.Model, Output: d.MaxOutput}
	if d.Origin != "" {
		h.Envelope = &d.envelope
	}
	meta, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return d.Journal.SetMeta(meta)
}

func writeJournal(d *Document, out *output) error {
	if d.Journal.Meta() == nil {
		if err := d.keepHeader(); err != nil {
			return errors.Join(errors.New("the journal cannot hold the document"), err)
		}
	}
	return history.Encode(out, d.Journal)
}
