package recall

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/size"
)

// A Ref names content, by handle or by number.
type Ref struct {
	Handle string
	// Onward is set for everything from the first part of a message with that content on.
	Onward bool
	// From and To are the numbers of the first and the last message, from 1, if there is no handle. Result is the number of
	// a tool result in the only one; 0 means all of it.
	From, To, Result int
}

// The forms of references. A number is that of a message, m41, of one of its results, m41.2, or a range, m41-m47.
const (
	handleDigits = `([0-9a-f]{10})`
	numberDigits = `([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:-m?([0-9]{1,9})(?:\.[0-9]{1,9})?)?`
)

var (
	onward    = plain.Pattern(`\b[0-9a-f]{10}\+`)
	refWord   = plain.Pattern(`^(?:(?:h:)?` + handleDigits + `(\+?)|m?` + numberDigits + `)$`)
	inText    = plain.Pattern(`()()(?:^|[\s\[("'])m` + numberDigits + `(?:$|[\s\])"',:;])`)
	leftMark  = plain.Pattern(`\bh:` + handleDigits + `(?:(\+)|\b)|\[… (?:(?:[0-9]+ lines?|image) )?(?:\(error\) )?m` + numberDigits + `\]`)
	extractOf = plain.Pattern(`^\[Extract of the conversation so far[^\n]*?(?:quoted; |; |begins with )([^\s:]+)[: ]`)
	keyOf     = plain.Pattern(`^ contents:[^\n]* with of ([0-9a-f]{6});`)
	listed    = plain.Pattern(`(?m)()()(?:^|; )m` + numberDigits + `(?:\s|:|$)`)
	trailing  = plain.Pattern(`(?m)()() m` + numberDigits + `$`)
)

// ParseRefs parses references separated by commas or spaces. Text can also be a line that begins with some, or the stub of
// a provider with one handle or number. Without any the result is nil.
func ParseRefs(text string) (refs []Ref) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' || r <= ' ' }) {
		word = strings.ToLower(strings.Trim(word, "`'\"[]()*-:.#"))
		at := refWord().FindStringSubmatch(word)
		if at != nil {
			refs = append(refs, refOf(at))
		} else if refs != nil || !strings.Contains("  message messages number result recall handle ", " "+word+" ") {
			break
		}
	}
	if units := listed().FindAllStringSubmatch(text, -1); refs != nil && len(units) > len(refs) { // a line of a table with several
		refs = nil
		refs = append(refs, plain.Each(units, refOf)...)
	}
	if refs != nil {
		return refs
	}
	if handle, ok := history.ParseHandle(text); ok {
		return []Ref{{Handle: handle, Onward: onward().MatchString(text)}}
	}
	if at := inText().FindStringSubmatch(text); at != nil {
		return []Ref{refOf(at)}
	}
	return nil
}

// refOf returns the reference in a match: a handle and its +, or else the digits of a number.
func refOf(at []string) Ref {
	if at[1] != "" {
		return Ref{Handle: at[1], Onward: at[2] != ""}
	}
	var n [3]int
	for i, digits := range at[3:] {
		n[i], _ = strconv.Atoi(digits) // nine digits at most
	}
	if n[2] > 0 {
		return Ref{From: n[0], To: n[2]}
	}
	return Ref{From: n[0], To: n[0], Result: n[1]}
}

// String returns a handle without the h: before it, or numbers.
func (r Ref) String() string {
	switch {
	case r.Onward:
		return r.Handle + "+"
	case r.Handle != "":
		return r.Handle
	case r.Result > 0:
		return fmt.Sprintf("m%d.%d", r.From, r.Result)
	case r.To != r.From:
		return fmt.Sprintf("m%d-m%d", r.From, r.To)
	}
	return "m" + strconv.Itoa(r.From)
}

// Numbered returns the content of numbers: all of a message, or one tool result. Before a result comes the call that it
// answers, unless the numbers name that, too. The error is for a model.
func (s *Source) Numbered(r Ref) (pieces []Piece, err error) {
	all := len(s.order) - s.Later
	if r.From < 1 || r.To > all || r.To < r.From {
		return nil, fmt.Errorf("no message %s: %s", r, s.Has())
	}
	results := 0
	for n := r.From; n <= r.To; n++ {
		i := s.order[n-1]
		results = 0
		for _, p := range s.message(i) {
			answer, is := p.Part.(core.ToolResult)
			if is {
				results++
			}
			if r.Result > 0 && (!is || results != r.Result) {
				continue
			}
			if is {
				if at, call := s.callOf(i, answer.CallID); call != nil && (r.Result > 0 || at < s.order[r.From-1]) {
					call.Context = true
					pieces = append(pieces, *call)
				}
			}
			pieces = append(pieces, decoded(p))
		}
	}
	if pieces == nil && r.Result > 0 {
		return nil, fmt.Errorf("no result %s: message m%d has %s", r, r.From, size.Plural(results, "result"))
	}
	return pieces, nil
}

