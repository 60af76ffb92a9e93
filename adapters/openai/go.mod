// A module of its own: whoever uses another library does not build OpenAI's SDK.
module github.com/condensehq/condense/adapters/openai

go 1.26.0

require (
	github.com/openai/openai-go/v3 v3.99.0
	github.com/condensehq/condense v0.0.0
	github.com/condensehq/condense/adapters v0.0.0
)

replace (
	github.com/condensehq/condense => ../..
	github.com/condensehq/condense/adapters => ..
)
