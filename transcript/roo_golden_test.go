package transcript_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit/golden"
	"github.com/condensehq/condense/internal/testkit/roo"
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

// What Roo wrote, in the recorded states of its tasks, is read as what Roo sends of it.
func TestRooViewIsWhatRooSends(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages json.RawMessage `json:"messages"`
	}
	golden.RunRecorded(t, "getEffectiveApiHistory", func(in input, sent json.RawMessage) (any, error) {
		if err := rooSent(string(in.Messages), sent); err != nil {
			return nil, err
		}
		return sent, nil
	}, nil)
}

// rooSent checks that a file is read as what Roo recorded that it sends.
func rooSent(file string, sent json.RawMessage) error {
	d, err := readRoo(file)
	if err != nil {
		return err
	}
	want, err := readRoo(untagged(sent))
	if err != nil {
		return err
	}
	if err := sameWords(d.Journal.View(), want.Journal.View()); err != nil {
		return err
	}
	return rooViewIs(file)
}

func TestRooViewOfTruncated(t *testing.T) {
	t.Parallel()
	type output struct {
		Messages  json.RawMessage `json:"messages"`
		Effective json.RawMessage `json:"effective"`
	}
	golden.RunRecorded(t, "truncateConversation", func(_ json.RawMessage, recorded json.RawMessage) (any, error) {
		var out output
		if err := json.Unmarshal(recorded, &out); err != nil {
			return nil, err
		}
		if err := rooSent(string(out.Messages), out.Effective); err != nil {
			return nil, err
		}
		return recorded, nil
	}, nil)
}

func TestRooViewOfRewound(t *testing.T) {
	t.Parallel()
	type output struct {
		Messages  json.RawMessage `json:"apiConversationHistory"`
		Effective json.RawMessage `json:"effective"`
	}
	golden.RunRecorded(t, "rewind", func(_ json.RawMessage, recorded json.RawMessage) (any, error) {
		var out output
		if err := json.Unmarshal(recorded, &out); err != nil || out.Messages == nil {
			return nil, errors.Join(err, errors.New("the rewind failed"))
		}
		if err := rooSent(string(out.Messages), out.Effective); err != nil {
			return nil, err
		}
		return recorded, nil
	}, nil)
}

// A scenario is a whole life of a task: condensing, truncation, rewinding and new messages in
// any order.
func TestRooViewInScenarios(t *testing.T) {
	t.Parallel()
	type output struct {
		Steps []struct {
			Stored    json.RawMessage `json:"stored"`
			Effective json.RawMessage `json:"effective"`
		} `json:"steps"`
	}
	golden.RunRecorded(t, "scenario", func(_ json.RawMessage, recorded json.RawMessage) (any, error) {
		var out output
		if err := json.Unmarshal(recorded, &out); err != nil {
			return nil, err
		}
		for i, s := range out.Steps {
			if err := rooSent(string(s.Stored), s.Effective); err != nil {
				return nil, fmt.Errorf("step %d: %w", i+1, err)
			}
		}
		return recorded, nil
	}, nil)
}