// Has says what numbers there are.
func (s *Source) Has() string {
	if len(s.order) == s.Later {
		return "no message of this conversation has a number here"
	}
	return "this conversation has messages m1 to m" + strconv.Itoa(len(s.order)-s.Later)
}

// callOf returns the call that a result in entry i answers, and its entry; nil if there is none.
func (s *Source) callOf(i int, id string) (at int, call *Piece) {
	for ; i >= 0; i-- {
		for k, p := range s.entries[i].Original.Parts {
			if c, ok := p.(core.ToolCall); ok && c.ID == id {
				p := decoded(s.message(i)[k])
				return i, &p
			}
		}
	}
	return 0, nil
}

// number returns the number of a part of an entry: that of a result, if its message has several, or that of its message.
// It is empty if the message has none.
func (s *Source) number(i, part int) string {
	n, found := slices.BinarySearch(s.order, i)
	if !found || n >= len(s.order)-s.Later {
		return ""
	}
	return Ref{From: n + 1, To: n + 1, Result: dialog.ResultNumber(s.entries[i].Original.Parts, part)}.String()
}

// decoded returns a call's piece with the arguments one below the other, texts of several lines as lines. Other pieces
// are returned as they are.
func decoded(p Piece) Piece {
	if c, ok := p.Part.(core.ToolCall); ok {
		var b strings.Builder
		decode(&b, "", []byte(c.Args))
		p.Decoded = b.String()
	}
	return p
}

func decode(b *strings.Builder, name string, value []byte) {
	text, i := string(value), 0
	switch {
	case rawjson.IsObject(value) && (name == "" || strings.Contains(text, `\n`)):
		for key, v := range rawjson.Fields(value) {
			decode(b, strings.TrimPrefix(name+"."+string(key), "."), v)
		}
		return
	case rawjson.IsArray(value) && strings.Contains(text, `\n`):
		for v := range rawjson.Elements(value) {
			i++
			decode(b, name+"."+strconv.Itoa(i), v)
		}
		return
	case rawjson.IsString(value):
		text = rawjson.Unquote(value)
	}
	if name != "" {
		b.WriteString(name + map[bool]string{false: ": ", true: ":\n"}[strings.Contains(text, "\n")])
	}
	b.WriteString(strings.TrimSuffix(text, "\n") + "\n")
}

// Mentioned returns the references that the texts of messages promise, in stubs and in the contents of extracts.
func Mentioned(messages []core.Message) map[Ref]bool {
	return plain.Set(mentioned(messages))
}

// Key returns what tells the numbers in the contents of extracts from those of other conversations; empty if there are none.
func Key(messages []core.Message) string {
	for _, m := range messages {
		for _, section := range sections(m) {
			if at := keyOf().FindStringSubmatch(section); at != nil {
				return at[1]
			}
		}
	}
	return ""
}

// Trailing returns the numbers at the ends of headers and of open work in extracts, though such a line may end with another word that looks
// like one.
func Trailing(messages []core.Message) (all []Ref) {
	for _, m := range messages {
		for _, section := range sections(m) {
			if !strings.HasPrefix(section, " open:") {
				section, _, _ = strings.Cut(section, "\n")
			}
			all = append(all, plain.Each(trailing().FindAllStringSubmatch(section, -1), refOf)...)
		}
	}
	return all
}

func mentioned(messages []core.Message) (all []Ref) {
	for _, m := range messages {
		for i, p := range m.Parts {
			text := textOf(p)
			found := leftMark().FindAllStringSubmatch(text, -1)
			if i == 0 {
				for _, section := range sections(m) {
					if table, is := strings.CutPrefix(section, " contents:"); is {
						found = append(found, listed().FindAllStringSubmatch(table, -1)...)
					}
				}
			}
			all = append(all, plain.Each(found, refOf)...)
		}
	}
	return all
}

// sections returns the sections of an extract. Only their headers begin with the mark that its first line announces, so quoted text cannot
// pass for one.
func sections(m core.Message) []string {
	if len(m.Parts) == 0 {
		return nil
	}
	text, _ := core.CutFrame(textOf(m.Parts[0]))
	head := extractOf().FindStringSubmatch(text)
	if head == nil {
		return nil
	}
	return strings.Split(text, "\n"+head[1])[1:]
}
