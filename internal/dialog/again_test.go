package dialog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
)

// TestStatusIsNotTheUsers: plain texts in the user's role that say the time or a status again and again are a program's. What a person
// types again and again, or numbers, stays theirs.
func TestStatusIsNotTheUsers(t *testing.T) {
	t.Parallel()
	const rounds = 4
	for form, program := range map[string]bool{
		"The current local time is: 2026-11-2%d 10:0%[1]d:00.":      true,
		"Sat Nov 2%d 18:0%[1]d:14 UTC 2026":                         true,
		"Status: %d of 9 tasks are done.\nGo on with the next one.": true,
		"[heartbeat] tick %d":                                       true,
		"Automated check-in: %d agents run":                         true,
		"continue":                                                  false,
		"Run the tests again.":                                      false,
		"Implement issue %d, then commit.":                          false,
		"Next: step %d":                                             false,
		"Meeting on 2026-12-1%d":                                    false,
		"Call them at 10:1%d":                                       false,
		"%d":                                                        false,
		"Please also cover the status page, number %d.":             false,
		"Deploy build %d and tell me the time it took: I want all numbers.": false,
		"2026-11-28 10:0%d:11 ERROR refused\nQUESTION":                      false, // logs that a person pastes
	} {
		var messages []core.Message
		for i := range rounds {
			text := form
			if strings.Contains(form, "%") {
				text = fmt.Sprintf(form, i+1)
			}
			text = strings.Replace(text, "QUESTION", []string{"Why?", "And now?", "Still the same.", "Who does this?"}[i], 1)
			messages = append(messages, coretest.User(core.Text(text)), coretest.Assistant(core.Text("Done.")))
		}
		for n := 2; n <= len(messages); n += 2 {
			want := dialog.KindUser
			if program && n/2 > 2 {
				want = dialog.KindInjected
			}
			d := dialog.Read(messages[:n])
			for i := 0; i < n; i += 2 {
				if got := d.Messages[i][0].Passages[0].Kind; got != want {
					t.Errorf("%q, round %d of %d: %v", form, i/2+1, n/2, got)
				}
				if got := d.Messages[i][0].Segments()[0].Kind; got != want {
					t.Errorf("%q, segments: %v", form, got)
				}
			}
		}
	}
}
