// A module of its own: whoever uses another library does not build Anthropic's SDK.
module github.com/condensehq/condense/adapters/anthropic

go 1.26.0

require (
	github.com/anthropics/anthropic-sdk-go v1.84.0
	github.com/condensehq/condense v0.0.0
	github.com/condensehq/condense/adapters v0.0.0
)

replace (
	github.com/condensehq/condense => ../..
	github.com/condensehq/condense/adapters => ..
)
