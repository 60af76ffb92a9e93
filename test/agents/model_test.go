package agents_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestChangeOfModel: Claude Code goes on with another model, to which it sends its reminders in another form. The
// history stays condensed as it is.
func TestChangeOfModel(t *testing.T) {
	t.Parallel()
	d := newDesk(t, scenario())
	g := d.serve(t, "127.0.0.1:0")
	a := all[0]
	d.direct(t, &a, g.url, task)
	records, epochs := len(d.vendor.Records()), g.epochs(t)
	if epochs == 0 {
		t.Fatal("nothing was condensed")
	}
	at := slices.Index(a.args, "claude-opus-5-5")
	if at < 0 {
		t.Fatal("the test is for a model that takes messages of the system")
	}
	a.args = slices.Concat([]string{"--continue"}, a.args[:at], []string{"claude-sonnet-4-5"}, a.args[at+1:])
	d.direct(t, &a, g.url, "Say when you are done.")
	turns := 0
	for _, r := range d.vendor.Records()[records:] {
		if !bytes.Contains(r.Body, []byte(`"tools":[{`)) {
			continue // a title
		}
		if turns++; !bytes.Contains(r.Body, []byte("[Extract of the conversation so far")) || bytes.Contains(r.Body, []byte(`"role":"system"`)) {
			t.Errorf("the request to the other model is not condensed, or has messages of the system: %d bytes", len(r.Body))
		}
	}
	if now := g.epochs(t); turns == 0 || now != epochs {
		t.Errorf("%d requests to the other model, %d condensations instead of %d", turns, now, epochs)
	}
}

// TestGoesOn: Codex goes on with a session of its own, and sends the answers that it had over a WebSocket in the form in which it keeps
// them. The history stays condensed as it is.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, scenario())
	g := d.serve(t, "127.0.0.1:0")
	a := all[1]
	a.content = strings.Replace(a.content, "gpt-5.1", "gpt-6.2-sol", 1)
	d.direct(t, &a, g.url, task)
	turns, epochs := len(d.vendor.Turns()), g.epochs(t)
	a.args = append(slices.Clip(a.args), "resume", "--last")
	d.direct(t, &a, g.url, "Say when you are done.")
	after := d.vendor.Turns()[turns:]
	if now := g.epochs(t); epochs == 0 || len(after) != 1 || now != epochs {
		t.Errorf("%d requests after the session went on, %d condensations instead of %d\n%s", len(after), now, epochs, d.list())
	}
}
