package agents

import (
	_ "embed"
	"sync"

	"github.com/condensehq/condense/internal/tree"
)

// The names of the APIs that addresses belong to, as in --upstream.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
	Gemini    = "gemini"
	Vertex    = "vertex"
	Bedrock   = "bedrock"
	Azure     = "azure"
)

//go:embed table.yaml
var tableYAML []byte

var all = sync.OnceValue(func() (all []*Agent) {
	if err := tree.Decode(tableYAML, &all); err != nil {
		panic("agents: table.yaml: " + err.Error()) // embedded and tested
	}
	return all
})

// Any returns an agent that is not known.
func Any() *Agent { return all()[len(all())-1] }
