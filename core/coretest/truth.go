package coretest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// A Truth is a conversation with its facts. A view with faults is not invalid: its readers are told something false, or not told
// something that they rely on.
type Truth struct {
	Name, About string
	Messages    []core.Message
	Facts       []Fact
	Views       []struct { // texts that stand for all messages, with the number of their faults
		Text   string
		Faults int
	}
}

// A Fact is a text of a conversation. A view has the words of the user, and the identifiers of things that were started or created and
// whose end nobody saw. It does not give others as the user's, nor shows an old line of a file without the line that it is now.
type Fact struct{ Kind, Text, Now string }

//go:embed truth.json
var truthsJSON []byte

// Truths returns conversations for authors of providers who want to know whether their views are true:
//
//	res, err := provider.Condense(ctx, coretest.HalfRequest(truth.Messages))
//	…
//	for _, fault := range truth.Faults(res.Messages) { … }
func Truths() (all []Truth) {
	if err := json.Unmarshal(truthsJSON, &all); err != nil {
		panic(err)
	}
	for i := range all {
		all[i].Messages = Conversation(all[i].Messages...)
	}
	return all
}

var headingForm = plain.Pattern(`(?i)^\s*[¶#*>\[]+\s*[*\[]?(?:(user|human|person)\b|\w)`)

// Faults returns the false facts of a view, and the words of the user and identifiers that it does not have.
func (t *Truth) Faults(view []core.Message) (faults []Fact) {
	all, users := "", ""
	for i := range view {
		said := view[i].Role == core.RoleUser && view[i].Kind == core.KindOriginal
		for _, p := range view[i].Parts {
			inside := false // an element, which names its author itself
			_, isText := p.(core.Text)
			for line := range strings.SplitSeq(fmt.Sprint(p), "\n") { // the texts of all parts as they are
				if found := headingForm().FindStringSubmatch(line); found != nil {
					said = found[1] != ""
				}
				inside = strings.HasPrefix(line, "<") || inside
				if all += line + "\n"; isText && said && !inside {
					users += line + "\n"
				}
				inside = inside && !strings.Contains(line, "</")
			}
		}
	}
	for _, f := range t.Facts {
		has := strings.Contains(all, f.Text)
		switch f.Kind {
		case "others":
			has = !strings.Contains(users, f.Text)
		case "old":
			has = !has || strings.Contains(all, f.Now)
		}
		if !has {
			faults = append(faults, f)
		}
	}
	return faults
}
