package servecmd

import (
	"slices"
	"testing"

	"github.com/condensehq/condense/config"
)

// A server that the agent's own settings name without /v1 is asked without it, as it is when the agent asks it alone.
func TestOwnServersWithoutV1AreAskedAsBefore(t *testing.T) {
	own := addresses{
		"openai":    {url: "http://localhost:8080/", versioned: true},
		"anthropic": {url: "http://localhost:8081"},
	}
	g := &gateway{upstreams: own.upstreams(), plain: own.unversioned()}
	opts, err := g.options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	if opts.Upstreams.URLs["openai"] != "http://localhost:8080/" || !slices.Equal(opts.Upstreams.Unversioned, []string{"openai"}) {
		t.Errorf("%v, without /v1: %v", opts.Upstreams.URLs, opts.Upstreams.Unversioned)
	}
	if replaced := own.unless([]string{"openai=http://localhost:1"}).unversioned(); replaced != nil {
		t.Errorf("an address of a flag: %v", replaced)
	}
}
