// Package tokens counts tokens, the unit in which language models read, are limited and are
// billed.
//
// An [Encoding] counts text. There are two exact ones, the public vocabularies of OpenAI:
//
//	o200k_base   GPT-4o and later, and the default for models whose vocabulary is secret
//	cl100k_base  GPT-3.5 and GPT-4
//
// and an estimate, chars4, a token for every four UTF-16 code units. The exact ones agree with
// github.com/pkoukk/tiktoken-go on every text, which fuzzing verifies, but are one to two
// orders of magnitude faster and never take more than linear time: tiktoken-go is quadratic in
// the length of text without spaces, and takes 10 minutes for a megabyte. It is
// the oracle of the tests, and the program has it as tiktoken/o200k_base and tiktoken/cl100k_base ([Register]).
package tokens

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/condensehq/condense/internal/plain"
)

// The names of the encodings.
const (
	O200kBase  = "o200k_base"
	CL100kBase = "cl100k_base"
	Chars4     = "chars4"
)

// An Encoding counts text. Its methods are safe for concurrent use.
type Encoding struct {
	name   string
	engine engine
}

type engine interface {
	count(s string) int
	prefix(s string, n int) int // the length of it
	suffix(s string, n int) int // where it begins
}

type named struct {
	name string
	open func() (engine, error)
}

// encodings are made when they are first opened, which takes less than 0.1 s, and kept.
var encodings = []named{
	{O200kBase, sync.OnceValues(func() (engine, error) { return openBPE(O200kBase, splitO200k) })},
	{CL100kBase, sync.OnceValues(func() (engine, error) { return openBPE(CL100kBase, splitCL100k) })},
	{Chars4, func() (engine, error) { return counts(chars4), nil }},
}

// Register adds an encoding to those of [Names]; open returns how it counts. Programs call it before anything else of this package,
// and not twice with one name.
func Register(name string, open func() (count func(s string) int, err error)) {
	encodings = append(encodings, named{name, sync.OnceValues(func() (engine, error) {
		count, err := open()
		return counts(count), err
	})})
}

// counts is an engine that cuts by counting.
type counts func(s string) int

func (c counts) count(s string) int { return c(s) }

func (c counts) prefix(s string, n int) int {
	return plain.On(s, sort.Search(len(s)+1, func(i int) bool { return c(s[:plain.On(s, i)]) > n })-1)
}

func (c counts) suffix(s string, n int) int {
	return plain.On(s, sort.Search(len(s), func(i int) bool { return c(s[plain.On(s, i):]) <= n }))
}

// Names returns the names that [Open] accepts, the default first.
func Names() []string {
	return plain.Each(encodings, func(e named) string { return e.name })
}

// Open returns the encoding with that name. The error for an unknown name lists the names.
func Open(name string) (*Encoding, error) {
	for _, e := range encodings {
		if e.name == name {
			engine, err := e.open()
			if err != nil {
				return nil, fmt.Errorf("encoding %s: %w", name, err)
			}
			return &Encoding{name, engine}, nil
		}
	}
	return nil, fmt.Errorf("unknown encoding %q; want one of %s", name, strings.Join(Names(), ", "))
}

// Name returns the name by which e was opened.
func (e *Encoding) Name() string { return e.name }

// CountText returns the tokens of s.
//
// Text that looks like a special token, such as <|endoftext|>, is counted as plain text, which it is in a message. A
// byte that is not UTF-8 counts as U+FFFD, by which JSON encoders replace it. CountText does not allocate, except for
// text that is not valid UTF-8 and for single words of many kilobytes.
//
// A word (text without a space, line end, change of case or the like) of more than a megabyte
// is counted in sections of that size, to limit the memory; the sum may then differ by a token
// for each.
func (e *Encoding) CountText(s string) int { return e.engine.count(s) }

// Prefix returns the beginning of s that has n tokens; all of s if it has no more. It never
// splits a character, and its CountText never exceeds n. For some texts a few more bytes would
// fit, because the number of tokens does not grow evenly with a text. Prefix takes a few times
// as long as counting the result.
func (e *Encoding) Prefix(s string, n int) string {
	switch {
	case n <= 0:
		return ""
	case n >= len(s): // a token has at least one byte
		return s
	}
	return s[:e.engine.prefix(s, n)]
}

// Suffix is like [Encoding.Prefix] for the end of s.
func (e *Encoding) Suffix(s string, n int) string {
	switch {
	case n <= 0:
		return ""
	case n >= len(s):
		return s
	}
	return s[e.engine.suffix(s, n):]
}

const unitsPerToken = 4

// chars4 estimates a token for every four characters, rounded up. A character is a UTF-16
// code unit, as in the length of a JavaScript string, so that the numbers agree with those
// of the tools that use this rule; most of them are written in that language. A byte that
// is not UTF-8 is one.
//
// It is 10 to 30 percent off for prose and code and counts less than half the tokens of
// logs, hexadecimal and base64, so it does not protect from overflow.
func chars4(s string) int {
	units := 0
	for _, r := range s {
		units += utf16.RuneLen(r)
	}
	return (units + unitsPerToken - 1) / unitsPerToken
}
