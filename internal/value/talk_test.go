package value_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// chat returns a talk of n rounds with an assistant whose answers are long, in one of several languages. In round k the
// user says where something is.
func chat(n int, say, filler string) (messages []core.Message, said []string) {
	for i := range n {
		s := fmt.Sprintf(say, i*7919+1000)
		said = append(said, s)
		messages = append(messages, coretest.User(core.Text(s)), coretest.Assistant(core.Text(strings.Repeat(filler+" ", 12))))
	}
	return coretest.Conversation(append(messages, coretest.User(core.Text("?")))...), said
}

// TestTalkKeepsWholeMessages: of a talk without tools messages are kept whole, the user's first if the others' are
// long, in any language, and a sentence that a later one replaces is not cut out of its message.
func TestTalkKeepsWholeMessages(t *testing.T) {
	for name, c := range map[string][2]string{
		"English": {"My locker at the pool in Bergen is number %d now. I keep the towels there. It was another one before.", "That is a sensible place to keep things, and it is close to the water."},
		"German":  {"Mein Schrank im Freibad von Bergen hat jetzt die Nummer %d. Dort liegen die Handtücher. Vorher war es ein anderer.", "Das ist ein guter Ort, und er liegt nahe am Wasser, was im Sommer sehr praktisch ist."},
		"Chinese": {"我在卑尔根游泳馆的柜子现在是%d号。毛巾放在那里。以前是另一个。", "这是一个合适的地方，而且离水很近，夏天非常方便，不用走很远的路。"},
	} {
		t.Run(name, func(t *testing.T) {
			messages, said := chat(60, c[0], c[1])
			res := shorten(t, messages, tokensOf(messages)/4)
			got := text(res.Messages)
			whole, torn := 0, 0
			for _, s := range said {
				first, _, _ := strings.Cut(s, map[bool]string{true: "。", false: ". "}[name == "Chinese"])
				switch {
				case strings.Contains(got, s):
					whole++
				case strings.Contains(got, first):
					torn++
				}
			}
			if whole < len(said)*9/10 || torn > 0 {
				t.Errorf("%d of %d messages of the user are whole, %d are torn", whole, len(said), torn)
			}
		})
	}
}

// TestTalkOfTwo: of a talk the user's messages are whole, and of the others those with names and rare words are kept
// before greetings.
func TestTalkOfTwo(t *testing.T) {
	var messages []core.Message
	for i := range 60 {
		a, b := "Oh nice, that is really good to hear, have a good day!", "Thanks, you too, and have a good day!"
		if i%6 == 3 {
			b = fmt.Sprintf("My sister moved to Tromsø with zebra%d in autumn.", i*37)
		}
		messages = append(messages, coretest.User(core.Text(a)), coretest.Assistant(core.Text(b)))
	}
	messages = coretest.Conversation(messages...)
	got := text(shorten(t, messages, tokensOf(messages)*4/5).Messages)
	if n, all := strings.Count(got, "moved to Tromsø"), strings.Count(got, "Oh nice"); n != 10 || all != 60 {
		t.Errorf("%d of 10 messages that say something are kept, and %d of 60 of the user", n, all)
	}
}
