package condense_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/providers"
	"github.com/condensehq/condense/registry"
	"github.com/condensehq/condense/tokens"
)

// Messages that a program makes by hand have no IDs, and must not stop it at the first step.
func TestAppendGivesIDs(t *testing.T) {
	t.Parallel()
	c := condense.NewConversation(history.New())
	say := func(id, text string) core.Message {
		return core.Message{ID: id, Role: core.RoleUser, Parts: []core.Part{core.Text(text)}}
	}
	mine := []core.Message{say("", "one"), say("own", "two"), say("", "three")}
	if err := c.Append(mine...); err != nil {
		t.Fatal(err)
	}
	if mine[0].ID != "" || mine[2].ID != "" {
		t.Error("the messages of the caller were changed")
	}
	view := c.View()
	if len(view) != 3 || view[1].ID != "own" || view[0].ID == view[2].ID {
		t.Fatalf("got %v", view)
	}
	for _, i := range []int{0, 2} {
		if id, err := uuid.Parse(view[i].ID); err != nil || id.Version() != 7 {
			t.Errorf("message %d has the ID %q; want a UUID of version 7", i, view[i].ID)
		}
	}
	if err := c.Rewind(view[0].ID); err != nil {
		t.Errorf("the ID names no message: %v", err)
	}
	// All or none, also where only one is wrong.
	if err := c.Append(say("", "four"), say("own", "again")); err == nil || len(c.View()) != 1 {
		t.Errorf("got %v and %d messages", err, len(c.View()))
	}
	// The journal itself gives none, and says what to do.
	err := c.Journal().Append(say("a", "x"), say("", "y"))
	if err == nil || !strings.Contains(err.Error(), "message 2 of the 2 to append has no ID") {
		t.Errorf("got %v", err)
	}
}

// The lines of README must work as they are typed. What follows is what it says; the test
// holds the two together.
func TestReadmeProgram(t *testing.T) {
	t.Chdir(t.TempDir()) // no configuration
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	ctx, sent := t.Context(), 0
	send := func(messages []core.Message) { sent = len(messages) }
	messages := []core.Message{{Role: core.RoleUser, Parts: []core.Part{core.Text("Hello")}}}
	program := func() error {
		reg, err := registry.New(providers.Builtin()...)
		if err != nil {
			return err
		}
		cfg, err := config.Load(config.Options{
			Builtin: reg.Names(), Strategies: reg.Names(), Tokenizers: tokens.Names(),
			Chain: providers.Chain(), // what holds where no file names a chain; without it, truncation
		})
		if err != nil {
			return err
		}
		h, err := condense.Open(ctx, cfg, reg, nil)
		if err != nil {
			return err
		}
		defer h.Close()
		c := condense.NewConversation(history.New())

		if err := c.Append(messages...); err != nil { // as they are said
			return err
		}
		report, err := h.Manage(ctx, c, condense.Turn{Mode: "code"}) // before every request to the model
		if err != nil {
			return err
		}
		send(c.View())
		if report == nil {
			return errors.New("no report")
		}
		return nil
	}
	if err := program(); err != nil || sent != 1 {
		t.Errorf("sent %d messages, %v", sent, err)
	}
}

func TestReadmeProgramIsTheOneThatIsTested(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("append_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "## In a Go program")
	_, rest, _ = strings.Cut(rest, "```go\n")
	block, _, found := strings.Cut(rest, "\n```")
	if !found {
		t.Fatal("README has no program")
	}
	space := regexp.MustCompile(`\s+`)
	if got := space.ReplaceAllString(string(source), " "); !strings.Contains(got, space.ReplaceAllString(block, " ")) {
		t.Errorf("README's program is not the one that is tested:\n%s", block)
	}
}
