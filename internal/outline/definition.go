package outline

// A Definition is something with a name that a file defines. Lines count from 1, and
//
//	1 <= Start < Body <= End+1
//
// Lines Start to Body-1 are its signature, lines Body to End the rest of it: the
// statements of a function, the members of a type and the closing bracket. Body is End+1
// if the definition has no line that is not part of the signature.
//
// Attributes, annotations, decorators and comments above a definition are not part of it.
type Definition struct {
	Name string
	// Kind is what the language calls it, in lower case: "func", "class", "method",
	// "interface", "heading" and so on. The set is open.
	Kind       string
	Start, End int
	Body       int
	// Depth is how many definitions enclose this one: 1 for a method of a class.
	Depth int
}

// Definitions finds the definitions of src that are not local to a function, in the order
// of their Start; of two that start on the same line, the outer one is first. A definition
// that starts within another one ends within it. It knows the languages that [Language]
// names and answers nil for others.
//
// It is total: malformed, hostile and binary text costs time and memory linear in its
// length and gives some list, possibly empty. Of more than 1 GiB it is always empty.
func Definitions(language, src string) []Definition {
	l := languages[language]
	if l == nil || src == "" || len(src) > maxSource {
		return nil
	}
	return l.scan(l, src)
}
