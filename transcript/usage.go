package transcript

import (
	"encoding/json"
	"time"

	"github.com/condensehq/condense/core"
)

// Usage is what an agent recorded of the vendor's count of one request, in tokens.
type Usage struct {
	ID, Model string
	Input     int // the whole prompt
	Read      int // of it, that a cache served
	Write     int // of it, written to a cache
	Hour      int // of these, that live an hour
}

// ReadUsage returns the usage that a message of a session file, its Source, records for its request, in the forms of Claude Code,
// pi, OpenCode, Gemini CLI and Qwen Code.
func ReadUsage(source json.RawMessage) (Usage, bool) {
	type usage struct {
		Input      int `json:"input_tokens"`
		CacheRead  int `json:"cache_read_input_tokens"`
		CacheWrite int `json:"cache_creation_input_tokens"`
		Creation   struct {
			Hour int `json:"ephemeral_1h_input_tokens"`
		} `json:"cache_creation"`
		PiInput int `json:"input"`
		PiRead  int `json:"cacheRead"`
		PiWrite int `json:"cacheWrite"`
	}
	type tokens struct {
		Input  int `json:"input"`
		Cached int `json:"cached"` // of Input
		Cache  struct {
			Read  int `json:"read"`
			Write int `json:"write"`
		} `json:"cache"`
	}
	type message struct {
		ID      string `json:"id"`
		Model   string `json:"model"`
		ModelID string `json:"modelID"`
		Usage   usage  `json:"usage"`
		Tokens  tokens `json:"tokens"`
		Meta    struct {
			Prompt int `json:"promptTokenCount"`
			Cached int `json:"cachedContentTokenCount"` // of Prompt
		} `json:"usageMetadata"`
	}
	var line struct {
		message
		Message message `json:"message"`
		Info    message `json:"info"`
	}
	if json.Unmarshal(source, &line) != nil {
		return Usage{}, false
	}
	for _, m := range []message{line.Message, line.Info, line.message} {
		u, t := m.Usage, m.Tokens
		out := Usage{
			ID: m.ID, Model: m.Model + m.ModelID, Hour: u.Creation.Hour,
			Read: u.CacheRead + u.PiRead + t.Cache.Read + t.Cached + m.Meta.Cached, Write: u.CacheWrite + u.PiWrite + t.Cache.Write,
		}
		out.Input = u.Input + u.PiInput + t.Input - t.Cached + m.Meta.Prompt - m.Meta.Cached + out.Read + out.Write
		if out.Input > 0 {
			return out, true
		}
	}
	return Usage{}, false
}

// Recorded is what a vendor counted of a request, as the agent recorded it.
type Recorded struct {
	Messages int // of the view, from the first, that were in the request
	Tokens   int // of these, and of what the agent sent besides them
}

// Recorded returns the vendor's counts of requests since the last condensation, in order. It is empty for formats without them.
func (d *Document) Recorded() []Recorded {
	if d.Format != d.Origin {
		return nil
	}
	var since time.Time
	if all := d.Journal.Condensations(); len(all) > 0 {
		since = all[len(all)-1].Time
	}
	at := map[string]int{}
	for _, n := range d.counts {
		at[n.Message] = n.Tokens
	}
	var out []Recorded
	add := func(messages, n int) {
		if n > 0 && (len(out) == 0 || out[len(out)-1].Tokens != n) { // the records of one answer repeat it
			out = append(out, Recorded{messages, n})
		}
	}
	view := d.Journal.View()
	for i := range view {
		switch m := &view[i]; {
		case m.Time.Before(since):
		case at[m.ID] > 0:
			add(i+1, at[m.ID])
		case m.Role == core.RoleAssistant:
			u, _ := ReadUsage(m.Source)
			add(i, u.Input)
		}
	}
	return out
}
