package main

import (
	"fmt"
	"testing"
)

// TestAhead: six projects in favour show who is ahead, five do not, whatever their number of sessions; nor do as many against.
func TestAhead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ projects, against, ahead int }{{6, 0, 1}, {5, 0, 0}, {6, 3, 0}, {6, 6, -1}, {40, 0, 1}, {40, 40, -1}} {
		v := values{}
		for i := range 3 * c.projects {
			session, x := fmt.Sprintf("x/p%d--%d.json", i%c.projects, i), float64(1+i%c.projects)
			if i%c.projects < c.against {
				x *= -9
			}
			v.put("a", session, "", x)
			v.put("b", session, "", 0)
		}
		got, _ := v.less("a", "b")
		if got.Ahead != c.ahead || got.Projects != c.projects || got.Low > got.Mean || got.High < got.Mean {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
