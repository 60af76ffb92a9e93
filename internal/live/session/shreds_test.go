package session_test

import (
	"testing"

	"github.com/condensehq/condense/internal/live/session"
)

// Shreds have each part of a message, as its JSON is and as it reads, and no text of another script, digits or signs that it has not.
func TestShreds(t *testing.T) {
	t.Parallel()
	s := make(session.Shreds, 1<<9)
	s.Add([]byte(`{"role":"user","content":"\u043f\u0440\u0438\u0432\u0435\u0442 \"x=1\"\n\ud83e\udd98 \/etc 東京は晴れ 12.5%"}`))
	for text, want := range map[string]bool{
		"привет": true, "рив": true, `т "x`: true, "1\"\n🦘 /": true, "/etc": true, `\u043f\u0440`: true, "京は": true, "れ 1": true, "2.5%": true, "a\nb": true,
		"превет": false, "x=2;": false, "🐨🐨": false, "/usr": false, "大阪": false, "12,5%": false, "%%%": false, "rôle": false, "\\n\\n": false,
	} {
		if got := s.MayHave(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if !session.Shreds(nil).MayHave("anything") {
		t.Error("a set that was never made has not all")
	}
}
