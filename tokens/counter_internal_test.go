package tokens

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
)

// A spy is an engine that keeps a list of what it had to count.
type spy struct {
	engine
	counted []string
}

func (s *spy) count(text string) int {
	s.counted = append(s.counted, text)
	return len(text)
}

func TestCounterCountsOnce(t *testing.T) {
	t.Parallel()
	s := new(spy)
	c := NewCounter(&Encoding{"spy", s})
	long := strings.Repeat("x", 1000)
	message := core.Message{Role: core.RoleUser, Parts: []core.Part{
		core.Text(long),
		core.ToolResult{CallID: "1", Content: []core.Part{core.Text(long)}},
		core.ToolCall{Args: long},
	}}
	for range 3 {
		if got, want := core.MessageTokens(c, message), 3000+core.FramingTokens; got != want {
			t.Fatalf("MessageTokens = %d, want %d", got, want)
		}
		c.Breakdown(message)
	}
	n := 0
	for _, text := range s.counted {
		if text == long {
			n++
		}
	}
	if n != 1 {
		t.Errorf("a text was counted %d times, want 1", n)
	}
	other := long[:999] + "y"
	if c.CountText(other); s.counted[len(s.counted)-1] != other {
		t.Error("another text of the same length was not counted")
	}
}

// What is measured at every turn stays in memory, whatever else is counted.
func TestCounterForgets(t *testing.T) {
	t.Parallel()
	s := new(spy)
	c := NewCounter(&Encoding{"spy", s})
	filler := strings.Repeat("x", minRemembered)
	c.CountText("in use " + filler)
	for i := range 3 * generation {
		c.CountText(fmt.Sprint(i, filler))
		if i%(generation/2) == 0 {
			before := len(s.counted)
			if c.CountText("in use " + filler); len(s.counted) != before {
				t.Fatalf("after %d other texts, the one in use was forgotten", i)
			}
		}
	}
	if got := len(c.memory.young) + len(c.memory.old); got > 2*generation {
		t.Errorf("the memory holds %d texts, want at most %d", got, 2*generation)
	}
	before := len(s.counted)
	if c.CountText(fmt.Sprint(0, filler)); len(s.counted) == before {
		t.Error("the oldest text was not forgotten")
	}
}
