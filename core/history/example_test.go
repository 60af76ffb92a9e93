package history_test

import (
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

func Example() {
	j := history.New()
	show := func(what string) {
		fmt.Print(what, ":")
		for _, m := range j.View() {
			fmt.Print(" ", m.ID)
		}
		fmt.Println()
	}
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	say := func(id string) core.Message {
		return core.Message{ID: id, Role: core.RoleUser, Parts: []core.Part{core.Text("…")}}
	}

	must(j.Append(say("m1"), say("m2"), say("m3")))
	must(j.Condense(history.Condensation{ID: "inner", Edit: core.Edit{
		Hide:   []string{"m1", "m2"},
		Insert: []core.Insert{{After: "m2", Message: say("s1")}},
	}}))
	show("condensed")
	must(j.Append(say("m4")))
	must(j.Condense(history.Condensation{ID: "outer", Edit: core.Edit{
		Hide:   []string{"s1", "m3"},
		Insert: []core.Insert{{After: "m3", Message: say("s2")}},
	}}))
	show("condensed again")
	must(j.Undo("inner")) // s2 still replaces m1 and m2
	show("inner undone")
	must(j.Rewind("m4")) // back to when m4 was said
	show("rewound")

	// Output:
	// condensed: s1 m3
	// condensed again: s2 m4
	// inner undone: s2 m4
	// rewound: m1 m2 m3 m4
}
