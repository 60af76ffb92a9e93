package secret

import (
	_ "embed" // the table is a file, which is easier to read
	"regexp"
	"strings"
	"sync"
)

// A Form is the form of a vendor's keys.
type Form struct {
	Begin  string // the characters that each begins with
	rest   string // a regular expression
	Issuer string // the vendor of language models that issues it; empty for any other
	Cloud  bool   // it is for this vendor only; keys of others are accepted by gateways of any kind
}

//go:embed forms.txt
var formsText string

// Forms returns the forms of keys that are known. Do not change them.
var Forms = sync.OnceValue(func() (all []Form) {
	for line := range strings.Lines(formsText) {
		columns := strings.Fields(line)
		if len(columns) < 2 || columns[0] == "#" {
			continue
		}
		issuer, cloud := strings.CutSuffix(strings.Join(columns[2:], " "), "*")
		all = append(all, Form{columns[0], columns[1], issuer, cloud})
	}
	return all
})

// unfixed are forms that begin with nothing fixed: tokens of Discord and Telegram, secrets of Microsoft Entra, keys of Azure's storage
// and of Z.ai.
const unfixed = `[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}|\d{8,10}:AA[A-Za-z0-9_-]{33}|` +
	`[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}|[A-Za-z0-9+/]{86}==|[0-9a-f]{32}\.[A-Za-z0-9]{16}\b`

func (f *Form) expression() string { return regexp.QuoteMeta(f.Begin) + f.rest }
