package claudecode

import (
	"slices"

	"github.com/condensehq/condense/internal/rawjson"
)

// A compaction of newer versions of Claude Code may keep some of the messages before it.
// They are not written again: the boundary lists them, either one by one,
//
//	"compactMetadata": {"preservedMessages": {"anchorUuid": …, "uuids": [ … ]}}
//
// or as a piece of the branch,
//
//	"compactMetadata": {"preservedSegment": {"headUuid": …, "anchorUuid": …, "tailUuid": …}}
//
// and they are to be read as if they followed the anchor, which is the summary or the
// boundary itself; what followed the anchor follows them. Claude Code regards only the
// last boundary of a file in this way. This was not seen in a real file but is described
// alike by several programs that read such files.

// keptLines are the lines that the last boundary of a session kept.
type keptLines struct {
	boundary int         // none if it kept nothing
	anchor   int         // the line that they follow now
	tail     int         // the last of them; none if there are none
	set      map[int]int // where they are in the file, and what they followed before
}

// keptByLast finds the lines that the last boundary kept and hangs them where they are to
// be read. A list that names anything that is not there counts for nothing.
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
	for i := anchor; i != b; i = s.lines[i].up { // parents stand before their children here
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
