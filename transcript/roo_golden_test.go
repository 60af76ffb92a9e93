package transcript_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/roo"
	"github.com/condensehq/condense/internal/testkit/golden"
	"github.com/condensehq/condense/transcript"
)

func readRoo(file string) (*transcript.Document, error) {
	return transcript.Read(strings.NewReader(file), &transcript.ReadOptions{Format: "roo"})
}

// rooViewIs checks that the view of a file is what Roo sends of it.
func rooViewIs(file string) error {
	messages, err := roo.Parse([]byte(file))
	if err != nil {
		return err
	}
	d, err := readRoo(file)
	if err != nil {
		return err
	}
	sent, err := readRoo(untagged(roo.Encode(roo.Effective(messages))))
	if err != nil {
		return err
	}
	return sameWords(d.Journal.View(), sent.Journal.View())
}

// untagged returns messages without what could hide any, by giving it other names.
func untagged(messages []byte) string {
	file := string(messages)
	for _, tag := range []string{"isSummary", "condenseParent", "truncationParent", "condense"} {
		file = strings.ReplaceAll(file, `"`+tag+`":`, `"was `+tag+`":`)
	}
	return file
}

// sameWords reports the first message that does not say what it should.
func sameWords(got, want []core.Message) error {
	if len(got) != len(want) {
		return fmt.Errorf("got %d messages, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].Role != want[i].Role || !core.EqualParts(got[i].Parts, want[i].Parts) {
			return fmt.Errorf("message %d: got %s %v, want %s %v", i, got[i].Role, got[i].Parts, want[i].Role, want[i].Parts)
		}
	}
	return nil
}

func TestRooViewIsWhatRooSends(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages json.RawMessage `json:"messages"`
	}
	golden.Run(t, "getEffectiveApiHistory", func(in input) (any, error) {
		messages, err := roo.Parse(in.Messages)
		if err != nil {
			return nil, err
		}
		return json.RawMessage(roo.Encode(roo.Effective(messages))), rooViewIs(string(in.Messages))
	}, nil)
}

func TestRooViewOfTruncated(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages json.RawMessage `json:"messages"`
		Fraction float64         `json:"fracToRemove"`
	}
	type output struct {
		Effective json.RawMessage `json:"effective"`
	}
	golden.Run(t, "truncateConversation", func(in input) (any, error) {
		messages, err := roo.Parse(in.Messages)
		if err != nil {
			return nil, err
		}
		id := func() string { return "00000000-0000-4000-8000-000000000001" }
		now := func() time.Time { return time.UnixMilli(1_700_000_000_000) }
		truncated := roo.Truncate(messages, in.Fraction, id, now).Messages
		return output{roo.Encode(roo.Effective(truncated))}, rooViewIs(string(roo.Encode(truncated)))
	}, &golden.Options{Ignore: []string{"messages", "truncationId", "messagesRemoved", "messagesSame", "telemetry"}})
}
