package request

import (
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
)

// Pairs names the calls of a conversation in an API in which they have no IDs, or need none: a result answers the
// call with its ID or, without one, the first open call of its tool. The zero value is ready.
type Pairs struct {
	n    int
	used map[string]bool
	open []opened
}

type opened struct{ own, id, name string }

// Turn begins a message of the model: calls before it that have no result get none.
func (p *Pairs) Turn() { p.open = nil }

// Call returns the ID of the next call, of which own is the client's ID, if it has one.
func (p *Pairs) Call(own, name string) string {
	p.n++
	id := own
	if p.used == nil {
		p.used = map[string]bool{}
	}
	for n := p.n; id == "" || p.used[id]; n++ {
		id = fmt.Sprint("call-", n)
	}
	p.used[id] = true
	p.open = append(p.open, opened{own, id, name})
	return id
}

// Result returns the ID of the call that a result answers, of which own and name are the ID and the tool, if it has
// them. Without such a call it is an ID that no call has.
func (p *Pairs) Result(own, name string) string {
	fits := []func(o opened) bool{
		func(o opened) bool { return own != "" && o.own == own },
		func(o opened) bool { return o.name == name },
		func(opened) bool { return name == "" },
	}
	for _, fit := range fits {
		rest := p.open
		for i, o := range rest {
			if fit(o) {
				if p.open = p.open[1:]; i > 0 { // results come in the order of calls, mostly
					p.open = append(rest[:i:i], rest[i+1:]...)
				}
				return o.id
			}
		}
	}
	p.n++
	return fmt.Sprint("result-", p.n)
}

// ToolNames returns the names of the tools by the IDs of their calls.
func ToolNames(f *codec.File) map[string]string {
	names := map[string]string{}
	for _, m := range f.Journal.Messages() {
		for _, part := range m.Parts {
			if c, ok := part.(core.ToolCall); ok {
				names[c.ID] = c.Name
			}
		}
	}
	return names
}

// Open reports whether a call waits for its result.
func (p *Pairs) Open() bool { return len(p.open) > 0 }
