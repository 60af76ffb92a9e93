package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/model"
)

// embedding is the request for vectors, which Ollama, vLLM, LM Studio and Gemini's compatible endpoint have, too.
// Source: "Create embeddings", developers.openai.com/api/reference/resources/embeddings.
var embedding = remote.Vendor{
	BaseURL: baseURL,
	KeyEnv:  keyEnv,
	Path:    "/embeddings",
	Sign:    sign,
	Body: func(p *model.Prompt, o *remote.Options, _ remote.Refused) ([]byte, error) {
		input := make([]string, len(p.Messages))
		for i, m := range p.Messages {
			text, _ := m.Parts[0].(core.Text)
			if input[i] = string(text); strings.TrimSpace(input[i]) == "" {
				input[i] = "." // an empty text is refused
			}
		}
		return rawjson.Encode(map[string]any{"model": o.ID, "input": input})
	},
	Event: compaction.Event,
	Whole: func(r *remote.Reply, data []byte) error {
		if e := remote.Reported(0, data); e != nil {
			return e
		}
		var m struct {
			Data []struct {
				Index     int             `json:"index"`
				Embedding json.RawMessage `json:"embedding"`
			} `json:"data"`
			Usage *usage `json:"usage"`
		}
		err := json.Unmarshal(data, &m)
		vectors := make([][]byte, len(m.Data))
		for _, d := range m.Data {
			if d.Index < 0 || d.Index >= len(vectors) || !rawjson.IsArray(d.Embedding) {
				return fmt.Errorf("number %d of data is no vector", d.Index)
			}
			vectors[d.Index] = d.Embedding
		}
		if err != nil {
			return err
		}
		r.Text.Write(rawjson.Array(vectors))
		meter(r, m.Usage)
		r.Ended, r.Done = true, true
		return nil
	},
}
