package claudecode

import (
	"fmt"
	"slices"

	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/rawjson"
)

// findBranch marks the lines of the conversation.
func (s *sessionFile) findBranch() {
	for i := range s.lines {
		s.link(i)
	}
	s.kept = s.keptByLast()
	broken := s.walk()
	s.addParallel()
	if n := len(broken); n > 0 {
		first := s.lines[broken[n-1]].Line
		s.warnings = append(s.warnings, codec.Warning{Text: fmt.Sprintf(
			"the parent of %s is not in the file, first in line %d; taken to be the line before", codec.Count(n, "line"), first)})
	}
	left := 0
	for i := range s.lines {
		if l := &s.lines[i]; l.said() && !l.live && !s.superseded(i) {
			left++
		}
	}
	if left > 0 {
		s.warnings = append(s.warnings, codec.Warning{Text: fmt.Sprintf(
			"%s on abandoned branches: kept in the file, but not part of the conversation", codec.Count(left, "message"))})
	}
}

// link finds the parent of line i.
func (s *sessionFile) link(i int) {
	switch l := &s.lines[i]; {
	case !l.inTree() || l.boundary:
	case !l.linked:
		l.up = s.before(i) // a stream: only the order counts
	case l.parent != "":
		l.up = s.resolve(l.parent, len(s.lines))
	}
}

// walk marks the lines of the branch, from the last one to the first, and returns the lines whose parent is missing,
// in this order.
func (s *sessionFile) walk() (broken []int) {
	limit := len(s.lines) // of the part of the file that the walk is in: it ends with a boundary
	cur := s.leaf()
	for range 2 * len(s.lines) { // more steps go in a circle
		if cur == none {
			break
		}
		l := &s.lines[cur]
		up := l.up
		if limit < len(s.lines) {
			was, moved := s.kept.set[cur] // it is visited again, at its old position
			if moved {
				up = was
			} else if l.live {
				break
			}
			if l.parent != "" {
				up = s.resolve(l.parent, limit)
			}
		} else if l.live {
			break
		}
		l.live = true
		switch {
		case l.boundary:
			limit = cur
			if up = s.resolve(l.logical, limit); up == none {
				up = s.before(cur)
			}
		case up == none && l.parent != "":
			if up = s.before(cur); up != none {
				broken = append(broken, cur)
			}
		}
		cur = up
	}
	return broken
}

// leaf returns the last line of the conversation: the last line that is a message or follows
// one.
func (s *sessionFile) leaf() int {
	follows := make([]bool, len(s.lines))
	leaf := none
	for i := range s.lines {
		l := &s.lines[i]
		follows[i] = l.said() || l.inTree() && l.up != none && follows[l.up]
		if follows[i] && !s.superseded(i) {
			leaf = i
		}
	}
	// The lines that a compaction kept may follow all others.
	for i, steps := s.kept.tail, 0; i != none && steps < len(s.lines); i, steps = s.lines[i].up, steps+1 {
		if i == leaf {
			return s.kept.tail
		}
	}
	return leaf
}

// addParallel marks the lines that a walk from child to parent misses when a turn of the
// assistant has several calls: the other lines of the turn, and the results that follow them.
func (s *sessionFile) addParallel() {
	turns, answered := map[string]bool{}, map[string]bool{}
	for i := range s.lines {
		if l := &s.lines[i]; l.live && l.said() {
			if l.kind == "assistant" && l.turn != "" {
				turns[l.turn] = true
			}
			for id := range l.results() {
				answered[id] = true
			}
		}
	}
	for i := range s.lines {
		l := &s.lines[i]
		if l.live || !l.said() || s.superseded(i) {
			continue
		}
		switch l.kind {
		case "assistant":
			l.live = turns[l.turn]
		case "user":
			if l.up == none || !s.lines[l.up].live || s.lines[l.up].kind != "assistant" {
				continue
			}
			for id := range l.results() {
				if !answered[id] {
					answered[id], l.live = true, true
				}
			}
		}
	}
}

// results yields the IDs of the calls that l answers.
func (l *sessionLine) results() func(func(string) bool) {
	return func(yield func(string) bool) {
		if l.kind != "user" {
			return
		}
		for block := range rawjson.Elements(rawjson.Field(l.message, "content")) {
			if id := rawjson.Field(block, "tool_use_id"); id != nil && !yield(rawjson.Text(id)) {
				return
			}
		}
	}
}

// Newer versions of Claude Code may keep some of the messages before a compaction. They are not written again: the
// boundary lists them, either one by one,
//
//	"compactMetadata": {"preservedMessages": {"anchorUuid": …, "uuids": [ … ]}}
//
// or as a part of the branch,
//
//	"compactMetadata": {"preservedSegment": {"headUuid": …, "anchorUuid": …, "tailUuid": …}}
//
// They are read as if they followed the anchor, which is the summary or the boundary itself; lines after the anchor
// follow them. Claude Code does this for the last boundary of a file only. No real file with it was found, but
// several programs that read such files describe it alike.

// keptLines are the lines that the last boundary of a session kept.
type keptLines struct {
	boundary int         // none if it kept nothing
	anchor   int         // the line that they follow now
	tail     int         // the last of them; none if there are none
	set      map[int]int // their places in the file, and their previous parents
}

// keptByLast finds the lines that the last boundary kept and moves them to where they are
// read. A list that names a missing line is ignored.
func (s *sessionFile) keptByLast() keptLines {
	nothing := keptLines{boundary: none, tail: none}
	b := len(s.lines) - 1
	for b >= 0 && (!s.lines[b].boundary || s.lines[b].sidechain) {
		b--
	}
	if b < 0 {
		return nothing
	}
	list, segment := rawjson.Field(s.lines[b].metadata, "preservedMessages"), rawjson.Field(s.lines[b].metadata, "preservedSegment")
	kept := s.listed(list, b)
	if list == nil {
		list, kept = segment, s.between(segment, b)
	}
	anchor := s.resolve(rawjson.Text(rawjson.Field(list, "anchorUuid")), len(s.lines))
	if len(kept) == 0 || anchor < b {
		return nothing
	}
	for i := anchor; i != b; i = s.lines[i].up { // parents are before their children here
		if i < b || s.lines[i].up >= i {
			return nothing
		}
	}
	set := make(map[int]int, len(kept))
	for _, i := range kept {
		set[i] = s.lines[i].up
	}
	for i := anchor + 1; i < len(s.lines); i++ {
		if s.lines[i].up == anchor {
			s.lines[i].up = kept[len(kept)-1]
		}
	}
	up := anchor
	for _, i := range kept {
		s.lines[i].up, up = up, i
	}
	return keptLines{b, anchor, up, set}
}

// listed returns the lines before b that list names one by one, oldest first.
func (s *sessionFile) listed(list []byte, b int) []int {
	var kept []int
	previous := none
	for uuid := range rawjson.Elements(rawjson.Field(list, "uuids")) {
		i := s.resolve(rawjson.Text(uuid), len(s.lines))
		if i <= previous || i > b {
			return nil
		}
		previous = i
		kept = append(kept, i)
	}
	return kept
}

// between returns the lines before b from the head of segment to its tail.
func (s *sessionFile) between(segment []byte, b int) []int {
	head := s.resolve(rawjson.Text(rawjson.Field(segment, "headUuid")), b)
	if head == none {
		return nil
	}
	var kept []int
	for i := s.resolve(rawjson.Text(rawjson.Field(segment, "tailUuid")), b); i != none; i = s.resolve(s.lines[i].parent, i) {
		kept = append(kept, i)
		if i == head {
			slices.Reverse(kept)
			return kept
		}
	}
	return nil
}
