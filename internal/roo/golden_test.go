package roo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/condensehq/condense/internal/roo"
	"github.com/condensehq/condense/internal/testkit/golden"
)

// history is an input of messages. The bytes that it was read from tell whether a
// function wrote to it.
type history struct {
	messages []*roo.Message
	before   []*roo.Message
	json     string
}

func (h *history) UnmarshalJSON(data []byte) error {
	messages, err := roo.Parse(data)
	if err != nil {
		return err
	}
	h.messages, h.before = messages, slices.Clone(messages)
	h.json = string(roo.Encode(messages))
	return nil
}

// uiHistory is an input of UI messages.
type uiHistory []*roo.UIMessage

func (h *uiHistory) UnmarshalJSON(data []byte) (err error) {
	*h, err = roo.ParseUI(data)
	return err
}

// unchanged is an error if the input is no longer what it was.
func (h *history) unchanged() error {
	if !slices.Equal(h.messages, h.before) {
		return errors.New("the input slice was changed")
	}
	if got := string(roo.Encode(h.messages)); got != h.json {
		return fmt.Errorf("an input message was changed: got %s, want %s", got, h.json)
	}
	return nil
}

// encoded checks that h is unchanged and returns a result as JSON.
func (h *history) encoded(result []*roo.Message) (json.RawMessage, error) {
	if err := h.unchanged(); err != nil {
		return nil, err
	}
	return roo.Encode(result), nil
}

// recordedNow is what Date.now() was when the vectors were recorded.
func recordedNow() time.Time { return time.UnixMilli(1_700_000_000_000) }

// recordedID is the first crypto.randomUUID() of every vector.
func recordedID() string { return "00000000-0000-4000-8000-000000000001" }

type messagesInput struct {
	Messages history `json:"messages"`
}

func TestGoldenEffective(t *testing.T) {
	t.Parallel()
	golden.Run(t, "getEffectiveApiHistory", func(in messagesInput) (any, error) {
		return in.Messages.encoded(roo.Effective(in.Messages.messages))
	}, nil)
}

func TestGoldenSinceLastSummary(t *testing.T) {
	t.Parallel()
	golden.Run(t, "getMessagesSinceLastSummary", func(in messagesInput) (any, error) {
		return in.Messages.encoded(roo.SinceLastSummary(in.Messages.messages))
	}, nil)
}

func TestGoldenCleanup(t *testing.T) {
	t.Parallel()
	type output struct {
		Messages json.RawMessage `json:"messages"`
		Changed  []int           `json:"changedIndices"`
	}
	golden.Run(t, "cleanupAfterTruncation", func(in messagesInput) (any, error) {
		cleaned := roo.Cleanup(in.Messages.messages)
		changed := []int{}
		for i, m := range in.Messages.messages {
			if cleaned[i] != m {
				changed = append(changed, i)
			}
		}
		encoded, err := in.Messages.encoded(cleaned)
		return output{encoded, changed}, err
	}, nil)
}

func TestGoldenTruncate(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages history `json:"messages"`
		Fraction float64 `json:"fracToRemove"`
	}
	type output struct {
		Messages  json.RawMessage `json:"messages"`
		ID        string          `json:"truncationId"`
		Removed   int             `json:"messagesRemoved"`
		Same      bool            `json:"messagesSame"`
		Effective json.RawMessage `json:"effective"`
	}
	golden.Run(t, "truncateConversation", func(in input) (any, error) {
		result := roo.Truncate(in.Messages.messages, in.Fraction, recordedID, recordedNow)
		encoded, err := in.Messages.encoded(result.Messages)
		return output{
			Messages:  encoded,
			ID:        result.ID,
			Removed:   result.Removed,
			Same:      slices.Equal(result.Messages, in.Messages.messages),
			Effective: roo.Encode(roo.Effective(result.Messages)),
		}, err
	}, &golden.Options{Ignore: []string{"telemetry"}}) // what Roo tells its makers is not ours to send
}

func TestGoldenLegacyTruncate(t *testing.T) {
	t.Parallel()
	type input struct {
		Version  string  `json:"version"` // the rule is the same in both
		Messages history `json:"messages"`
		Fraction float64 `json:"fracToRemove"`
	}
	golden.Run(t, "legacy.truncateConversation", func(in input) (any, error) {
		return in.Messages.encoded(roo.LegacyTruncate(in.Messages.messages, in.Fraction))
	}, nil)
}

