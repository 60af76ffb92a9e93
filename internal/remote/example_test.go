package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/model"
)

// A program brings a vendor of its own: only what differs from others is to be said. Keys,
// streaming, deadlines, retries and errors are those of every client.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"word\": \"Hello\"}\n\ndata: {\"word\": \" there.\", \"last\": true, \"read\": 5, \"wrote\": 2}\n\n")
	}))
	defer server.Close()

	type piece struct {
		Word        string
		Last        bool
		Read, Wrote int
	}
	say := func(r *remote.Reply, data []byte) error {
		var p piece
		if err := json.Unmarshal(data, &p); err != nil {
			return err
		}
		r.Text.WriteString(p.Word)
		if p.Last {
			r.Ended, r.Done, r.Metered = true, true, true
			r.Usage.InputTokens, r.Usage.OutputTokens = p.Read, p.Wrote
		}
		return nil
	}
	ours := &remote.Vendor{
		BaseURL: "https://api.example.com", KeyEnv: "EXAMPLE_API_KEY", Path: "/say",
		Sign: func(header http.Header, key string) { header.Set("X-Key", key) },
		Body: func(p *model.Prompt, o *remote.Options, _ remote.Refused) ([]byte, error) {
			return json.Marshal(map[string]any{"model": o.ID, "system": p.System, "stream": true}) // and the messages
		},
		Event: func(r *remote.Reply, _ string, data []byte) error { return say(r, data) },
		Whole: say,
	}
	m, err := remote.New(ours, remote.Options{ID: "greeter-1", BaseURL: server.URL, Free: true})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := m.Generate(context.Background(), &model.Prompt{
		Messages: []core.Message{{Role: core.RoleUser, Parts: []core.Part{core.Text("Greet me.")}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text, answer.Usage.InputTokens, "read")
	// Output: Hello there. 5 read
}
