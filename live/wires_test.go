package live_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// wires are the clients of all APIs, each with the addresses that they need.
var wires = []upstream.Client{
	{API: upstream.Messages, Model: "claude-opus-5-5", Thinking: "adaptive"},
	{API: upstream.Chat, Model: "gpt-5.1"},
	{API: upstream.Responses, Model: "gpt-5.6", Thinking: "medium"},
	{API: upstream.Messages, Cloud: upstream.Vertex, Model: "claude-opus-5-5@20260801", Thinking: "adaptive"},
	{API: upstream.Messages, Cloud: upstream.Foundry, Model: "claude-opus-5-5", Thinking: "adaptive"},
	{API: upstream.Chat, Cloud: upstream.Azure, Model: "gpt-5.1"},
	{API: upstream.Gemini, Model: "gemini-3-pro-preview"},
	{API: upstream.Gemini, Cloud: upstream.Vertex, Model: "gemini-2.5-pro"},
	{API: upstream.Messages, Cloud: upstream.Bedrock, Model: "us.anthropic.claude-opus-5-5-v1:0", Thinking: "adaptive"},
	{API: upstream.Converse, Cloud: upstream.Bedrock, Model: "us.anthropic.claude-opus-5-5-v1:0", Thinking: "adaptive"},
}

// inferenceProfile is a model by its ARN, which has a slash.
const inferenceProfile = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-5-5-v1:0"

func nameOf(c *upstream.Client) string { return fmt.Sprint(c.API, c.Cloud, "/stream=", c.Stream) }

// onEveryUpstream sends all APIs to one server.
func onEveryUpstream(o *live.Options) {
	vendor := o.Upstreams.URLs["openai"]
	for _, name := range []string{"gemini", "vertex", "azure", "bedrock"} {
		o.Upstreams.URLs[name] = vendor
	}
}

// work is a loop with parallel calls and with calls that fail.
func work(n, size int) []upstream.Step {
	script := upstream.Loop(n, size, nil)
	for i := range script {
		switch {
		case len(script[i].Commands) == 0:
		case i%5 == 2:
			script[i].Commands = append(script[i].Commands, fmt.Sprint("missing-", i), script[i].Commands[0])
		case i%7 == 3:
			script[i].Commands = []string{fmt.Sprint("missing-", i)}
		}
	}
	return script
}

// picture is a user's message with an image, in each API.
func picture(api upstream.API, text string) map[string]any {
	data := base64.StdEncoding.EncodeToString(make([]byte, 9000))
	switch api {
	case upstream.Messages:
		return map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "text", "text": text},
			map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": data}},
		}}
	case upstream.Responses:
		return map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "input_text", "text": text}, map[string]any{"type": "input_image", "image_url": "data:image/png;base64," + data},
		}}
	case upstream.Gemini:
		return map[string]any{"role": "user", "parts": []any{
			map[string]any{"text": text}, map[string]any{"inlineData": map[string]any{"mimeType": "image/png", "data": data}},
		}}
	case upstream.Converse:
		return map[string]any{"role": "user", "content": []any{
			map[string]any{"text": text}, map[string]any{"image": map[string]any{"format": "png", "source": map[string]any{"bytes": data}}},
		}}
	case upstream.Chat:
	}
	return map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "text", "text": text}, map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64," + data}},
	}}
}

// works plays two tasks with a picture, and returns when the model has nothing more to do.
func (p *play) works(t *testing.T) {
	t.Helper()
	p.client.History = append(p.client.History, picture(p.client.API, "This is how it should look."))
	for _, text := range []string{task, "Go on."} {
		if _, err := p.client.Say(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}

// Every API: a loop of an agent that is several times as long as the window, with pictures, parallel calls and calls that fail. The
// vendor, as strict as the real one, refuses nothing, and the prefix breaks only where an epoch begins.
func TestEveryWire(t *testing.T) {
	t.Parallel()
	type loop struct{ window, calls, size int }
	for _, c := range wires {
		for _, stream := range []bool{false, true} {
			if testing.Short() && !stream {
				continue
			}
			loops := []loop{{window, 45, 2200}}
			if !testing.Short() && stream && (c.Cloud == "" || c.API == upstream.Converse) { // a cloud's messages are those of the API
				loops = append(loops, loop{60_000, 45, 12_000})
				if testkit.Night() {
					loops = append(loops, loop{60_000, 120, 9_000})
				}
			}
			for _, l := range loops {
				t.Run(fmt.Sprint(c.API, c.Cloud, "/stream=", stream, "/", l.calls, "x", l.size), func(t *testing.T) {
					t.Parallel()
					c := c
					c.Session, c.Stream = "s1", stream
					p := playIn(t, l.window, upstream.Options{Window: l.window, Script: work(l.calls, l.size)}, c, onEveryUpstream)
					p.works(t)
					p.check(t, 1)
				})
			}
		}
	}
}

// A gateway that only observes sends every byte as it came.
func TestEveryWireObserved(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for i, c := range wires {
		stream := i%2 == 0 // an answer's form is nothing to a gateway that changes none
		t.Run(fmt.Sprint(c.API, c.Cloud, "/stream=", stream), func(t *testing.T) {
			t.Parallel()
			c := c
			c.Stream = stream
			p := newPlay(t, upstream.Options{Window: 1_000_000, Script: work(45, 2200)}, c, func(o *live.Options) {
				onEveryUpstream(o)
				o.Observe = true
			})
			p.client.History = append(p.client.History, picture(p.client.API, task))
			for calls := true; calls; {
				var err error
				if _, calls, err = p.client.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				records := p.vendor.Records()
				if sum := sha256.Sum256(p.client.Body); records[len(records)-1].Sum != hex.EncodeToString(sum[:]) {
					t.Fatalf("request %d arrived changed", len(records))
				}
			}
			if s := p.Stats(); s.Observed == nil || s.Observed.Epochs == 0 || len(s.Errors) > 0 {
				t.Errorf("nothing was observed: %+v", s.Observed)
			}
		})
	}
}
