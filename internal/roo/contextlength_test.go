package roo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/condensehq/condense/internal/roo"
	"github.com/condensehq/condense/internal/testkit/golden"
)

// An apiError is an error as the golden vectors describe it.
type apiError struct {
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

// object returns the error object, and whether it is an APIError of OpenAI's SDK.
func (e *apiError) object() (json.RawMessage, bool, error) {
	switch e.Error.Kind {
	case "undefined":
		return nil, false, nil
	case "json", "circular", "throwingGetter": // a getter that throws reads as absent
		return e.Error.Value, false, nil
	case "APIError":
		return e.Error.Value, true, nil
	case "Error":
		object := map[string]any{"name": "Error", "message": e.Error.Message}
		if e.Error.Name != "" {
			object["name"] = e.Error.Name
		}
		maps.Copy(object, e.Error.Props)
		raw, err := json.Marshal(object)
		return raw, false, err
	case "APIError.generate": // what the SDK builds of a response
		inner, _ := e.Error.Body["error"].(map[string]any)
		message := e.Error.Message
		if m, ok := inner["message"].(string); ok {
			message = m
		}
		raw, err := json.Marshal(map[string]any{
			"status": e.Error.Status, "error": inner, "code": inner["code"], "type": inner["type"],
			"message": fmt.Sprint(e.Error.Status, " ", message),
		})
		return raw, true, err
	}
	return nil, false, errors.New("unknown kind " + e.Error.Kind)
}

func TestContextWindowExceededParity(t *testing.T) {
	golden.Run(t, "checkContextWindowExceededError", func(e apiError) (any, error) {
		object, isAPIError, err := e.object()
		if err != nil {
			t.Fatal(err)
		}
		return roo.ContextWindowExceeded(object, isAPIError), nil
	}, nil)
}

func TestContextWindowExceededFoldsAsJavaScript(t *testing.T) {
	for message, want := range map[string]bool{
		"too many toKens":      true,
		"too many to\u212aens": false,
		"token\u017f exceed":   false,
		"maximum\ufeffcontext": true,
	} {
		raw, err := json.Marshal(map[string]any{"status": 400, "message": message})
		if err != nil {
			t.Fatal(err)
		}
		if got := roo.ContextWindowExceeded(raw, false); got != want {
			t.Errorf("%q: got %v, want %v", message, got, want)
		}
	}
}
