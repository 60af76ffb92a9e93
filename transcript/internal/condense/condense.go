// Package condense reads and writes journals, condense's own format.
package condense

import (
	"bytes"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/rawjson"
)

// Codec is the format.
var Codec = codec.Codec{
	Name: "condense",
	Doc:  "the journal of condense: JSON lines with every message and condensation, nothing lost",
	Detect: func(data []byte) bool {
		for k := range rawjson.Fields(data) {
			return string(k) == "condense"
		}
		return false
	},
	Read:    readJournal,
	Write:   writeJournal,
	Convert: writeJournal,
}

func readJournal(data []byte, f *codec.File) error {
	j, lost, err := history.Decode(bytes.NewReader(data))
	if err != nil {
		return err
	}
	f.Journal = j
	if lost != nil {
		f.Warn("%s", lost)
	}
	return f.LoadHeader()
}

func writeJournal(f *codec.File, out *codec.Output) error {
	if err := f.KeepHeader(); err != nil {
		return err
	}
	return history.Encode(out, f.Journal)
}
