package byhand

import (
	"fmt"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// A Counter is the host's counter for a provider in a plugin. It asks the host as seldom as it can.
type Counter struct {
	ask  func(contents [][]core.Part) ([]int64, error)
	fail func(error)

	// The received messages, and the first part of each in the copy for the provider:
	// counting all parts of a message returns the number that the host sent.
	messages []core.Message
	firsts   []*core.Part

	mu    sync.Mutex
	known map[*core.Part]int // index of the message whose first part it is; nil before it is needed
	seen  map[core.Part]int  // counts of comparable parts
}

// NewCounter returns a counter for the call with these messages, whose copy given the provider gets. Ask asks the host; fail
// ends the call with its error.
func NewCounter(messages, given []core.Message, ask func(contents [][]core.Part) ([]int64, error), fail func(error)) *Counter {
	c := &Counter{ask: ask, fail: fail, messages: messages, seen: map[core.Part]int{}}
	c.firsts = make([]*core.Part, len(given))
	for i := range given {
		if len(given[i].Parts) > 0 {
			c.firsts[i] = &given[i].Parts[0]
		}
	}
	return c
}

// Count asks the host. If that fails, the call has failed, and Count returns an estimate so
// that the provider can finish.
func (c *Counter) Count(parts ...core.Part) int { return c.CountEach(parts)[0] }

// CountEach counts each list of parts separately, in one round trip.
func (c *Counter) CountEach(contents ...[]core.Part) []int {
	counts := make([]int, len(contents))
	var ask []int // indexes of unknown counts
	c.mu.Lock()
	for i, parts := range contents {
		n, ok := c.lookup(parts)
		if counts[i] = n; !ok {
			ask = append(ask, i)
		}
	}
	c.mu.Unlock()
	if len(ask) == 0 {
		return counts
	}
	unknown := plain.Each(ask, func(i int) []core.Part { return contents[i] })
	got, err := c.ask(unknown)
	if err == nil && len(got) != len(ask) {
		err = fmt.Errorf("the host answered %d numbers to %d questions", len(got), len(ask))
	}
	if err != nil {
		c.fail(fmt.Errorf("count tokens: %w", err))
		for _, i := range ask {
			counts[i] = core.ContentBytes(contents[i]...) / 4 // an estimate without effect: the call is over
		}
		return counts
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for j, i := range ask {
		counts[i] = int(got[j])
		if len(contents[i]) == 1 {
			if p := contents[i][0]; isKey(p) {
				c.seen[p] = counts[i]
			}
		}
	}
	return counts
}

// lookup returns the known count of parts.
func (c *Counter) lookup(parts []core.Part) (int, bool) {
	if len(parts) == 0 {
		return 0, true
	}
	if c.known == nil {
		c.known = make(map[*core.Part]int, len(c.firsts))
		for i, p := range c.firsts {
			c.known[p] = i
		}
	}
	if i, ok := c.known[&parts[0]]; ok {
		if m := &c.messages[i]; m.Tokens > 0 && core.EqualParts(m.Parts, parts) {
			return m.Tokens - core.FramingTokens, true
		}
	}
	if len(parts) == 1 && isKey(parts[0]) {
		n, ok := c.seen[parts[0]]
		return n, ok
	}
	return 0, false
}

// isKey reports whether p can be the key of a map: tool results cannot.
func isKey(p core.Part) bool {
	_, result := p.(core.ToolResult)
	return !result
}
