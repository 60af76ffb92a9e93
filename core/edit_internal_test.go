package core

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestFinder compares with a map, asked in order, out of it, and for what is not there.
func TestFinder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := make([]Message, rapid.IntRange(0, 40).Draw(t, "messages"))
		index := map[string]int{}
		for i := range messages {
			messages[i].ID = "m" + strconv.Itoa(i)
			index[messages[i].ID] = i
		}
		find := finder(messages)
		next := 0
		for range rapid.IntRange(0, 60).Draw(t, "questions") {
			if rapid.IntRange(0, 4).Draw(t, "jump") == 0 {
				next = rapid.IntRange(0, 50).Draw(t, "next")
			}
			id := "m" + strconv.Itoa(next)
			want, ok := index[id]
			if !ok {
				want = -1
			}
			if got := find(id); got != want {
				t.Fatalf("%s of %d messages: got %d, want %d", id, len(messages), got, want)
			}
			next++
		}
		if got := find(""); got != -1 {
			t.Fatalf("no ID: got %d, want -1", got)
		}
	})
}
