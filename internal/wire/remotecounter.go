package wire

import (
	"context"
	"fmt"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

// A remoteCounter is the host's counter as a provider in a plugin sees it.
type remoteCounter struct {
	//nolint:containedctx // Count has no context: it belongs to the call that it was made for
	ctx    context.Context
	cancel context.CancelCauseFunc
	call   *serverCall

	// The messages as they came, and the first part of each in the copy that the provider
	// has: whoever counts all parts of a message is told what the host sent.
	messages []core.Message
	firsts   []*core.Part

	mu    sync.Mutex
	known map[*core.Part]int // index of the message whose first part it is; nil before it is needed
	seen  map[core.Part]int  // what was counted, of what is comparable
}

func newRemoteCounter(ctx context.Context, cancel context.CancelCauseFunc, call *serverCall, messages, given []core.Message) *remoteCounter {
	c := &remoteCounter{ctx: ctx, cancel: cancel, call: call, messages: messages, seen: map[core.Part]int{}}
	c.firsts = make([]*core.Part, len(given))
	for i := range given {
		if len(given[i].Parts) > 0 {
			c.firsts[i] = &given[i].Parts[0]
		}
	}
	return c
}

// Count asks the host. If it cannot be asked, the call is lost, and an estimate lets the
// provider come to its end.
func (c *remoteCounter) Count(parts ...core.Part) int {
	return c.CountEach(parts)[0]
}

// CountEach counts every list of parts for itself, in one round trip.
func (c *remoteCounter) CountEach(contents ...[]core.Part) []int {
	counts := make([]int, len(contents))
	var ask []int // indexes of what is not known
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
	got, err := c.count(contents, ask)
	if err != nil {
		c.cancel(fmt.Errorf("count tokens: %w", err))
		for _, i := range ask {
			counts[i] = core.ContentBytes(contents[i]...) / 4 // a guess that nothing comes of: the call is over
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

// lookup returns what is known of parts.
func (c *remoteCounter) lookup(parts []core.Part) (int, bool) {
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
	switch p.(type) {
	case core.Text, core.ToolCall, core.Image, core.Reasoning, core.Opaque:
		return true
	default:
		return false
	}
}

func (c *remoteCounter) count(contents [][]core.Part, ask []int) ([]int64, error) {
	req := &condensepb.CountTokens{}
	for _, i := range ask {
		parts, err := toParts(contents[i])
		if err != nil {
			return nil, err
		}
		req.Items = append(req.Items, &condensepb.CountItem{Kind: &condensepb.CountItem_Content{Content: &condensepb.Content{Parts: parts}}})
	}
	r, err := c.call.ask(c.ctx, &condensepb.Callback{Call: &condensepb.Callback_CountTokens{CountTokens: req}})
	if err != nil {
		return nil, err
	}
	got := r.GetTokenCounts().GetTokens()
	if len(got) != len(ask) {
		return nil, fmt.Errorf("the host answered %d numbers to %d questions", len(got), len(ask))
	}
	return got, nil
}