func TestGoldenMergeConsecutive(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages history  `json:"messages"`
		Roles    []string `json:"roles"`
	}
	golden.Run(t, "mergeConsecutiveApiMessages", func(in input) (any, error) {
		return in.Messages.encoded(roo.MergeConsecutive(in.Messages.messages, in.Roles))
	}, nil)
}

func TestGoldenRewind(t *testing.T) {
	t.Parallel()
	type input struct {
		UI            uiHistory `json:"clineMessages"`
		Messages      history   `json:"apiConversationHistory"`
		TS            *float64  `json:"ts"`
		Index         *float64  `json:"toIndex"`
		IncludeTarget bool      `json:"includeTargetMessage"`
		SkipCleanup   bool      `json:"skipCleanup"`
	}
	type output struct {
		UI          json.RawMessage `json:"clineMessages"`
		Messages    json.RawMessage `json:"apiConversationHistory"`
		Written     bool            `json:"apiHistoryWritten"`
		Effective   json.RawMessage `json:"effective"`
		ArtifactIDs []string        `json:"validArtifactIds,omitzero"`
	}
	golden.Run(t, "rewind", func(in input) (any, error) {
		if (in.TS == nil) == (in.Index == nil) {
			return nil, errors.New("the vector must have either ts or toIndex")
		}
		opts := &roo.RewindOptions{IncludeTarget: in.IncludeTarget, SkipCleanup: in.SkipCleanup}
		ui := in.UI
		var r *roo.Rewound
		var err error
		if in.TS != nil {
			r, err = roo.RewindToTimestamp(ui, in.Messages.messages, *in.TS, opts)
		} else {
			whole := int(*in.Index)
			if float64(whole) != *in.Index { // no UI message is there, as beyond the end, and the slice ends below it
				ui = ui[:min(whole, len(ui))]
			}
			r, err = roo.RewindToIndex(ui, in.Messages.messages, whole, recordedNow, opts)
		}
		if err != nil {
			return nil, err
		}
		if got, want := len(r.UI)+len(r.RemovedUI), len(ui); got != want {
			return nil, fmt.Errorf("got %d UI messages kept and removed, want %d", got, want)
		}
		if got, want := len(r.Messages)+len(r.Removed), len(in.Messages.messages); got != want {
			return nil, fmt.Errorf("got %d messages kept and removed, want %d", got, want)
		}
		encoded, err := in.Messages.encoded(r.Messages)
		return output{
			UI:          roo.EncodeUI(r.UI),
			Messages:    encoded,
			Written:     r.MessagesChanged,
			Effective:   roo.Encode(roo.Effective(r.Messages)),
			ArtifactIDs: r.ArtifactIDs,
		}, err
	}, nil)
}

// TestGoldenRequestHistory replays what Roo sends: the effective messages since the last
// summary, with the user's put together.
func TestGoldenRequestHistory(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages       history `json:"messages"`
		SupportsImages bool    `json:"supportsImages"`
	}
	golden.Run(t, "buildRequestHistory", func(in input) (any, error) {
		if !in.SupportsImages && strings.Contains(in.Messages.json, `"type":"image"`) {
			return nil, golden.NotOursError("images are removed by the program that sends the request")
		}
		sent := roo.SinceLastSummary(roo.Effective(in.Messages.messages))
		return in.Messages.encoded(roo.MergeConsecutive(sent, []string{"user"}))
	}, nil)
}

func TestGoldenContextTokens(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages uiHistory `json:"messages"`
	}
	golden.Run(t, "contextTokens", func(in input) (any, error) {
		return roo.ContextTokens(in.Messages), nil
	}, nil)
}

func TestGoldenCountTokens(t *testing.T) {
	t.Parallel()
	type input struct {
		Content json.RawMessage `json:"content"`
	}
	golden.Run(t, "tiktokenCount", func(in input) (any, error) {
		blocks, err := roo.ParseBlocks(in.Content)
		if err != nil {
			return nil, err
		}
		encoding, err := o200k()
		if err != nil {
			return nil, err
		}
		return roo.CountTokens(blocks, func(text string) int {
			return len(encoding.EncodeOrdinary(text))
		}), nil
	}, nil)
}

// o200k is the encoding that Roo counts in, from vocabulary that is compiled in.
var o200k = sync.OnceValues(func() (*tiktoken.Tiktoken, error) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	return tiktoken.GetEncoding(tiktoken.MODEL_O200K_BASE)
})
