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

// rooExceptions make a rule decide as Roo-Code's willManageContext does (v3.52.1).
var rooExceptions = policy.Exceptions{UnknownReserve: 8192, StopAtLimit: true, IgnoreFixed: true, Eager: true, Unchecked: true}

// rooRule returns Roo-Code's rule with its defaults.
func rooRule(window int) policy.Rule {
	return policy.Rule{Window: window, Buffer: 10, Auto: true, Threshold: 100, Exceptions: rooExceptions}
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
		r := rooRule(int(in.ContextWindow))
		if in.MaxTokens != nil {
			r.MaxOutput = int(*in.MaxTokens)
		}
		r.Auto = in.AutoCondenseContext
		r.Threshold = in.AutoCondenseContextPct // the global one is taken as it is, a profile's only if it is valid
		if profile, ok := in.ProfileThresholds[in.CurrentProfileID]; ok && profile >= 5 && profile <= 100 {
			r.Threshold = profile
		}
		size := policy.Size{Messages: int(in.TotalTokens + in.LastMessageTokens)}
		return r.Decide(size, policy.State{}, core.TriggerAutomatic).Act, nil
	}, nil)
}
