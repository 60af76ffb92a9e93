package roo_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/testkit/golden"
	"github.com/condensehq/condense/internal/testkit/roo"
)

type history []*roo.Message

func (h *history) UnmarshalJSON(data []byte) (err error) {
	*h, err = roo.Parse(data)
	return err
}

func TestGoldenEffective(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages history `json:"messages"`
	}
	golden.Run(t, "getEffectiveApiHistory", func(in input) (any, error) {
		return json.RawMessage(roo.Encode(roo.Effective(in.Messages))), nil
	}, nil)
}

func TestGoldenCleanup(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages history `json:"messages"`
	}
	type output struct {
		Messages json.RawMessage `json:"messages"`
		Changed  []int           `json:"changedIndices"`
	}
	golden.Run(t, "cleanupAfterTruncation", func(in input) (any, error) {
		out := output{Changed: []int{}}
		cleaned := roo.Cleanup(in.Messages)
		for i, m := range in.Messages {
			if cleaned[i] != m {
				out.Changed = append(out.Changed, i)
			}
		}
		out.Messages = roo.Encode(cleaned)
		return out, nil
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
		id := func() string { return "00000000-0000-4000-8000-000000000001" }
		now := func() time.Time { return time.UnixMilli(1_700_000_000_000) }
		r := roo.Truncate(in.Messages, in.Fraction, id, now)
		return output{roo.Encode(r.Messages), r.ID, r.Removed, slices.Equal(r.Messages, in.Messages), roo.Encode(roo.Effective(r.Messages))}, nil
	}, &golden.Options{Ignore: []string{"telemetry"}})
}

func TestGoldenLegacyTruncate(t *testing.T) {
	t.Parallel()
	type input struct {
		Version  string  `json:"version"` // both have the same rule
		Messages history `json:"messages"`
		Fraction float64 `json:"fracToRemove"`
	}
	golden.Run(t, "legacy.truncateConversation", func(in input) (any, error) {
		if len(in.Messages) == 0 {
			return nil, golden.NotOursError("of no messages Roo keeps one, which is undefined")
		}
		return json.RawMessage(roo.Encode(roo.LegacyTruncate(in.Messages, in.Fraction))), nil
	}, nil)
}
