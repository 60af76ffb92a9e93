package servecmd

import (
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/session"
)

func TestStatusOfAConversation(t *testing.T) {
	base := control.Conversation{ID: "3kq7n2xaffff", Size: 142_310, Window: 200_000, DueAt: 160_000, DueIn: 6, Provider: "smart"}
	for want, change := range map[string]func(*control.Conversation){
		"condense 142k/200k 71% · condenses at 160k, in ~6":        func(*control.Conversation) {},
		"condense 142k/200k 71% · CONDENSES WITH THE NEXT REQUEST": func(c *control.Conversation) { c.DueIn = 1 },
		"condense 142k/200k 71% · paused":                          func(c *control.Conversation) { c.Paused, c.DueIn = true, 1 },
		"condense 142k/200k 71% · only observed":                   func(c *control.Conversation) { c.Observed = true },
		"condense 142k/200k 71% · undo waits: the turn is not over": func(c *control.Conversation) {
			c.Order = &session.Order{Do: session.OrderUndo, Waits: "the turn is not over"}
		},
		"condense 142k/200k 71% · undone with the next request": func(c *control.Conversation) { c.Order = &session.Order{Do: session.OrderUndo} },
		"condense 52k/200k 26% for 190k · condenses at 160k, in ~6 · condensed 3×, last 171k→52k by smart; undo: condense live undo 3kq7n2xa · saved $0.84 against its own compaction": func(c *control.Conversation) {
			c.Size, c.History, c.Condensed, c.Epochs, c.Money = 52_104, 190_400, true, 3, "saved $0.84 against its own compaction"
			c.LastEpoch = &control.LastEpoch{N: 1, Before: 171_300, After: 52_100}
		},
		"condense 52k/200k 26% · condenses at 160k, in ~6 · condensed 1×, last 171k→52k by smart, without 1,240 tokens of your words; undo: condense live undo 3kq7n2xa": func(c *control.Conversation) {
			c.Size, c.Condensed, c.Epochs = 52_104, true, 1
			c.LastEpoch = &control.LastEpoch{N: 1, Before: 171_300, After: 52_100, Lost: 1240}
		},
		"condense 52k/200k 26% · condenses at 160k, in ~6 · condensed 1×, last 171k→52k by smart, 2 of 1,200 lines of files were replaced since; undo: condense live undo 3kq7n2xa": func(c *control.Conversation) {
			c.Size, c.Condensed, c.Epochs = 52_104, true, 1
			c.LastEpoch = &control.LastEpoch{N: 1, Before: 171_300, After: 52_100, Truth: &epoch.Truth{Sentences: 40, Lines: 1200, Superseded: 2}}
		},
		"condense 142k/200k 71% · NO ANSWER, 3 times since 14:02: 401 invalid x-api-key → check the key": func(c *control.Conversation) {
			c.Refused = &session.Failing{Count: 3, Since: time.Date(2026, 11, 29, 14, 2, 0, 0, time.Local), Why: "401 invalid x-api-key", Status: 401}
		},
		"condense 142k/200k 71% · CONDENSING FAILS, 2 times since 14:02: plugin ended → compact in the agent, or begin a new session": func(c *control.Conversation) {
			c.Failing = &session.Failing{Count: 2, Since: time.Date(2026, 11, 29, 14, 2, 0, 0, time.Local), Why: "plugin ended"}
		},
		"condense 171k/1.0M 17% · last condensation undone": func(c *control.Conversation) {
			c.Size, c.Window, c.DueAt, c.Undone = 171_300, 1_000_000, 0, true
			c.LastEpoch = &control.LastEpoch{N: 2}
		},
		"condense 940": func(c *control.Conversation) { c.Size, c.Window, c.DueAt = 940, 0, 0 },
	} {
		c := base
		change(&c)
		if got := statusOf(&c, ""); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Plugins get a warning one request before an epoch, unless it will not come.
func TestMeterWarns(t *testing.T) {
	base := control.Conversation{ID: "3kq7n2xaffff", Size: 159_000, Window: 200_000, DueAt: 160_000, DueIn: 1}
	for name, tt := range map[string]struct {
		change func(*control.Conversation)
		soon   string
	}{
		"due": {func(*control.Conversation) {}, "159k/200k 79%; not now: condense live pause 3kq7n2xa --store /tmp/s.db"},
		"ordered": {
			func(c *control.Conversation) { c.DueIn, c.Order = 9, &session.Order{Do: session.OrderNow} },
			"159k/200k 79%; not now: condense live pause 3kq7n2xa --store /tmp/s.db",
		},
		"later":    {func(c *control.Conversation) { c.DueIn = 2 }, ""},
		"paused":   {func(c *control.Conversation) { c.Paused = true }, ""},
		"observed": {func(c *control.Conversation) { c.Observed = true }, ""},
		"undo":     {func(c *control.Conversation) { c.Order = &session.Order{Do: session.OrderUndo} }, ""},
	} {
		c := base
		tt.change(&c)
		if got := meterOf(&c, " --store /tmp/s.db").Soon; got != tt.soon {
			t.Errorf("%s: %q, want %q", name, got, tt.soon)
		}
	}
}

// Of several conversations the status is that of the session or the folder, and never of another one.
func TestStatusFindsTheConversation(t *testing.T) {
	all := []*control.Conversation{
		{ID: "sub", Session: "s1", SubAgent: "a1", Folder: "/work"},
		{ID: "other", Session: "s2", Folder: "/work"},
		{ID: "mine", Session: "s1", Folder: "/work"},
		{ID: "plain", Folder: "/home"},
	}
	for _, tt := range []struct{ input, want string }{
		{`{"session_id": "s1", "cwd": "/work"}`, "mine"},
		{`{"session_id": "new", "cwd": "/work"}`, ""},
		{`{"session_id": "new", "workspace": {"current_dir": "/home"}}`, "plain"},
		{`{"cwd": "/work"}`, "other"},
		{`{"cwd": "/elsewhere"}`, ""},
		{"", ""},
	} {
		var at statusPlace
		if err := at.read(strings.NewReader(tt.input)); err != nil {
			t.Fatal(err)
		}
		id := ""
		if c := at.find(all); c != nil {
			id = c.ID
		}
		if id != tt.want {
			t.Errorf("%s finds %q, want %q", tt.input, id, tt.want)
		}
	}
	if err := (&statusPlace{}).read(strings.NewReader("no JSON")); err == nil || !strings.Contains(err.Error(), "standard input is not the JSON of a status line") {
		t.Errorf("error %v", err)
	}
}
