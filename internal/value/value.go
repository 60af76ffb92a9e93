// Package value shortens a conversation by choosing, from its older part, the lines with the highest expected use per
// token. The newest messages are kept, except lines of long results. The chosen lines of all others are in one
// message before them, an extract. It calls no model.
//
// [Read] divides a conversation into passages (one author's text in one part of a message), their lines, and in the
// lines terms (names and rare words) and phrases (four words in a row). [Model.Estimate] gives each of them a
// value: the probability that it is written again before it is seen again, times the difficulty of guessing it.
//
// The probabilities are from two logistic models, corrected by small decision trees. Their features can be observed
// by any reader of the history: the author of a text, its age, its frequency, its kind, whether its file is still
// being worked on. Weights and trees are data (weights.json), fitted to recorded sessions by a command:
//
//	go run -C bench ./train -traces DIR
//
// docs/decisions/0017-line-selection.md describes the data of the fit and its check.
package value

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// Options say how far to shorten.
type Options struct {
	// Room is the most tokens that the messages may have, counted by Counter. If nothing but the user's words is left,
	// they may have Words, and if nothing but the newest request, Limit. At least Room; 0 means Room.
	Room, Words, Limit int
	Counter            core.Counter
	// Shares divide the room; nil means [DefaultShares].
	Shares *Shares
	// Reader reads the conversation; nil means a new one. A reader that has read it before is faster.
	Reader *dialog.Reader
	// Original returns a part of a message as it was before any shortening. Handles are those of the original
	// content. Nil means the part itself.
	Original func(m *core.Message, part int) core.Part
	// Only selects the results that may be shortened. If it is not nil, all messages stay, and nothing else in them
	// changes.
	Only func(m *core.Message, part int) bool
	// NoHandles leaves out all handles, for conversations without a way to recall by them.
	NoHandles bool
	// Framed says that the extracts of earlier condensations have a host's frame, as in a plugin, whose own texts all get one again.
	Framed bool
	// Account is an account of the messages elsewhere in the conversation; empty if there is none. Lines that it
	// repeats lose their value; lines about names that it only mentions gain value.
	Account string
	// Model estimates later use; nil means [DefaultModel].
	Model *Model
}

// A Result is a shorter conversation.
type Result struct {
	// Messages are the new messages, oldest first. Messages of the conversation have their IDs, an extract has none.
	// All are measured.
	Messages []core.Message
	Tokens   int // of all messages
	// Lost is the size in tokens of the user's words that are missing, pasted texts aside. If it is above 0, nothing is
	// left but the user's words and the messages that must stay.
	Lost float64
	Cut  bool // the newest request is not whole
	// Kinds tells how much of every kind of passage was kept, by the kind's name.
	Kinds map[string]Account
}

// An Account tells how much of something was kept.
type Account struct {
	Lines, LinesKept   int
	Tokens, TokensKept int
}

