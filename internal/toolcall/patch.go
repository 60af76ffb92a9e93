package toolcall

import (
	"bytes"
	"strings"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// SearchReplace returns the pairs of old and new text in the SEARCH and REPLACE blocks of a text, in the forms of Aider, Cline and
// Roo Code, which names a place before the old text.
func SearchReplace(text string) (pairs [][2]string) {
	for {
		_, rest, ok := strings.Cut(text, "<<<<<<< SEARCH\n")
		if !ok {
			return pairs
		}
		for strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "-------\n") {
			_, rest, _ = strings.Cut(rest, "\n")
		}
		old, rest, _ := strings.Cut(rest, "=======\n")
		now, rest, _ := strings.Cut(rest, ">>>>>>> REPLACE")
		pairs, text = append(pairs, [2]string{strings.TrimSuffix(old, "\n"), strings.TrimSuffix(now, "\n")}), rest
	}
}

// A Hunk is a change of one file by a patch in the form of apply_patch.
type Hunk struct {
	Path, To string // To is its new name, if it moves
	Old, New string
	Added    bool // New is the whole file
	Deleted  bool
}

// PatchIn returns the changes by the patch in the arguments of a call, of apply_patch or of a shell that runs it. They may be the patch.
func PatchIn(args []byte) []Hunk {
	if !bytes.Contains(args, []byte("*** Begin Patch")) {
		return nil
	}
	for value := range Values(args, Patch|Command) {
		if rawjson.IsArray(value) {
			for e := range rawjson.Elements(value) {
				value = e
			}
		}
		if hunks := ApplyPatch(rawjson.Text(value)); len(hunks) > 0 {
			return hunks
		}
	}
	if bytes.HasPrefix(bytes.TrimSpace(args), []byte("*** Begin")) {
		return ApplyPatch(string(args))
	}
	return nil
}

// ApplyPatch returns the changes of the patch in text, in their order; none if there is no patch.
func ApplyPatch(text string) (hunks []Hunk) {
	_, body, ok := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "*** Begin Patch\n")
	if !ok {
		return nil
	}
	body, _, _ = strings.Cut(body, "*** End Patch")
	var h Hunk
	var old, now []string
	flush := func() {
		if len(old)+len(now) > 0 || h.Added || h.Deleted {
			h.Old, h.New = strings.Join(old, "\n"), strings.Join(now, "\n")
			hunks = append(hunks, h)
		}
		old, now = nil, nil
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(body, "\n"), "\n") {
		switch name, isFile := strings.CutPrefix(line, "*** "); {
		case isFile:
			verb, file, _ := strings.Cut(name, ": ")
			if verb == "Move to" {
				h.To = file
				continue
			}
			flush()
			h = Hunk{Path: file, Added: verb == "Add File", Deleted: verb == "Delete File"}
			if verb != "Update File" && !h.Added && !h.Deleted {
				h = Hunk{}
			}
		case strings.HasPrefix(line, "@@"):
			flush()
		case h.Added:
			now = append(now, strings.TrimPrefix(line, "+"))
		case strings.HasPrefix(line, "+"):
			now = append(now, line[1:])
		case strings.HasPrefix(line, "-"):
			old = append(old, line[1:])
		default:
			line = strings.TrimPrefix(line, " ")
			old, now = append(old, line), append(now, line)
		}
	}
	flush()
	return hunks
}

// signs follow the number of a line in the results of tools that show files. A shorter one comes after those that begin with it.
var signs = []string{"→", "\t", " | ", "| ", "|", ": ", ":", "-"}

// Gutter splits off the number that a tool wrote before a line of a file, as in "  12→x", "00012| x", "12 | x", "12\tx", "12: x",
// and "12:x" and "12-x" of a search. Sign is what stands between number and text; it is empty, and text the line, if there is no
// number.
func Gutter(line string) (n int, sign, text string) {
	const most = 7 // digits
	rest := strings.TrimLeft(line, " ")
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		if digits++; digits > most {
			return 0, "", line
		}
		n = 10*n + int(rest[digits-1]-'0')
	}
	if digits == 0 {
		return 0, "", line
	}
	rest = rest[digits:]
	if rest == " |" { // an empty line
		return n, rest, ""
	}
	for _, sign := range signs {
		if text, ok := strings.CutPrefix(rest, sign); ok {
			return n, sign, text
		}
	}
	return 0, "", line
}

var wrapperForm = plain.Pattern(`^(?:<path>[^<]*</path>|<type>\w+</type>|</?content>|</?file>)$`)

// Wraps reports whether a tool writes the line around the text of a file that it shows.
func Wraps(line string) bool {
	return strings.HasPrefix(line, "<") && wrapperForm().MatchString(strings.TrimRight(line, "\r"))
}
