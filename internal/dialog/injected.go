package dialog

import "github.com/condensehq/condense/internal/toolcall"

// A block is an element that agents put into user messages, with the author of its content.
type block struct {
	name string
	by   Kind
}

// blocks are all that are known, by name.
var blocks = func() map[string]block {
	all := map[string]block{}
	for name, e := range toolcall.Elements() {
		all[name] = block{name, writers[e.By]}
	}
	return all
}()

// writers are the kinds of what programs put into user messages.
var writers = map[toolcall.Writer]Kind{
	toolcall.Program: KindInjected, toolcall.Agent: KindInjected, toolcall.Surroundings: KindEnvironment, toolcall.Rules: KindProjectRules, toolcall.Person: KindUser,
}
