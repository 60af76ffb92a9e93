package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/model"
)

// compaction is Anthropic's compaction on demand: an ordinary request with one more field, answered with a signed
// block in place of a reply. Source: "Compaction on demand",
// platform.claude.com/docs/en/build-with-claude/compaction-on-demand.
var compaction = remote.Vendor{
	BaseURL: baseURL, KeyEnv: keyEnv, Path: path,
	Sign: func(header http.Header, key string) {
		sign(header, key)
		header.Set("anthropic-beta", compactionBeta)
	},
	Body:  compactionBody,
	Event: compactionEvent,
	Whole: compactionWhole,
}

const compactionBeta = "compact-2026-09-04"

func compactionBody(p *model.Prompt, o *remote.Options, _ remote.Refused) ([]byte, error) {
	in := remote.Input(p)
	in.Foreign = false // the agent's own vendor is asked: the thinking is its own
	system, encoded := apimessage.EncodeAnthropic(in)
	type summarize struct {
		Type         string `json:"type"`
		Instructions string `json:"instructions,omitempty"`
	}
	r := struct {
		request

		Compaction summarize `json:"compaction"`
	}{
		request{Model: o.ID, MaxTokens: maxTokens(p, o.MaxOutput), System: string([]rune(system)), Messages: encoded, Stream: true},
		summarize{"summarize", p.Instructions},
	}
	var err error
	if r.Tools, err = tools(p, encoded); err != nil {
		return nil, err
	}
	return rawjson.Encode(r)
}

// iterations are the usage of a compaction; the numbers above them are zero.
type iterations struct {
	Iterations []usage `json:"iterations"`
}

func (u *iterations) meter(r *remote.Reply) {
	for i := range u.Iterations {
		meter(r, &u.Iterations[i])
	}
}

func compactionEvent(r *remote.Reply, _ string, data []byte) error {
	var e struct {
		Type    string `json:"type"`
		Message struct {
			Usage iterations `json:"usage"`
		} `json:"message"`
		Block json.RawMessage `json:"content_block"`
		Delta struct {
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
		Usage iterations `json:"usage"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event is not its JSON: %w", err)
	}
	switch e.Type {
	case "message_start":
		e.Message.Usage.meter(r)
	case "content_block_start":
		return keep(r, e.Block)
	case "message_delta":
		e.Usage.meter(r)
		compacted(r, e.Delta.StopReason)
	default:
		return event(r, "", data)
	}
	return nil
}

func compactionWhole(r *remote.Reply, data []byte) error {
	if e := remote.Reported(0, data); e != nil {
		return e
	}
	var m struct {
		Content    []json.RawMessage `json:"content"`
		StopReason string            `json:"stop_reason"`
		Usage      iterations        `json:"usage"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	for _, b := range m.Content {
		if err := keep(r, b); err != nil {
			return err
		}
	}
	m.Usage.meter(r)
	compacted(r, m.StopReason)
	r.Done = true
	return nil
}

// keep takes the block of a compaction, which must be sent back as it came.
func keep(r *remote.Reply, raw json.RawMessage) error {
	var b struct{ Type, Signature string }
	if err := json.Unmarshal(raw, &b); err != nil {
		return err
	}
	if b.Type != "compaction" {
		return nil
	}
	if b.Signature == "" || r.Text.Len() > 0 {
		return fmt.Errorf("want one signed compaction, got %.100q", raw)
	}
	r.Text.WriteByte('[')
	r.Text.Write(raw)
	r.Text.WriteByte(']')
	return nil
}

// compacted records why the vendor stopped. All reasons but one mean that there is no summary.
func compacted(r *remote.Reply, reason string) {
	if reason == "" {
		return
	}
	stop(r, reason)
	if r.Ended = true; reason != "compaction" {
		r.Refused, r.Silence = true, fmt.Sprintf("there is no summary: the vendor stopped because of %.40q", reason)
	}
}
