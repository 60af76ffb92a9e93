package adapters

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// An API is a [Codec] for messages that are marshaled as those of a vendor's API are.
type API[M any] struct {
	Format string // of package transcript: anthropic, openai, responses
	// Unmarshal reads a message, if json.Unmarshal does not read every form.
	Unmarshal func(json.RawMessage) (M, error)
}

// Parse implements [Codec].
func (a API[M]) Parse(source json.RawMessage) (M, error) {
	if a.Unmarshal != nil {
		return a.Unmarshal(source)
	}
	var m M
	err := json.Unmarshal(source, &m)
	return m, err
}

// Read implements [Codec].
func (a API[M]) Read(m M) (core.Message, error) {
	source, err := json.Marshal(m)
	if err != nil {
		return core.Message{}, err
	}
	_, c, err := a.read(source)
	c.ID, c.Source = "", source
	return c, err
}

// read returns a conversation of one message.
func (a API[M]) read(source json.RawMessage) (*transcript.Document, core.Message, error) {
	array := append(append([]byte{'['}, source...), ']')
	d, err := transcript.Read(bytes.NewReader(array), &transcript.ReadOptions{Format: a.Format})
	if err != nil {
		return nil, core.Message{}, err
	}
	all := d.Journal.Messages()
	if len(all) != 1 {
		return nil, core.Message{}, fmt.Errorf("%s: %d messages in one", a.Format, len(all))
	}
	return d, all[0], nil
}

// Write implements [Codec].
func (a API[M]) Write(m core.Message, was *M) ([]M, error) {
	m.ID, m.Source = "m", nil
	d := &transcript.Document{Journal: history.New()}
	if was == nil {
		if err := d.Journal.Append(m); err != nil {
			return nil, err
		}
	} else {
		source, err := json.Marshal(*was)
		if err != nil {
			return nil, err
		}
		file, old, err := a.read(source)
		if err != nil {
			return nil, err
		}
		d = file
		edit := core.Edit{Rewrite: []core.Rewrite{{ID: old.ID, Parts: m.Parts}}}
		if err := d.Journal.Condense(history.Condensation{ID: "c", Edit: edit}); err != nil {
			return nil, err
		}
	}
	return a.written(d)
}

// written returns the messages of a conversation.
func (a API[M]) written(d *transcript.Document) ([]M, error) {
	var out bytes.Buffer
	if _, err := d.Write(&out, a.Format); err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if text := bytes.TrimSpace(out.Bytes()); text[0] == '[' {
		if err := json.Unmarshal(text, &raw); err != nil {
			return nil, err
		}
	} else { // a request
		var request struct{ Messages, Input []json.RawMessage }
		if err := json.Unmarshal(text, &request); err != nil {
			return nil, err
		}
		raw = append(request.Messages, request.Input...)
	}
	written := make([]M, len(raw))
	for i := range raw {
		var err error
		if written[i], err = a.Parse(raw[i]); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// FromCore is [FromCore] for conversations of other origin, too: if a call or a result has no Source, all are written as transcript
// converts them.
func (a API[M]) FromCore(messages []core.Message) ([]M, error) {
	if !slices.ContainsFunc(messages, func(m core.Message) bool {
		calls, results := Calls(m.Parts)
		return m.Source == nil && len(calls)+len(results) > 0
	}) {
		return FromCore(a, messages)
	}
	c := condense.NewConversation()
	if err := c.Append(messages...); err != nil {
		return nil, err
	}
	return a.written(&transcript.Document{Journal: c.Journal()})
}
