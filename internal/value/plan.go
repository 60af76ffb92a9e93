package value

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

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
	for _, k := range keys {
		if s := oneLine(rawjson.Text(rawjson.Field(raw, k)), openLong); s != "" {
			return s
		}
	}
	return ""
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
