package policy_test

import (
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/testkit/golden"
)

// willManageContext is the input of Roo-Code's function of that name. Absent members are
// null, and every number may be a fraction there.
type willManageContext struct {
	TotalTokens            float64            `json:"totalTokens"`
	LastMessageTokens      float64            `json:"lastMessageTokens"`
	ContextWindow          float64            `json:"contextWindow"`
	MaxTokens              *float64           `json:"maxTokens"`
	AutoCondenseContext    bool               `json:"autoCondenseContext"`
	AutoCondenseContextPct float64            `json:"autoCondenseContextPercent"`
	ProfileThresholds      map[string]float64 `json:"profileThresholds"`
	CurrentProfileID       string             `json:"currentProfileId"`
}

func TestRooParity(t *testing.T) {
	golden.Run(t, "willManageContext", func(in willManageContext) (any, error) {
		reserve := 8192.0
		if in.MaxTokens != nil && *in.MaxTokens != 0 {
			reserve = *in.MaxTokens
		}
		if golden.Whole(&in.TotalTokens, &in.LastMessageTokens, &in.ContextWindow, &reserve) != 1 {
			in.MaxTokens = &reserve
		}
		r := policy.Roo(int(in.ContextWindow))
		if in.MaxTokens != nil {
			r.MaxOutput = int(*in.MaxTokens)
		}
		r.Auto = in.AutoCondenseContext
		profile, ok := in.ProfileThresholds[in.CurrentProfileID]
		if !ok {
			profile = policy.Inherit
		}
		r.Threshold = policy.RooThreshold(profile, in.AutoCondenseContextPct)
		size := policy.Size{Messages: int(in.TotalTokens + in.LastMessageTokens)}
		return r.Decide(size, policy.State{}, core.TriggerAutomatic).Act, nil
	}, nil)
}