// Shorten returns messages of at most o.Room tokens, provided that required messages leave room: system messages,
// protected ones, calls whose results are still to come, and the user's newest request. Messages must be measured by
// o.Counter. A conversation
// that fits, or that cannot be made smaller, is returned unchanged. The result obeys [core.Rules] and is a function
// of the input. The cost is linear in the conversation, except for the choice among lines, which looks at some of
// them the more often the more there are: bench/results/appendix-benchmarks.md.
func Shorten(ctx context.Context, messages []core.Message, o Options) (Result, error) {
	if o.Counter == nil {
		return Result{}, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	same := Result{Messages: messages, Tokens: core.TotalTokens(messages)}
	if same.Tokens <= o.Room || len(messages) == 0 {
		return same, nil
	}
	if err := o.complete(); err != nil {
		return Result{}, err
	}
	v, pre, err := prepare(ctx, readAll(messages, &o))
	if err != nil {
		return Result{}, err
	}
	w, res, err := shorten(ctx, v, pre)
	if err != nil {
		return Result{}, err
	}
	if o.Only != nil {
		if res.Tokens >= same.Tokens {
			return same, nil
		}
		return res, nil
	}
	for _, again := range []func(context.Context, *choice, Result) (*choice, Result, error){less, more} {
		if w, res, err = again(ctx, w, res); err != nil {
			return Result{}, err
		}
	}
	if res.Tokens >= same.Tokens || res.Cut && same.Tokens <= o.Limit {
		return same, nil
	}
	return res, nil
}

// complete sets the model, the reader and the shares if o has none.
func (o *Options) complete() error {
	if o.Model == nil {
		m, err := DefaultModel()
		if err != nil {
			return err
		}
		o.Model = m
	}
	o.Reader = cmp.Or(o.Reader, new(dialog.Reader))
	o.Words = max(o.Words, o.Room)
	o.Limit = max(o.Limit, o.Words)
	if o.Shares == nil {
		s := DefaultShares()
		if o.Only != nil { // on first reading, lines are best kept together
			s.Line, s.Adjacent = 0.2, 0.4
		}
		o.Shares = &s
	}
	return nil
}

// less returns a smaller result than res, or one with more of the user's words, if required content leaves no room:
// it keeps only the newest message, then no lists, then nothing.
func less(ctx context.Context, w *choice, res Result) (*choice, Result, error) {
	bare := *w.r.o.Shares
	for _, shares := range [][]*float64{{&bare.Tail}, {&bare.Index, &bare.Open, &bare.Files}, {&bare.Newest}} {
		if res.Tokens <= w.r.o.Room && res.Lost == 0 {
			break
		}
		for _, share := range shares {
			*share = 0
		}
		w.r.o.Shares = &bare
		last, smaller, err := shorten(ctx, w.v, w.pre)
		if err != nil {
			return nil, Result{}, err
		}
		w = last
		if smaller.Lost < res.Lost || smaller.Lost == res.Lost && smaller.Tokens < res.Tokens {
			res = smaller
		}
	}
	return w, res, nil
}

// more returns a larger result than res: a message is more than its lines, and if even all lines leave room, more of
// the newest messages stay.
func more(ctx context.Context, w *choice, res Result) (*choice, Result, error) {
	for more := *w.r.o.Shares; w.spent() < w.most() && res.Tokens < w.r.o.Room && more.Tail < 1; {
		more.Tail = min(1, 2*max(more.Tail, 0.1))
		w.r.o.Shares = &more
		last, larger, err := shorten(ctx, w.v, w.pre)
		if err != nil {
			return nil, Result{}, err
		}
		w = last
		if larger.Tokens <= res.Tokens || larger.Tokens > w.r.o.Room || larger.Lost > res.Lost {
			break
		}
		res = larger
	}
	return w, res, nil
}

// Shares divide the room among kinds of content, and weight values.
type Shares struct {
	Tail float64 // of the room, for the newest messages without their results
	// Newest is the share of the room that the newest message, or call with its results, may take to stay unchanged
	// if Tail is too small for it: it awaits an answer.
	Newest float64
	// Asked is the least share of the room for the newest message if it is cut: its beginning, end, prose and best
	// lines.
	Asked  float64
	Unread float64 // of the room, for lines of results that the model has not read yet
	Recent float64 // of the room, for one line of each of the newest results
	Human  float64 // of the room, for texts that the user pasted; the user's other words have all of it
	// Demands is the share of the room for prohibitions, requirements, limits and preferences in pasted texts. Negative:
	// they are not looked for.
	Demands float64
	Whole   float64 // of Human, for a pasted text that is kept whole
	Cut     float64 // of the room, at most, for pasted texts that are cut
	Each    float64 // of Human, for every larger message, before the rest is shared out
	// Head is the share of an oversized user message's room for its beginning. The rest is for prose, not for pasted
	// text.
	Head float64
	// Names, Words and Phrases weigh the three families, each relative to its expected sum.
	Names, Words, Phrases float64
	// Line is the share of a name's value that its line earns by itself; each adjacent line that is kept, or does not
	// exist, adds Adjacent.
	Line, Adjacent float64
	// Index is the share of the room that is left for extracts for the table of contents; without recall, for files with lines.
	// None if it is not above 0.
	Index float64
	// Open is the share of the room for the hidden state of the work: items of the newest plan that are not done,
	// commands that failed last or were fixed, and changed files. None if it is not above 0.
	Open float64
	// Files is the share of the room for blocks of the newest text of files, 2,500 tokens at most. None if it is not
	// above 0.
	Files float64
	// HandleFrom is the least number of omitted bytes of a passage for which its header in an extract has the handle
	// of the original.
	HandleFrom int
}

// DefaultShares returns the shares that docs/decisions/0017-line-selection.md describes.
func DefaultShares() Shares {
	return Shares{Tail: 0.18, Newest: 0.25, Asked: 0.25, Unread: 0.03, Recent: 0.05, Human: 0.5, Demands: 0.12, Whole: 0.5, Cut: 0.28, Each: 0.125, Head: 0.4, Names: 1, Words: 1, Phrases: 1, Line: 0.5, Adjacent: 0.25, Index: 0.2, Open: 0.05, Files: 0.08, HandleFrom: 800}
}

// A todo is an item of a plan.
type todo struct {
	id, text    string // the id without #, if it has one
	doing, done bool
	passage     int // the passage with it; -1 if only a former extract has it
}

// entry returns its line.
func (t *todo) entry() string {
	name := todoName
	if t.doing {
		name = doingName
	}
	if t.id != "" {
		name += "#" + t.id + " "
	}
	return name + t.text
}

// plan returns the newest plan: the list that a call gave last, with the changes by later calls; without such calls
// its list of checkboxes.
func (r *reading) plan() []todo {
	var list []todo
	for _, line := range r.c.open {
		text, ok := strings.CutPrefix(line, todoName)
		t := todo{passage: -1}
		if !ok {
			text, t.doing = strings.CutPrefix(line, doingName)
		}
		if !ok && !t.doing {
			continue
		}
		t.text = text
		if id, rest, is := strings.Cut(text, " "); is && len(id) > 1 && id[0] == '#' {
			t.id, t.text = id[1:], rest
		}
		list = append(list, t)
	}
	planned := false
	made := map[string]int{} // items by the call that created them
	for p := range r.c.Passages {
		pass := &r.c.Passages[p]
		if pass.partial || pass.family != families[dialog.FamilyPlan] {
			continue
		}
		if pass.answers() {
			i, ok := made[pass.call]
			if number := taskNumber().FindStringSubmatch(r.c.Lines[pass.Lines.Start].Text); ok && number != nil && i < len(list) {
				list[i].id = number[1]
			}
			continue
		}
		args := r.original(pass)
		if pass.Kind != dialog.KindToolCall || !json.Valid([]byte(args)) {
			continue
		}
		raw := []byte(args)
		if items, ok := readPlan(raw); ok {
			list, planned = items, true
			for i := range list {
				list[i].passage = p
			}
			clear(made)
			continue
		}
		id, text := firstText(raw, "taskId", "task_id"), firstText(raw, todoKeys...)
		state := todo{id: id, text: text, passage: p}
		state.is(rawjson.Text(rawjson.Field(raw, "status")))
		switch i := slices.IndexFunc(list, func(t todo) bool { return t.id == id }); {
		case id == "" && text != "":
			made[pass.call] = len(list)
			list, planned = append(list, state), true
		case id != "" && i >= 0 && rawjson.Field(raw, "status") != nil:
			list[i].doing, list[i].done = state.doing, state.done
		}
	}
	if !planned {
		return r.boxes(list)
	}
	return list
}

// boxes returns the list of checkboxes in the agent's texts that is its plan, without questions; was, the plan of a former extract,
// if there is none. A list that nobody ticks is not worked off: it may be one for every answer.
func (r *reading) boxes(was []todo) []todo {
	const few = 2
	lists, plan := [][]todo{was}, 0
	in := map[string]int{} // the newest list with each item
	for i := range was {
		in[was[i].text] = 0
	}
	for p := range r.c.Passages {
		pass := &r.c.Passages[p]
		if pass.Kind != dialog.KindAssistant || pass.partial || r.messages[pass.Message].Role != core.RoleAssistant {
			continue
		}
		text := r.original(pass)
		if !strings.Contains(text, "[ ]") && !strings.Contains(text, "[x]") {
			continue
		}
		now := readBoxes(dialog.Element(text, "todos")) // a call in the text
		is := len(now) > 0
		if !is && dialog.SplitCalls(text) == nil { // in another call they may be in a file that it writes
			now = slices.DeleteFunc(readBoxes(text), func(t todo) bool { return strings.HasSuffix(t.text, "?") })
		}
		for i := range now {
			t := &now[i]
			t.passage = p
			before, known := in[t.text]
			ticked := t.done || t.doing
			if is = is || ticked || known && before == plan; known && ticked {
				old := &lists[before][slices.IndexFunc(lists[before], func(o todo) bool { return o.text == t.text })]
				plan, old.doing, old.done = before, t.doing, t.done
			}
		}
		if is && len(now) >= few {
			plan = len(lists)
		}
		lists = append(lists, now)
		for i := range now {
			in[now[i].text] = len(lists) - 1
		}
	}
	return lists[plan]
}

var (
	taskNumber = plain.Pattern(`^Task #(\d{1,6}) created`) // of Claude Code
	boxForm    = plain.Pattern(`^\s*(?:[-*+]|\d+[.)])?\s*\[([ xX~>-])\]\s+(\S.*)$`)
	// The keys of lists in calls of Claude Code, Codex, Gemini CLI, opencode, Roo-Code and OpenHands, and of the text
	// of an item.
	planKeys = []string{"todos", "plan", "task_list", "tasks", "items"}
	todoKeys = []string{"content", "step", "subject", "title", "description", "text", "name"}
)

func firstText(raw []byte, keys ...string) string {
	return cmp.Or(plain.Each(keys, func(k string) string { return oneLine(rawjson.Text(rawjson.Field(raw, k)), openLong) })...)
}

// is sets the state from a tool's word for it.
func (t *todo) is(status string) {
	switch strings.ToLower(status) {
	case "completed", "complete", "done", "cancelled", "canceled", "deleted", "skipped", "x":
		t.done = true
	case "in_progress", "in-progress", "doing", "active", "-", "~", ">":
		t.doing = true
	}
}

// readPlan returns the items of the list in the arguments of a call, if there is one.
func readPlan(raw []byte) (list []todo, ok bool) {
	for _, key := range planKeys {
		switch v := rawjson.Field(raw, key); {
		case rawjson.IsString(v):
			list = readBoxes(rawjson.Text(v))
			return list, len(list) > 0
		case rawjson.IsArray(v):
			for e := range rawjson.Elements(v) {
				t := todo{text: firstText(e, todoKeys...)}
				t.is(rawjson.Text(rawjson.Field(e, "status")))
				if t.text != "" {
					list = append(list, t)
				}
			}
			return list, true
		}
	}
	return nil, false
}

// readBoxes returns the items of a list of checkboxes outside of fences.
func readBoxes(text string) (list []todo) {
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if m := boxForm().FindStringSubmatch(line); m != nil && !fenced {
			t := todo{text: oneLine(m[2], openLong)}
			t.is(m[1])
			list = append(list, t)
		}
	}
	return list
}

