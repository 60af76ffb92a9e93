package runtime_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/testkit/golden"
)

// TestRooProfileDecides: a profile with the preset roo decides as Roo-Code does. Some of
// Roo-Code's settings are refused in a file, a window of 0 and a global threshold outside 5
// to 100. For these the resolved numbers are changed instead, and the rule
// still agrees.
func TestRooProfileDecides(t *testing.T) {
	type input struct {
		TotalTokens            float64            `json:"totalTokens"`
		LastMessageTokens      float64            `json:"lastMessageTokens"`
		ContextWindow          float64            `json:"contextWindow"`
		MaxTokens              *float64           `json:"maxTokens"`
		AutoCondenseContext    bool               `json:"autoCondenseContext"`
		AutoCondenseContextPct float64            `json:"autoCondenseContextPercent"`
		ProfileThresholds      map[string]float64 `json:"profileThresholds"`
		CurrentProfileID       string             `json:"currentProfileId"`
	}
	refused := 0
	golden.Run(t, "willManageContext", func(in input) (any, error) {
		if golden.Whole(&in.TotalTokens, &in.LastMessageTokens, &in.ContextWindow) != 1 {
			return nil, golden.NotOursError("sizes are whole tokens")
		}
		p := config.ProfileValues{Preset: "roo", Window: new(int(in.ContextWindow))}
		if in.MaxTokens != nil {
			p.MaxOutput = new(int(*in.MaxTokens))
		}
		if th, ok := in.ProfileThresholds[in.CurrentProfileID]; ok {
			p.Threshold = new(th)
		}
		v := config.Values{
			Tuning:         config.Tuning{Auto: new(in.AutoCondenseContext), Threshold: new(in.AutoCondenseContextPct)},
			Profiles:       map[string]config.ProfileValues{"roo": p},
			DefaultProfile: "roo",
		}
		size := int(in.TotalTokens + in.LastMessageTokens)
		if _, err := config.New(v, config.Options{}); err != nil {
			if in.ContextWindow > 0 && in.AutoCondenseContextPct >= 5 && in.AutoCondenseContextPct <= 100 {
				return nil, fmt.Errorf("the configuration is refused: %w", err)
			}
			// The rule decides by such values, too.
			refused++
			v.Threshold = nil
			p.Window = new(1)
			v.Profiles["roo"] = p
			c, err := config.New(v, config.Options{})
			if err != nil {
				return nil, err
			}
			r, err := c.Resolve("roo", "")
			if err != nil {
				return nil, err
			}
			r.Window, r.Threshold = int(in.ContextWindow), in.AutoCondenseContextPct
			return r.Rule().Decide(policy.Size{Messages: size}, policy.State{}, core.TriggerAutomatic).Act, nil
		}
		h := open(t, v, config.Override{})
		// The message has its size, so no counter is used.
		c := condense.NewConversation()
		d, err := h.Check(c, condense.Turn{})
		if err != nil {
			return nil, err
		}
		if size > 0 {
			if err := c.Append(core.Message{ID: "1", Role: core.RoleUser, Tokens: size, Parts: []core.Part{core.Text("x")}}); err != nil {
				return nil, err
			}
			if d, err = h.Check(c, condense.Turn{}); err != nil {
				return nil, err
			}
		}
		return d.Act, nil
	}, nil)
	if refused > 5 {
		t.Errorf("%d vectors were refused, want at most 5", refused)
	}
}

// An sdkError is an error of an SDK with its JSON.
type sdkError struct {
	json     string
	apiError bool
}

func (e *sdkError) Error() string        { return "the model refused" }
func (e *sdkError) RawJSON() string      { return e.json }
func (e *sdkError) OpenAIAPIError() bool { return e.apiError }

// TestRooProfileRecognizesOverflow: under the preset roo the errors that count as an overflow
// are exactly those of Roo-Code.
func TestRooProfileRecognizesOverflow(t *testing.T) {
	type input struct {
		Error struct {
			Kind     string          `json:"kind"`
			Value    json.RawMessage `json:"value"`
			Message  string          `json:"message"`
			Name     string          `json:"name"`
			Props    map[string]any  `json:"props"`
			Property string          `json:"property"`
			Status   int             `json:"status"`
			Body     map[string]any  `json:"body"`
		} `json:"error"`
	}
	h := open(t, config.Values{Profiles: map[string]config.ProfileValues{"roo": {Preset: "roo", Window: new(100000)}}}, config.Override{})
	golden.Run(t, "checkContextWindowExceededError", func(in input) (any, error) {
		e := in.Error
		err := &sdkError{json: string(e.Value), apiError: strings.HasPrefix(e.Kind, "APIError")}
		var object map[string]any
		switch e.Kind {
		case "Error":
			object = map[string]any{"name": "Error", "message": e.Message}
			maps.Copy(object, e.Props)
		case "APIError.generate":
			inner, _ := e.Body["error"].(map[string]any)
			object = map[string]any{"status": e.Status, "error": inner, "code": inner["code"], "message": fmt.Sprint(e.Status, " ", inner["message"])}
		}
		if object != nil {
			raw, fault := json.Marshal(object)
			if fault != nil {
				return nil, fault
			}
			err.json = string(raw)
		}
		return h.Overflow(condense.Turn{}, err)
	}, nil)
	// Of these errors only the text is known.
	for text, want := range map[string]bool{
		"400 context length": true, "Error: 400 context length exceeded": true, `{"message":["context length exceeded"]}`: true,
		"429 too many tokens per minute": false, "rate limit: too many tokens": false, "connection reset by peer": false,
	} {
		if got, err := h.Overflow(condense.Turn{}, errors.New(text)); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
}
