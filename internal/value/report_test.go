package value_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// TestReportsOfOtherAgents: what the agents of a team reported stays where no other text repeats it, and their
// notices in JSON do not crowd it out.
func TestReportsOfOtherAgents(t *testing.T) {
	s := session(60)
	var messages []core.Message
	for i, m := range s {
		messages = append(messages, m)
		if i%12 == 10 {
			messages = append(messages,
				coretest.User(core.Text(fmt.Sprintf("<teammate-message teammate_id=\"tests\" summary=\"done\">\nTask %s is finished: the walrus of %s goes through the new gate.\n</teammate-message>", letters(i), letters(i+100)))),
				coretest.User(core.Text(fmt.Sprintf("<teammate-message teammate_id=\"tests\">\n{\"type\":\"idle_notification\",\"from\":\"%s\"}\n</teammate-message>", letters(i+200)))))
		}
	}
	messages = coretest.Conversation(messages...)
	got := text(shorten(t, messages, tokensOf(messages)/10).Messages)
	reports, notices := strings.Count(got, "goes through the new gate"), strings.Count(got, "idle_notification")
	if reports < 8 || notices >= reports {
		t.Errorf("%d of 10 reports and %d notices are left in\n%.4000s", reports, notices, got)
	}
}
