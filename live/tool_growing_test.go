package live_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/live"
)

// A recaller is a model that recalls before some of its answers. It knows which, and wants the pair in front of each of them for as
// long as the answer itself is sent.
type recaller struct {
	vendor   *growingVendor
	recalled map[string]bool   // by the names of answers
	led      map[string]string // the answer that a pair is in front of
	requests int
	fault    error
	log      bytes.Buffer
}

var (
	answerName = regexp.MustCompile(`\b(?:ans|call)\d+`)
	pair       = regexp.MustCompile(`"id":"recall\d+"`)
)

// answer returns the content of an answer.
func (m *recaller) answer(body []byte) (json.RawMessage, error) {
	var r struct {
		Messages []json.RawMessage
		Tools    []struct{ Name string }
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	m.requests++
	// An epoch may leave out a pair and keep what followed it, or keep a pair, whose result is new, and leave out what followed it.
	condensed := !bytes.HasPrefix(r.Messages[0], []byte(`{"role":"user","content":[{"type":"text","text":"Do tok`))
	bare, pairs, after, last := r.Messages[:0:0], 0, false, ""
	there := func(answer string) bool {
		return slices.ContainsFunc(r.Messages, func(raw json.RawMessage) bool {
			return bytes.HasPrefix(raw, []byte(`{"role":"assistant"`)) && string(answerName.Find(raw)) == answer
		})
	}
	for i := 0; i < len(r.Messages); i++ {
		raw := r.Messages[i]
		if pair.Match(raw) && bytes.HasPrefix(raw, []byte(`{"role":"assistant"`)) {
			if i+1 == len(r.Messages) || !bytes.Contains(r.Messages[i+1], []byte(`"tool_use_id":"recall`)) {
				return nil, errors.New("a recall without its result")
			}
			i, after, pairs, last = i+1, true, pairs+1, string(pair.Find(raw))
			continue
		}
		if bytes.HasPrefix(raw, []byte(`{"role":"assistant"`)) {
			if first := answerName.Find(raw); first != nil && m.recalled[string(first)] != after && (!condensed || after && there(m.led[last])) {
				return nil, fmt.Errorf("message %d, %s: recalled before %v, in the request %v", i, first, m.recalled[string(first)], after)
			}
		}
		bare, after = append(bare, raw), false
	}
	has := false
	for _, t := range r.Tools {
		has = has || t.Name == recallName
	}
	without := body
	if pairs > 0 {
		at := bytes.Index(body, []byte(`"messages":`)) + len(`"messages":`)
		without = append(append(append([]byte(nil), body[:at]...), joined(bare)...), '}')
	}
	if has && !after && m.requests%3 == 0 {
		if err := m.vendor.Check(without); err != nil { // a vendor refuses before its model can recall
			return nil, err
		}
		thought := ""
		if bytes.Contains(body, []byte(`"thinking":{"type":"enabled"}`)) {
			thought = `{"type":"thinking","thinking":"","signature":"free"},`
		}
		return json.RawMessage(fmt.Sprintf(`[`+thought+`{"type":"tool_use","id":"recall%d","name":%q,"input":{"message":1,"head":2}}]`, m.requests, recallName)), nil
	}
	a, err := m.vendor.Answer(without)
	if err != nil {
		return nil, err
	}
	if after {
		m.recalled[string(answerName.Find(a))] = true
		m.led[last] = string(answerName.Find(a))
	}
	return bytes.TrimSuffix(bytes.TrimPrefix(a, []byte(`{"role":"assistant","content":`)), []byte("}")), nil
}

func joined(list []json.RawMessage) []byte {
	var parts [][]byte
	for _, raw := range list {
		parts = append(parts, raw)
	}
	return append(append([]byte("["), bytes.Join(parts, []byte(","))...), ']')
}

// TestRecallToolGrowing sends what generated clients do, with restarts, to a model that recalls: pairs are where they were, in every
// branch,
// and the rules of [TestL2L3L5L6Growing] hold for the rest.
func TestRecallToolGrowing(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const small = 4_000 // tokens
	host, err := condense.Open(t.Context(), withWindow(small))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}()
	var model *recaller
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		content, err := model.answer(body)
		model.fault = errors.Join(model.fault, err)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, err.Error())
			return
		}
		stop := "end_turn"
		if bytes.Contains(content, []byte(`"tool_use"`)) {
			stop = "tool_use"
		}
		fmt.Fprintf(w, `{"id":"msg","type":"message","role":"assistant","model":"m","stop_reason":%q,"usage":{"input_tokens":%d,"output_tokens":10},"content":%s}`, stop, len(body)/4, content)
	}))
	defer upstream.Close()
	epochs, answered, runs, dir := 0, 0, 0, t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		runs++
		model = &recaller{vendor: &growingVendor{Tool: true}, recalled: map[string]bool{}, led: map[string]string{}}
		faults := grow(t, host, &live.Options{
			Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": upstream.URL}},
			Store:     live.Store{Path: filepath.Join(dir, fmt.Sprint(runs, ".db"))},
			Reports:   live.Reports{Logger: slog.New(slog.NewTextHandler(&model.log, &slog.HandlerOptions{Level: slog.LevelWarn}))},
			Recall:    live.Recall{Tool: true},
		}, model.vendor, func(status int, text []byte) growingAnswer {
			if status != http.StatusOK {
				t.Fatalf("status %d: %s", status, text)
			}
			if bytes.Contains(text, []byte(recallName)) {
				t.Fatalf("the client sees the tool: %s", text)
			}
			_, content, _ := strings.Cut(string(text), `"content":`)
			return growingAnswer(`{"role":"assistant","content":` + content)
		})
		if model.vendor.Past > 0 {
			// Without the tool, a model thought before an answer to a request that another branch sent with it: the two look the
			// same, and only the vendor can tell. It costs one more request.
			delete(faults, "retry_thinking")
		}
		if len(faults) > 0 {
			t.Errorf("faults: %v: %v\n%s", faults, model.fault, &model.log)
		}
		epochs, answered = epochs+model.vendor.Epochs, answered+len(model.recalled)
	})
	t.Logf("%d epochs, %d recalls", epochs, answered)
	if runs >= 20 && !t.Failed() && (epochs == 0 || answered == 0) {
		t.Error("no epoch or no recall: the runs test too little")
	}
	http.DefaultClient.CloseIdleConnections()
}
