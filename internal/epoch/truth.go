package epoch

import (
	"fmt"

	"github.com/condensehq/condense/internal/size"
)

// A Truth counts what the view of an epoch says that is not so, and what it no longer says, held against the history that it stands for.
type Truth struct {
	// Sentences of the user in the history, and those that the view does not have verbatim, white space aside.
	Sentences     int `json:"sentences"`
	SentencesGone int `json:"sentences_gone"`
	// Claims are lines that the view gives as the user's; WrongAuthor those that somebody else wrote.
	Claims      int `json:"claims"`
	WrongAuthor int `json:"wrong_author"`
	// Lines are lines of files in the view; Superseded those that an edit or a newer read replaced, without the newer text.
	Lines      int `json:"lines"`
	Superseded int `json:"superseded"`
	// Outcomes are identifiers of what calls started or created, while their end was not seen; OutcomesLost those not in the view.
	Outcomes     int `json:"outcomes"`
	OutcomesLost int `json:"outcomes_lost"`
}

// String returns the four numbers in the order of the fields; a dash for nil, which is not measured.
func (t *Truth) String() string {
	if t == nil {
		return "–"
	}
	return fmt.Sprintf("%s · %s · %s · %s", size.Group(t.SentencesGone), size.Group(t.WrongAuthor), size.Group(t.Superseded), size.Group(t.OutcomesLost))
}

// Faults says each in words, if there are any; nothing for nil.
func (t *Truth) Faults() (all []string) {
	if t == nil {
		return nil
	}
	for _, f := range []struct {
		n, of int
		what  string
	}{
		{t.SentencesGone, t.Sentences, "sentences of the user are gone"},
		{t.WrongAuthor, t.Claims, "lines given as the user's are not"},
		{t.Superseded, t.Lines, "lines of files were replaced since"},
		{t.OutcomesLost, t.Outcomes, "identifiers of started or created things are gone"},
	} {
		if f.n > 0 {
			all = append(all, fmt.Sprintf("%s of %s %s", size.Group(f.n), size.Group(f.of), f.what))
		}
	}
	return all
}
