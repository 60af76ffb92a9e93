package agents_test

import (
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

// mutable lets the gateway add headers to an answer, as it does, which node refuses.
const mutable = `data:text/javascript,const f=fetch;globalThis.fetch=async(...a)=>{const r=await f(...a);return new Response(r.body,r)}`

// TestPortkey runs agents through Portkey's gateway, which asks condense as its guardrail of the type webhook, and sends to the vendor
// itself: Claude Code in its words, a loop on OpenAI's SDK in those of Chat Completions.
func TestPortkey(t *testing.T) {
	t.Parallel()
	for _, vendor := range []string{"anthropic", "openai"} {
		t.Run(vendor, func(t *testing.T) {
			if vendor == "anthropic" {
				atNight(t)
			}
			t.Parallel()
			d := newDesk(t, scenario())
			g := d.serve(t, "127.0.0.1:0")
			config, err := json.Marshal(map[string]any{
				"provider": vendor, "custom_host": d.url + "/v1",
				"before_request_hooks": []any{map[string]any{
					"type": "guardrail", "id": "condense",
					"checks": []any{map[string]any{"id": "default.webhook", "parameters": map[string]any{"webhookURL": g.url + "/v1/compress", "timeout": 60_000}}},
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			free := httptest.NewServer(nil)
			at := free.URL
			free.Close()
			var out testkit.Log
			d.start(t, nil, &out, "node", "--import", mutable, filepath.Join(d.modules, "@portkey-ai/gateway/build/start-server.js"), "--headless", "--port="+at[strings.LastIndex(at, ":")+1:])
			testkit.Eventually(t, "the gateway runs", func() bool { return strings.Contains(out.String(), "Ready") })
			headers := []string{"x-portkey-config: " + string(config), `x-portkey-metadata: {"session_id":"a conversation"}`}
			var got result
			if vendor == "anthropic" {
				a := &all[0]
				d.at(t, a, at)
				got = d.run(t, append(slices.Clip(a.env), "ANTHROPIC_CUSTOM_HEADERS="+strings.Join(headers, "\n")), filepath.Join(d.home, "bin", a.name), append(slices.Clip(a.args), task)...)
			} else {
				d.place(t, "loop-openai.mjs")
				got = d.run(t, []string{"OPENAI_API_KEY=dummy", "OPENAI_BASE_URL=" + at + "/v1", "OPENAI_CUSTOM_HEADERS=" + strings.Join(headers, "\n")}, "node", "loop-openai.mjs", task)
			}
			if t.Logf("portkey:\n%s", tail(out.String())); g.epochs(t) == 0 {
				t.Fatalf("nothing was condensed\n%s\n%s", tail(got.out), d.list())
			}
			d.condensed(t, got, g.epochs(t))
		})
	}
}
