package remote_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/model"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestEncode compares what is sent to each API byte for byte: of a conversation with every
// kind of part, and, by their hashes, of random ones.
func TestEncode(t *testing.T) {
	every := append(coretest.Session(), coretest.Conversation(
		coretest.User(core.Text("Look at <this> & that")),
		coretest.Assistant(core.Reasoning{Text: "hm", Signature: "c2ln"}, core.Text("I look."), coretest.Call("a b"), coretest.Call("call_2")),
		coretest.User(coretest.Result("a b", "one"), core.ToolResult{CallID: "call_2", IsError: true, Content: []core.Part{
			core.Text("two"), coretest.Image(1),
		}}),
		coretest.User(core.Text("And\nnow?"), core.Image{MediaType: "image/png", Data: "iVBORw0KGgoAAAANSUhEUg=="}, core.Image{URL: "https://example.com/a.png"}, core.Text(" ")),
		coretest.Assistant(core.Opaque{Kind: "document", JSON: `{"type":"document"}`}),
		coretest.Assistant(core.Text("Nothing."), core.ToolCall{ID: "lost", Name: "read file", Args: `[1]`}),
		coretest.User(coretest.Result("unknown", "orphan"), core.Text("Go on.")),
	)...)
	for _, format := range []string{"anthropic", "openai"} {
		var out bytes.Buffer
		encode := func(p *model.Prompt) string {
			system, encoded := "", []json.RawMessage(nil)
			if format == "anthropic" {
				system, encoded = apimessage.EncodeAnthropic(remote.Input(p))
			} else {
				encoded = apimessage.EncodeOpenAI(remote.Input(p))
			}
			text := fmt.Sprintf("system %q\n", string([]rune(system))) // as valid UTF-8
			for _, m := range encoded {
				text += string(m) + "\n"
			}
			return text
		}
		for _, cached := range []bool{false, true} {
			fmt.Fprintf(&out, "# every kind of part, cached %t\n", cached)
			out.WriteString(encode(&model.Prompt{System: "Be \"brief\" & <kind>.", Messages: every, Cached: cached}))
			for seed := range uint64(50) {
				m := coretest.Random(rand.New(rand.NewPCG(seed, 0)), nil)
				fmt.Fprintf(&out, "# random %d, cached %t: %x\n", seed, cached, sha256.Sum256([]byte(encode(&model.Prompt{Messages: m, Cached: cached}))))
			}
		}
		golden := filepath.Join("testdata", format+".txt")
		if *update {
			if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s: what is sent differs from %s", format, golden)
		}
	}
}
