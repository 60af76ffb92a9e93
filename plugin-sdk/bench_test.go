package pluginsdk_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// BenchmarkProcess is a whole call to a plugin that is a process, as a user's is: all of a
// history goes there, the edits come back and are applied.
func BenchmarkProcess(b *testing.B) {
	for _, tls := range []struct {
		name string
		on   bool
	}{{"plain", false}, {"mTLS", true}} {
		p := launch(b, self(b, "tail"), nil, tls.on)
		if err := p.Configure(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		for _, size := range []struct {
			name  string
			bytes int
		}{{"100KB", 100 << 10}, {"1MB", 1 << 20}, {"10MB", 10 << 20}} {
			req := coretest.HalfRequest(history(size.bytes))
			b.Run(tls.name+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(size.bytes))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.Condense(b.Context(), req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// history returns a conversation of about size bytes: 1.6 kB a message, as an agent's has.
func history(size int) []core.Message {
	var out []core.Message
	line := core.Text(strings.Repeat("All work and no play makes Jack a dull boy.\n", 36))
	for n := 0; n < size; n += len(line) {
		m := coretest.User(line)
		if len(out)%2 == 1 {
			m.Role = core.RoleAssistant
		}
		out = append(out, m)
	}
	return coretest.Conversation(out...)
}
