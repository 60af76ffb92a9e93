package vendor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/transcript"
)

// A compactor answers with a window of its own.
type compactor struct{ api, window string }

func (c compactor) Info() model.Info { return model.Info{Name: "theirs", Free: true} }

func (c compactor) Generate(context.Context, *model.Prompt) (*model.Answer, error) {
	return nil, model.ErrNoText
}

func (c compactor) Compacts() string { return c.api }

func (c compactor) Compact(context.Context, *model.Prompt) (*model.Answer, error) {
	return &model.Answer{Text: c.window, Usage: core.Usage{Calls: 1}}, nil
}

// The formats of the two APIs write a block or item byte for byte. In another format the next provider of the chain
// is asked.
func TestFormats(t *testing.T) {
	const (
		block = `{"type":"compaction","content":"a < b & \u00e9","signature":"c2ln"}`
		item  = `{"id":"cmp_1", "type":"compaction","encrypted_content":"gAAAA","x":1.0}`
	)
	message := map[string]string{
		"anthropic": `{"role":%q,"content":[{"type":"text","text":%q}]}`,
		"responses": `{"type":"message","role":%q,"content":[{"type":"input_text","text":%q}]}`,
		"openai":    `{"role":%q,"content":%q}`,
	}
	for _, tt := range []struct{ api, format, window, want string }{
		{"anthropic", "anthropic", "[" + block + "]", block},
		{"responses", "responses", "[" + item + "]", item},
		{"anthropic", "openai", "[" + block + "]", ""},
		{"responses", "anthropic", "[" + item + "]", ""},
	} {
		t.Run(tt.api+" in "+tt.format, func(t *testing.T) {
			var all []string
			for i := range 60 {
				text := fmt.Sprintf("Number %d. ", i) + strings.Repeat("Some words that are said. ", 20)
				all = append(all, fmt.Sprintf(message[tt.format], []string{"user", "assistant"}[i%2], text))
			}
			name := map[string]string{"responses": "input"}[tt.format]
			if name == "" {
				name = "messages"
			}
			doc, err := transcript.Read(strings.NewReader(fmt.Sprintf(`{"model":"m","%s":[%s]}`, name, strings.ReplaceAll(strings.Join(all, ","), `assistant","content":[{"type":"input_text`, `assistant","content":[{"type":"output_text`))), &transcript.ReadOptions{Format: tt.format})
			if err != nil {
				t.Fatal(err)
			}
			values := &config.Values{
				DefaultProfile: "p",
				Profiles:       map[string]config.ProfileValues{"p": {Window: new(8000), Tuning: config.Tuning{Chain: []string{"v"}}}},
				Providers:      map[string]config.ProviderValues{"v": {Strategy: "vendor", Settings: json.RawMessage(`{"model":"theirs"}`)}},
			}
			h, err := condense.Open(t.Context(), &condense.Options{Values: values, Models: map[string]model.Generator{"theirs": compactor{tt.api, tt.window}}})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			report, err := h.Manage(t.Context(), condense.ResumeConversation(doc.Journal), condense.Turn{Trigger: core.TriggerManual, API: tt.format})
			if err != nil || !report.Acted {
				t.Fatalf("%v: %+v", err, report)
			}
			var out bytes.Buffer
			if _, err := doc.WriteWith(&out, &transcript.WriteOptions{Format: tt.format, Apart: true}); err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if strings.Contains(out.String(), `"compaction"`) || report.Attempts[0].Err == nil {
					t.Errorf("attempts %+v\n%.500s", report.Attempts, out.String())
				}
				return
			}
			if !strings.Contains(out.String(), tt.want) {
				t.Errorf("not written as it came:\n%.1000s", out.String())
			}
			again, err := transcript.Read(bytes.NewReader(out.Bytes()), &transcript.ReadOptions{Format: tt.format})
			if err != nil {
				t.Fatal(err)
			}
			if p, ok := again.Journal.View()[0].Parts[0].(core.Opaque); !ok || p.JSON != tt.want {
				t.Errorf("read again: %+v", again.Journal.View()[0])
			}
		})
	}
}
