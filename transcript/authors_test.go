package transcript_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/transcript"
)

// TestMetaIsNotTheUsers: Claude Code records which messages in the user's role it wrote itself. What a scheduled task says is not the
// person's, even in the person's words, also after the conversation went through a journal; the words next to it stay the person's.
func TestMetaIsNotTheUsers(t *testing.T) {
	t.Parallel()
	lines := []string{
		`{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"Watch the build."}}`,
		`{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","message":{"role":"assistant","content":[{"type":"text","text":"I do."}]}}`,
		`{"type":"user","uuid":"u2","parentUuid":"a1","sessionId":"s","isMeta":true,"scheduledTaskId":"1","message":{"role":"user","content":"Watch the build."}}`,
		`{"type":"user","uuid":"u3","parentUuid":"u2","sessionId":"s","isMeta":true,"message":{"role":"user","content":"Stop hook feedback: commit first"}}`,
		`{"type":"assistant","uuid":"a2","parentUuid":"u3","sessionId":"s","message":{"role":"assistant","content":[{"type":"text","text":"Green."}]}}`,
		`{"type":"user","uuid":"u4","parentUuid":"a2","sessionId":"s","message":{"role":"user","content":"Thanks."}}`,
	}
	d, err := transcript.Read(strings.NewReader(strings.Join(lines, "\n")+"\n"), &transcript.ReadOptions{Format: "claudecode"})
	if err != nil {
		t.Fatal(err)
	}
	messages := d.Journal.View()
	var stored []core.Message
	raw, err := json.Marshal(messages)
	if err == nil {
		err = json.Unmarshal(raw, &stored)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]core.Message{messages, stored} {
		var said []string
		for i, parts := range dialog.Read(list).Messages {
			if list[i].Role == core.RoleUser && parts[0].Passages[0].Kind == dialog.KindUser {
				said = append(said, list[i].ID)
			}
		}
		if !slices.Equal(said, []string{"u1", "u4"}) {
			t.Errorf("read as the user's: %q", said)
		}
	}
}
