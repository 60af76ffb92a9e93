// Package peers_test tests the clients with an independent mock of language models,
// @copilotkit/aimock, which implements the wire formats of Anthropic and OpenAI and their failures.
// A listener of our own adds failures that it lacks.
package peers_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
