package need

import (
	"github.com/condensehq/condense/internal/dialog"
)

// Fields of calls. What an edit replaces is gone, what it puts there is how the file is.
const (
	fieldNone = iota
	fieldOld
	fieldNew
	fieldCommand
	fieldWhere
	fieldWhy
	fieldOther
	fieldCount
)

var fields = map[string]uint8{
	"old_string": fieldOld, "old_str": fieldOld, "oldText": fieldOld, "old_text": fieldOld, "search": fieldOld,
	"new_string": fieldNew, "new_str": fieldNew, "newText": fieldNew, "new_text": fieldNew, "replace": fieldNew, "content": fieldNew,
	"file_text": fieldNew, "code": fieldNew, "diff": fieldNew, "patch": fieldNew, "input": fieldNew,
	"command": fieldCommand, "cmd": fieldCommand, "script": fieldCommand, "args": fieldCommand,
	"file_path": fieldWhere, "path": fieldWhere, "filePath": fieldWhere, "workdir": fieldWhere, "cwd": fieldWhere, "pattern": fieldWhere,
	"regex": fieldWhere, "glob": fieldWhere, "url": fieldWhere, "query": fieldWhere,
	"description": fieldWhy, "prompt": fieldWhy, "plan": fieldWhy, "todos": fieldWhy, "subject": fieldWhy, "thought": fieldWhy,
	"activeForm": fieldWhy, "question": fieldWhy, "text": fieldWhy, "message": fieldWhy, "result": fieldWhy, "reason": fieldWhy,
}

func fieldOf(key string) uint8 {
	if f := fields[key]; f != 0 {
		return f
	}
	return fieldOther
}

var families = map[dialog.Family]uint8{
	dialog.FamilyUnknown: 0, dialog.FamilyRead: 1, dialog.FamilyWrite: 2, dialog.FamilyEdit: 3, dialog.FamilyList: 4, dialog.FamilySearch: 5, dialog.FamilyCommand: 6,
	dialog.FamilyWeb: 7, dialog.FamilyPlan: 8, dialog.FamilyDone: 9, dialog.FamilyAsk: 10, dialog.FamilyDelegate: 11,
}

const familyCount = 12

func familyOf(tool string) uint8 { return families[dialog.FamilyOf(tool)] }

// reuseShares are the steps of the share of the terms that a passage said first which the
// person or the agent wrote later.
var reuseShares = []float64{0.001, 0.02, 0.05, 0.1, 0.2}

const reuseSteps = 7 // none said first, none used, and those above

// findReuse finds how much of what each passage said first was used since.
func (c *Conversation) findReuse() {
	said := make([]bool, len(c.terms))
	for p := range c.Passages {
		pass := &c.Passages[p]
		first, used := 0, 0
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			for _, n := range c.TermsOf(l) {
				if said[n] {
					continue
				}
				said[n] = true
				first++
				if int(c.terms[n].lastByUs) > pass.Message {
					used++
				}
			}
		}
		if first > 0 {
			pass.reuse = uint8(1 + thresholds(float64(used)/float64(first), reuseShares))
		}
	}
}

// findHot finds for every line when its rare terms were last written by the person or the
// agent: lines about what is being worked on.
func (c *Conversation) findHot() {
	rare := int32(max(3, c.messages/5))
	for l := range c.Lines {
		line := &c.Lines[l]
		line.hot = [2]int32{-1, -1}
		for _, n := range c.TermsOf(l) {
			t := &c.terms[n]
			if t.messages > rare {
				continue
			}
			switch at := t.lastByUs; {
			case at > line.hot[0]:
				line.hot[1], line.hot[0], line.hotTerm = line.hot[0], at, n
			case at > line.hot[1]:
				line.hot[1] = at
			}
		}
	}
}

// findWork finds when files were last changed, and terms last planned.
func (c *Conversation) findWork() {
	for p := range c.Passages {
		pass := &c.Passages[p]
		if pass.Kind != Call {
			continue
		}
		switch pass.family {
		case families[dialog.FamilyWrite], families[dialog.FamilyEdit]:
			if pass.file >= 0 {
				c.terms[pass.file].edited = int32(pass.Message)
			}
		case families[dialog.FamilyPlan]:
			for l := pass.Lines.Start; l < pass.Lines.End; l++ {
				for _, n := range c.TermsOf(l) {
					c.terms[n].planned = int32(pass.Message)
				}
			}
		}
	}
}

// reach is how many lines up and down are close by.
const reach = 4

// findNear finds for every line when a rare term of a line close by, not its own, was last
// written by the person or the agent.
func (c *Conversation) findNear() {
	for p := range c.Passages {
		pass := &c.Passages[p]
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			c.Lines[l].near = -1
			for k := max(pass.Lines.Start, l-reach); k < min(pass.Lines.End, l+reach+1); k++ {
				if k != l {
					c.Lines[l].near = max(c.Lines[l].near, c.Lines[k].hot[0])
				}
			}
		}
	}
}

const laterSteps = 7

// countLater counts for every passage how many of its kind, by the same tool, follow.
func (c *Conversation) countLater() {
	type key struct {
		kind Kind
		name string
	}
	n := map[key]int{}
	for p := len(c.Passages) - 1; p >= 0; p-- {
		pass := &c.Passages[p]
		k := key{pass.Kind, pass.Name}
		pass.later = uint8(steps2(n[k], laterSteps))
		n[k]++
	}
}

// nearAge is how long ago a rare term close by was written, in steps; the last is never.
func (c *Conversation) nearAge(l *Line) int {
	if l.near < 0 {
		return ages - 1
	}
	return steps2(c.messages-1-int(l.near), ages-1)
}

// hotAge is how long ago a rare term of line l, other than n, was written by the person
// or the agent, in steps; the last step is never.
func (c *Conversation) hotAge(l *Line, n int32) int {
	at := l.hot[0]
	if n >= 0 && l.hotTerm == n {
		at = l.hot[1]
	}
	if at < 0 {
		return ages - 1
	}
	return steps2(c.messages-1-int(at), ages-1)
}
