// Package benchdata generates the conversation of the benchmarks: always the same, of any length, in the
// shape of a coding agent's session. It is for tests only.
//
// A turn has four messages: the user asks, the model calls a tool that reads a file, a user message has the
// result, the model answers. Three in ten reads repeat an earlier one verbatim. 10,000 messages have 5.2 MB
// of text, about 1.2 million tokens of o200k_base. The size of every part of a turn varies around its mean,
// so a shorter conversation is smaller in proportion.
package benchdata

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/condensehq/condense/core"
)

// perTurn is the number of messages in a turn.
const perTurn = 4

// Messages returns a conversation of n messages with IDs and times, not measured. It is a prefix of every
// longer one. Messages panics if n is negative.
func Messages(n int) []core.Message {
	w := writer{rand: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // it has to be the same every time
	out := make([]core.Message, 0, n+perTurn)
	for turn := 0; len(out) < n; turn++ {
		out = append(out, w.turn(turn)...)
	}
	out = out[:n]
	for i := range out {
		out[i].ID = fmt.Sprintf("m%d", i+1)
		out[i].Time = start.Add(time.Duration(i) * 20 * time.Second)
	}
	return out
}

var start = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// A read is a call of the tool and its result.
type read struct{ args, content string }

func (w *writer) turn(turn int) []core.Message {
	ask := w.prose(300)
	say := w.prose(140)
	r := w.read(turn)
	answer := w.prose(360)
	id := fmt.Sprintf("toolu_%06d", turn)
	return []core.Message{
		{Role: core.RoleUser, Parts: []core.Part{core.Text(ask)}},
		{Role: core.RoleAssistant, Parts: []core.Part{core.Text(say), core.ToolCall{ID: id, Name: "read_file", Args: r.args}}},
		{Role: core.RoleUser, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(r.content)}}}},
		{Role: core.RoleAssistant, Parts: []core.Part{core.Text(answer)}},
	}
}

func (w *writer) read(turn int) read {
	if slices.Contains([]int{4, 7, 9}, turn%10) { // three in ten are repetitions
		return w.reads[w.rand.IntN(len(w.reads))]
	}
	line := 1 + 40*w.rand.IntN(20)
	path := fmt.Sprintf("internal/%s/%s_%d.go", w.pick(nouns), w.pick(verbs), turn)
	r := read{args: fmt.Sprintf(`{"path":"%s","offset":%d,"limit":40}`, path, line), content: w.source(1100)}
	w.reads = append(w.reads, r)
	return r
}
