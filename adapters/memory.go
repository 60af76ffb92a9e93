package adapters

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
)

// A Memory is one conversation of an agent. It is safe for concurrent use, save for the result of [Memory.Conversation].
type Memory[M any] struct {
	host  *condense.Host
	codec Codec[M]

	mu     sync.Mutex
	c      *condense.Conversation
	own    bool             // c is not the program's, so that another may take its place
	report *condense.Report // of the latest turn
	given  map[string]M     // the agent's messages by ID, as the agent gave them: they are returned, not copies
	sums   map[string]sum   // of the messages by ID
	bound  bool             // see BindThinking
	stale  map[string]bool  // messages whose thinking was written after others than those now before it
	was    []core.Message   // the latest view
	sent   []sending        // the latest turn's result, without the system's messages at its head
}

// A sending is a message that was returned.
type sending struct {
	id  string
	sum sum
}

// ErrForeign means that the messages are not those of the conversation that the program resumed.
var ErrForeign = errors.New("the messages are of another conversation")

// NewMemory returns the memory of a conversation. With nil it begins a new one, and begins another whenever it is given messages of
// another one. Otherwise c is a conversation that goes on, for instance of a journal on disk.
func NewMemory[M any](h *condense.Host, codec Codec[M], c *condense.Conversation) *Memory[M] {
	m := &Memory[M]{host: h, codec: codec, c: c, own: c == nil}
	if m.own {
		m.c = condense.NewConversation()
	}
	m.forget()
	return m
}

func (m *Memory[M]) forget() {
	m.given, m.sums, m.sent, m.was, m.stale = map[string]M{}, map[string]sum{}, nil, nil, map[string]bool{}
}

// BindThinking says that the model refuses thinking that it wrote after other messages: then that thinking is left out.
func (m *Memory[M]) BindThinking(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bound = on
}

// Conversation returns the conversation, to undo a condensation or to recall hidden content. It must not be used while
// [Memory.Shorten] runs.
func (m *Memory[M]) Conversation() *condense.Conversation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.c
}

// Report returns the report of the latest turn; nil before the first.
func (m *Memory[M]) Report() *condense.Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report
}

// Shorten returns the messages to send in place of these, which it does not change: call it before every request. They are the whole
// conversation, or the last call's result and all that came since, as the agent keeps them. If the agent went back to an earlier
// message, so does the conversation. The system's messages at the head are sent as they are; their text is added to t.System.
//
// A message that is not shortened is returned itself, not a copy.
func (m *Memory[M]) Shorten(ctx context.Context, t condense.Turn, messages []M) ([]M, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	head, system, err := m.head(messages)
	if err != nil {
		return nil, err
	}
	if err := m.follow(messages[head:]); err != nil {
		return nil, err
	}
	t.System = strings.TrimPrefix(t.System+"\n"+system, "\n")
	report, err := m.host.Manage(ctx, m.c, t)
	if report != nil {
		m.report = report
	}
	if err != nil {
		return nil, err
	}
	view, err := m.view()
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(messages[:head]), view...), nil
}

// head returns the number of the system's messages at the head, and their text.
func (m *Memory[M]) head(messages []M) (n int, text string, err error) {
	var texts []string
	for i, g := range messages {
		c, err := m.codec.Read(g)
		if err != nil {
			return 0, "", fmt.Errorf("message %d: %w", i+1, err)
		}
		if c.Role != core.RoleSystem {
			break
		}
		for _, p := range c.Parts {
			if t, ok := p.(core.Text); ok {
				texts = append(texts, string(t))
			}
		}
		n++
	}
	return n, strings.Join(texts, "\n"), nil
}

// follow brings the conversation to where messages are: it appends the new ones, and goes back first if the agent did.
func (m *Memory[M]) follow(messages []M) error {
	added, err := ToCore(m.codec, messages)
	if err != nil {
		return err
	}
	added, messages = inOrder(added, messages)
	sums := make([]sum, len(added))
	for i := range added {
		if sums[i], err = sumOf(added[i]); err != nil {
			return err
		}
	}
	if m.sent == nil {
		if _, err := m.view(); err != nil { // of a conversation that goes on
			return err
		}
	}
	recorded, err := m.recorded()
	if err != nil {
		return err
	}
	seen, was := common(sums, recorded), recorded
	if n := common(sums, m.sent); seen < len(recorded) && (n == len(m.sent) || n > seen) {
		seen, was = n, m.sent
		for seen > 0 && seen < len(was) && was[seen].id == was[seen-1].id {
			seen-- // a message of core's that is several of the library's
		}
	}
	for i := range seen {
		if m.sums[was[i].id] == sums[i] { // with other fields, perhaps
			m.given[was[i].id] = messages[i]
		}
	}
	switch {
	case seen == len(was):
	case seen > 0:
		if err := m.c.Rewind(was[seen-1].id); err != nil {
			return err
		}
	case !m.own:
		return ErrForeign
	default:
		m.c = condense.NewConversation()
		m.forget()
	}
	if err := m.c.Append(added[seen:]...); err != nil {
		return err
	}
	all := m.c.Journal().Messages()
	for i, c := range all[len(all)-len(added[seen:]):] {
		m.given[c.ID], m.sums[c.ID] = messages[seen+i], sums[seen+i]
	}
	return nil
}

