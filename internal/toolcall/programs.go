package toolcall

import (
	_ "embed"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Writer says who wrote what agents put into a user's message.
type Writer string

// The writers.
const (
	Program      Writer = "program"      // reminders, commands and their output, notices
	Surroundings Writer = "surroundings" // the state of the environment
	Rules        Writer = "rules"        // of a project
	Agent        Writer = "agent"        // another agent, of a team or a task, that reports
	Person       Writer = "person"
)

// An Element is one that agents put into user messages, or a text.
type Element struct {
	Name  string // of the element; of a text its beginning
	By    Writer
	Agent string // that finds its own messages of the user by it; empty for none
}

// Tags of elements that other programs write, too.
const (
	ReminderOpen  = "<system-reminder>"
	ReminderClose = "</system-reminder>"
	NoticeOpen    = "<notice>"
	NoticeClose   = "</notice>"
	DetailsOpen   = "<environment_details>"
)

//go:embed programs.txt
var programs string

// listed are all elements that are known, by name, and the beginnings of texts.
var listed = sync.OnceValues(func() (all map[string]Element, texts []Element) {
	all = map[string]Element{}
	for line := range strings.Lines(programs) {
		by, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		agent, names, _ := strings.Cut(rest, " ")
		agent = strings.Trim(agent, "-")
		if text, err := strconv.Unquote(names); err == nil {
			texts = append(texts, Element{text, Writer(by), agent})
		} else if by != "#" {
			for name := range strings.SplitSeq(names, ";") {
				all[name] = Element{name, Writer(by), agent}
			}
		}
	}
	return all, texts
})

// Elements returns all elements by name.
func Elements() map[string]Element {
	all, _ := listed()
	return all
}

// apart reports whether no person begins a text with the tag, so that one without its end is the program's, too.
func (e Element) apart() bool {
	return e.By != Person && strings.ContainsAny(e.Name, "-_ ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

// Opens returns the element whose opening tag text begins with, with or without attributes.
func Opens(text string) (e Element, ok bool) {
	const longest = 40 // bytes of a name
	text, ok = strings.CutPrefix(text[:min(len(text), longest)], "<")
	n := strings.IndexAny(text, "> \t\n")
	if !ok || n < 0 {
		return Element{}, false
	}
	if whole, _, closed := strings.Cut(text, ">"); closed && Elements()[whole].Name != "" { // one has a space in it
		return Elements()[whole], true
	}
	e, ok = Elements()[text[:n]]
	return e, ok
}

// Begins returns what text begins with, if programs write all texts that begin so.
func Begins(text string) (e Element, ok bool) {
	if e, ok = Opens(text); ok && e.apart() {
		return e, true
	}
	_, beginnings := listed()
	if i := slices.IndexFunc(beginnings, func(b Element) bool { return strings.HasPrefix(text, b.Name) }); i >= 0 {
		return beginnings[i], true
	}
	return Element{}, false
}

// Programs returns the names of the elements that hold words of programs, of those that hold words of the user, and how programs'
// texts begin.
func Programs() (theirs, users, begin []string) {
	for _, name := range slices.Sorted(maps.Keys(Elements())) {
		if Elements()[name].By == Person {
			users = append(users, name)
			continue
		}
		if theirs = append(theirs, name); Elements()[name].apart() {
			begin = append(begin, "<"+name+">", "<"+name+" ")
		}
	}
	_, beginnings := listed()
	for _, b := range beginnings {
		begin = append(begin, b.Name)
	}
	return theirs, users, begin
}
