package transcript

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/condensehq/condense/core"
)

// A sessionLine is what matters of a line of a session.
type sessionLine struct {
	row
	kind      string // the field type
	uuid      string
	parent    string // uuid; empty if null or absent
	linked    bool   // it says what its parent is, be it null
	turn      string // message.id
	model     string
	role      string
	boundary  bool
	logical   string // uuid of what a boundary follows
	sidechain bool
	summary   bool // it says what a compaction removed
	error     bool // it reports a failure of the API and is never sent
	time      time.Time
	message   []byte
	metadata  []byte // compactMetadata

	up      int  // index of the parent line, or none
	live    bool // it is on the branch
	earlier int  // index of the line before with the same uuid, or none
}

// none is no line.
const none = -1

// A session is a file of Claude Code, parsed.
type session struct {
	lines    []sessionLine
	last     map[string]int // uuid to the last line that has it
	warnings []Warning      // what was repaired
	kept     keptLines
}

// said reports whether l holds a message that is sent if it is on the branch.
func (l *sessionLine) said() bool {
	return (l.kind == "user" || l.kind == "assistant") && !l.sidechain && !l.error
}

// inTree reports whether l is a part of the main conversation, on a branch or other.
func (l *sessionLine) inTree() bool { return !l.sidechain && (l.uuid != "" || l.said()) }

// superseded reports whether a later line has the uuid of line i and counts instead.
func (s *session) superseded(i int) bool {
	uuid := s.lines[i].uuid
	return uuid != "" && s.last[uuid] != i
}

func parseSession(data []byte) (*session, error) {
	all, warnings, err := rows(data)
	if err != nil {
		return nil, err
	}
	s := &session{lines: make([]sessionLine, len(all)), last: make(map[string]int, len(all)), warnings: warnings, kept: keptLines{boundary: none, tail: none}}
	for i, r := range all {
		l := &s.lines[i]
		l.parse(r)
		l.up, l.earlier = none, none
		if l.uuid == "" {
			continue
		}
		if before, ok := s.last[l.uuid]; ok {
			l.earlier = before
		}
		s.last[l.uuid] = i
	}
	return s, nil
}

func (l *sessionLine) parse(r row) {
	l.row = r
	subtype := ""
	for k, v := range fields(r.raw) {
		switch string(k) {
		case "type":
			l.kind = text(v)
		case "subtype":
			subtype = text(v)
		case "uuid":
			l.uuid = text(v)
		case "parentUuid":
			l.parent, l.linked = text(v), true
		case "logicalParentUuid":
			l.logical = text(v)
		case "isSidechain":
			l.sidechain = isTrue(v)
		case "isCompactSummary":
			l.summary = isTrue(v)
		case "isApiErrorMessage":
			l.error = isTrue(v)
		case "timestamp":
			l.time = timestamp(v)
		case "compactMetadata":
			l.metadata = v
		case "message":
			l.message = v
		}
	}
	l.boundary = l.kind == "system" && subtype == "compact_boundary"
	for k, v := range fields(l.message) {
		switch string(k) {
		case "id":
			l.turn = text(v)
		case "model":
			l.model = text(v)
		case "role":
			l.role = text(v)
		}
	}
}

// resolve returns the last line before limit that has the uuid, or none.
func (s *session) resolve(uuid string, limit int) int {
	i, ok := s.last[uuid]
	if !ok || uuid == "" {
		return none
	}
	for i != none && i >= limit {
		i = s.lines[i].earlier
	}
	return i
}

// before returns the last line before i that is part of the tree, or none.
func (s *session) before(i int) int {
	for i--; i >= 0; i-- {
		if s.lines[i].inTree() {
			return i
		}
	}
	return none
}

// findBranch marks the lines of the conversation.
func (s *session) findBranch() {
	for i := range s.lines {
		s.link(i)
	}
	s.kept = s.keptByLast()
	broken := s.walk()
	s.addParallel()
	if n := len(broken); n > 0 {
		first := s.lines[broken[n-1]].line
		s.warnings = append(s.warnings, Warning{Text: fmt.Sprintf(
			"the parent of %s is not in the file, first in line %d; taken to be the line before", count(n, "line"), first)})
	}
	left := 0
	for i := range s.lines {
		if l := &s.lines[i]; l.said() && !l.live && !s.superseded(i) {
			left++
		}
	}
	if left > 0 {
		s.warnings = append(s.warnings, Warning{Text: fmt.Sprintf(
			"%s on branches that were left: kept in the file, but no part of the conversation", count(left, "message"))})
	}
}

// count returns n things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// link finds the parent of line i.
func (s *session) link(i int) {
	switch l := &s.lines[i]; {
	case !l.inTree() || l.boundary:
	case !l.linked:
		l.up = s.before(i) // a stream, which says no more than the order
	case l.parent != "":
		l.up = s.resolve(l.parent, len(s.lines))
	}
}