// inOrder returns messages with the results of parallel calls in the order of the calls: libraries report them in the order in which they
// came, too, so that an agent's history may have both.
func inOrder[M any](all []core.Message, messages []M) ([]core.Message, []M) {
	places, place := make([][2]int, len(all)), map[string]int{}
	for i, c := range all {
		calls, results := Calls(c.Parts)
		if len(calls) > 0 {
			clear(place)
		}
		for n, call := range calls {
			place[call.ID] = n
		}
		places[i] = [2]int{i, -1}
		if c.Role == core.RoleTool && len(results) == 1 {
			if n, ok := place[results[0].CallID]; ok {
				places[i][1] = n
			}
			if i > 0 && all[i-1].Role == core.RoleTool {
				places[i][0] = places[i-1][0] // of the run
			}
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return slices.Compare(places[i][:], places[j][:]) })
	sorted, given := make([]core.Message, len(all)), make([]M, len(all))
	for to, from := range order {
		sorted[to], given[to] = all[from], messages[from]
	}
	return sorted, given
}

// recorded returns the messages that were appended.
func (m *Memory[M]) recorded() ([]sending, error) {
	recorded := m.c.Journal().Messages()
	all, _ := inOrder(recorded, recorded)
	out := make([]sending, len(all))
	for i := range all {
		known, ok := m.sums[all[i].ID]
		if !ok {
			var err error
			if known, err = sumOf(all[i]); err != nil {
				return nil, err
			}
			m.sums[all[i].ID] = known
		}
		out[i] = sending{id: all[i].ID, sum: known}
	}
	return out, nil
}

// A sum is a checksum of the role and parts of a message: other fields that a library sets may differ from time to time.
type sum [sha256.Size]byte

func sumOf(c core.Message) (sum, error) {
	data, err := json.Marshal(core.Message{Role: c.Role, Parts: c.Parts})
	return sha256.Sum256(data), err
}

// common returns how many messages at the beginning are the same.
func common(sums []sum, was []sending) int {
	n := 0
	for n < len(sums) && n < len(was) && sums[n] == was[n].sum {
		n++
	}
	return n
}

// view returns the view, and remembers it.
func (m *Memory[M]) view() ([]M, error) {
	view := m.c.View()
	m.judge(view)
	out := []M{}
	m.sent = []sending{}
	for _, c := range view {
		if m.bound && m.stale[c.ID] {
			thought := len(c.Parts)
			c.Parts = slices.DeleteFunc(slices.Clone(c.Parts), func(p core.Part) bool { _, ok := p.(core.Reasoning); return ok })
			if len(c.Parts) == 0 && thought > 0 {
				continue
			}
		}
		written, err := m.write(c)
		if err != nil {
			return nil, err
		}
		for _, w := range written {
			read, err := m.codec.Read(w)
			if err != nil {
				return nil, err
			}
			sum, err := sumOf(read)
			if err != nil {
				return nil, err
			}
			out, m.sent = append(out, w), append(m.sent, sending{id: c.ID, sum: sum})
		}
	}
	m.was = view
	return out, nil
}

// judge notes which thinking is stale: all that is in view if it does not begin as the one before.
func (m *Memory[M]) judge(view []core.Message) {
	n := len(m.was)
	same := n <= len(view) && slices.EqualFunc(m.was, view[:min(n, len(view))], core.Message.Equal)
	if m.sent == nil && len(m.c.Journal().Condensations()) > 0 || !same {
		for i := range view {
			m.stale[view[i].ID] = true
		}
	}
}

func (m *Memory[M]) write(c core.Message) ([]M, error) {
	was, given := m.given[c.ID]
	if !given {
		return fromSource(m.codec, c)
	}
	if o, ok := m.c.Journal().Message(c.ID); ok && core.EqualParts(o.Parts, c.Parts) {
		return []M{was}, nil
	}
	return m.codec.Write(c, &was)
}

// A Sessions is the memories of an agent that serves several conversations, by name. Its zero value must not be used: see [NewSessions].
type Sessions[M any] struct {
	host  *condense.Host
	codec Codec[M]

	mu  sync.Mutex
	all map[string]*Memory[M]
}

// NewSessions returns no sessions.
func NewSessions[M any](h *condense.Host, codec Codec[M]) *Sessions[M] {
	return &Sessions[M]{host: h, codec: codec, all: map[string]*Memory[M]{}}
}

// Of returns the memory of a name, and makes it if there is none.
func (s *Sessions[M]) Of(name string) *Memory[M] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[name] == nil {
		s.all[name] = NewMemory(s.host, s.codec, nil)
	}
	return s.all[name]
}

// Forget drops the memory of a name, which has all that was said.
func (s *Sessions[M]) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name)
}
