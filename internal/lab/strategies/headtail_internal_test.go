package strategies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// The baseline obeys the rules for results, like every strategy that it is compared with.
func TestHeadTailIsLawful(t *testing.T) {
	t.Parallel()
	coretest.Run(t, func(*testing.T) core.CondensationProvider { return headTail{} })
}

// A baseline that leaves room unused, or that loses the task or the newest messages, would flatter the others.
func TestHeadTailIsStrong(t *testing.T) {
	t.Parallel()
	messages := []core.Message{coretest.User(core.Text("The task."))}
	for i := range 40 {
		id := fmt.Sprint("c", i)
		long := fmt.Sprintf("begin-%d %s end-%d", i, strings.Repeat("líne ", 100+50*(i%7)), i)
		messages = append(messages, coretest.Assistant(core.Text("I look."), coretest.Call(id)), coretest.Tool(coretest.Result(id, long)))
	}
	messages = append(messages, coretest.Assistant(core.Text("Done.")), coretest.User(core.Text("Go on.")))
	messages = coretest.Conversation(messages...)
	for _, share := range []int{10, 25, 50, 90} {
		req := coretest.Request(messages, core.TotalTokens(messages)*share/100)
		res, err := headTail{}.Condense(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		room, size := req.Budget.Room(), core.TotalTokens(res.Messages)
		if size > room || size*100 < room*98 {
			t.Errorf("%d %%: %d tokens in a room of %d", share, size, room)
		}
		text := fmt.Sprint(res.Messages)
		for _, want := range []string{"The task.", "begin-39", "end-39", "Go on."} {
			if !strings.Contains(text, want) {
				t.Errorf("%d %%: %q is gone", share, want)
			}
		}
		if !strings.Contains(text, headTailGap) {
			t.Errorf("%d %%: nothing is cut", share)
		}
	}
}
