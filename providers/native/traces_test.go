package native_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/transcript"
)

// TestRecordedSessions holds the promises on sessions of real agents: every preset brings
// them below the target, validly, and every request that leaves is one that an API takes.
// The directory CONDENSE_TRACES_DIR adds sessions to those of this repository.
func TestRecordedSessions(t *testing.T) {
	sessions := map[string][]core.Message{}
	for _, file := range testkit.Sessions(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := transcript.Read(bytes.NewReader(data), &transcript.ReadOptions{Name: file})
		if err != nil {
			t.Fatal(err)
		}
		messages := d.Journal.View()
		for i := range messages {
			messages[i].Tokens = 0
		}
		core.Measure(coretest.Counter{}, messages)
		if coretest.HalfRequest(messages).Budget.Target >= 2000 { // the others are not condensed
			sessions[filepath.Base(file)] = messages
		}
	}
	if len(sessions) < 10 && !testing.Short() {
		t.Errorf("only %d sessions are worth condensing", len(sessions))
	}
	forEachPreset(t, func(t *testing.T, name string) {
		t.Parallel()
		for file, messages := range sessions {
			// Half of them each way, and the other half with the next preset.
			request := "text"
			if (len(messages)+len(name))%2 == 0 {
				request = "native"
			}
			req := coretest.HalfRequest(messages)
			gen := &fake{answer: say(strings.Repeat("What was said. ", 60)), info: model.Info{Window: 64_000}}
			res, err := open(t, `{"preset":"`+name+`","max_calls":500,"request":"`+request+`"}`, gen).Condense(t.Context(), req)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if err := core.Verify(req, res); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if after := messagesSize(res.Messages); after > req.Budget.Target {
				t.Errorf("%s: %d tokens are left, target %d", file, after, req.Budget.Target)
			}
			for _, ask := range gen.asks {
				checkPrompt(t, ask)
				if n := promptSize(ask) + ask.MaxOutput; n > 64_000 {
					t.Errorf("%s: a request has %d tokens", file, n)
				}
			}
		}
	})
}

func messagesSize(messages []core.Message) int {
	n := 0
	for _, m := range messages {
		n += core.MessageTokens(coretest.Counter{}, m)
	}
	return n
}