// nextForm matches the announcement of the agent's next step: "Next step: …", "**Next:** …", "Next, …".
var nextForm = plain.Pattern(`(?im)^[ \t>*_#-]*next(?: steps?)?[*_]*[:,][*_]*[ \t]+(\S.*)$`)

// next returns the agent's last announcement of its next step, and its passage; -1 if only a former extract has it.
// It is empty if a newer plan or message of the user may have replaced the announcement.
func (r *reading) next() (said string, passage int) {
	for p, pass := range slices.Backward(r.c.Passages) {
		if pass.partial { // text above the extract is older than its list
			break
		}
		switch {
		case pass.Kind == dialog.KindUser, pass.family == families[dialog.FamilyPlan]:
			return "", -1
		case pass.Kind != dialog.KindAssistant || r.messages[pass.Message].Role != core.RoleAssistant:
			continue
		}
		text := r.original(&pass)
		if m := nextForm().FindAllStringSubmatch(text, -1); m != nil {
			return oneLine(m[len(m)-1][1], openLong), p
		}
		if len(readBoxes(text)) > 0 {
			return "", -1
		}
	}
	for _, line := range slices.Backward(r.c.open) {
		if said, ok := strings.CutPrefix(line, nextName); ok {
			return said, -1
		}
	}
	return "", -1
}