// walk marks the lines of the branch, from the last one to the first, and returns those
// whose parent is missing, in this order.
func (s *session) walk() (broken []int) {
	limit := len(s.lines) // of the part of the file that the walk is in: it ends with a boundary
	cur := s.leaf()
	for range 2 * len(s.lines) { // more steps go in a circle
		if cur == none {
			break
		}
		l := &s.lines[cur]
		up := l.up
		if limit < len(s.lines) {
			was, moved := s.kept.set[cur] // it is met for the second time, where it was before
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

// leaf returns the line that the conversation ends with: the last one that follows a
// message or is one.
func (s *session) leaf() int {
	follows := make([]bool, len(s.lines))
	leaf := none
	for i := range s.lines {
		l := &s.lines[i]
		follows[i] = l.said() || l.inTree() && l.up != none && follows[l.up]
		if follows[i] && !s.superseded(i) {
			leaf = i
		}
	}
	// What a compaction kept may stand behind everything else.
	for i, steps := s.kept.tail, 0; i != none && steps < len(s.lines); i, steps = s.lines[i].up, steps+1 {
		if i == leaf {
			return s.kept.tail
		}
	}
	return leaf
}

// addParallel marks what a walk from child to parent misses when a turn of the assistant
// has several calls: its other lines, and the results that hang on them.
func (s *session) addParallel() {
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
		for block := range elements(field(l.message, "content")) {
			if id := field(block, "tool_use_id"); id != nil && !yield(text(id)) {
				return
			}
		}
	}
}

// messages returns what is said on the branch, in the order of the file.
func (s *session) messages(data []byte) ([]lineMessage, error) {
	var all []lineMessage
	taken := ids{}
	for i := range s.lines {
		l := &s.lines[i]
		if !l.live || !l.said() || s.superseded(i) {
			continue
		}
		n := len(all) + 1
		m, bad := l.decode()
		if bad != nil {
			return nil, bad.in(data, l.raw, n)
		}
		m.ID = taken.next(n, l.uuid)
		all = append(all, lineMessage{m, i})
	}
	return all, nil
}

func (l *sessionLine) decode() (core.Message, *SyntaxError) {
	m := core.Message{Role: core.Role(l.kind), Time: l.time, Source: slices.Clip(l.raw)}
	if !isObject(l.message) {
		e := &SyntaxError{Found: article(l.kind) + ` line without "message"`, Want: `an object as "message"`}
		if l.message != nil {
			e.Offset = offsetIn(l.raw, l.message)
			e.Found = describe(l.message) + ` as "message"`
		}
		return m, e
	}
	if l.role == "user" || l.role == "assistant" {
		m.Role = core.Role(l.role)
	}
	if l.summary {
		m.Kind = core.KindSummary
	}
	content := field(l.message, "content")
	parts, err := decodeContent(content)
	if err != nil {
		err.Offset += offsetIn(l.raw, content)
		return m, err
	}
	m.Parts = parts
	return m, nil
}

// compactionID names the condensation that the boundary l is.
func (l *sessionLine) compactionID() string {
	if l.uuid != "" {
		return l.uuid
	}
	return "compaction-" + strconv.Itoa(l.line)
}

// A compaction is what a boundary says.
type compaction struct {
	id         string
	at         int // index of the boundary
	line       int // its number
	begin, end int // the summary: messages with these indices
	// keep are the messages before that were kept; keptFirst says that they stand before
	// the summary.
	keep          map[string]bool
	keptFirst     bool
	trigger       core.Trigger
	time          time.Time
	before, after int // tokens
}

// compactions returns the compactions on the branch.
func (s *session) compactions(messages []lineMessage) []compaction {
	var all []compaction
	next := 0
	var boundaries []int
	for i := range s.lines {
		if l := &s.lines[i]; l.boundary && l.live && !s.superseded(i) {
			boundaries = append(boundaries, i)
		}
	}
	for k, i := range boundaries {
		l := &s.lines[i]
		until := len(s.lines)
		if k+1 < len(boundaries) {
			until = boundaries[k+1]
		}
		for next < len(messages) && messages[next].line < i {
			next++
		}
		c := compaction{id: l.compactionID(), at: i, line: l.line, begin: next, end: next, time: l.time}
		for c.end < len(messages) && messages[c.end].line < until {
			line := messages[c.end].line
			if !s.lines[line].summary && (i != s.kept.boundary || line > s.kept.anchor) {
				break
			}
			c.end++
		}
		for k, v := range fields(l.metadata) {
			switch string(k) {
			case "trigger":
				c.trigger = map[string]core.Trigger{"auto": core.TriggerAutomatic, "manual": core.TriggerManual}[text(v)]
			case "preTokens":
				c.before = number(v)
			case "postTokens":
				c.after = number(v)
			}
		}
		if i == s.kept.boundary {
			c.keep = map[string]bool{}
			for at := range s.kept.set {
				c.keep[s.lines[at].uuid] = true
			}
			c.keptFirst = s.kept.anchor == i
		}
		all = append(all, c)
	}
	return all
}

// number returns the whole number raw; zero if it is none.
func number(raw []byte) int {
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
