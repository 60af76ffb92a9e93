// Package peers_test talks to a vendor of language models that nobody here wrote:
// @copilotkit/aimock, which speaks the wire format of Anthropic and OpenAI and fails in
// every way that they do. What it cannot do, a listener of our own does.
package peers_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
