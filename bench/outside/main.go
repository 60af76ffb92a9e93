// Command outside writes published conversations with gold evidence in the form that condense compare evidence:FOLDER
// reads:
//
//	outside beam CHATS OUT FROM-TO        the folders FROM to TO of CHATS, such as chats/100K of BEAM
//	outside locomo FILE OUT FROM-TO       the conversations FROM to TO of locomo10.json, from 1
//	outside lost CONTEXT.json... OUT      contexts of Lost in Compaction, each with its _meta.json
//	outside anchors SESSION... OUT        sessions of coding agents, with the lines that their next edits quote
//
// and prints how well the search of condense finds the messages that answer the questions of such folders:
//
//	outside search FOLDER...
//
// A file in OUT is a conversation. Questions whose evidence is not a message of the conversation are left out.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
)

// A conversation is a file that is written.
type conversation struct {
	ID        string     `json:"id"`
	Messages  []message  `json:"messages"`
	Questions []question `json:"questions"`
}

type message = lab.GoldMessage

type question struct {
	ID       string   `json:"id"`
	Ability  string   `json:"ability"`
	Text     string   `json:"text,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
	Lines    []string `json:"lines,omitempty"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "outside:", err)
		os.Exit(2) //nolint:forbidigo // it is main
	}
}

func run(args []string) error {
	if len(args) > 1 && args[0] == "search" {
		return searched(args[1:])
	}
	if len(args) < 3 {
		return errors.New("want beam CHATS OUT FROM-TO, locomo FILE OUT FROM-TO, lost CONTEXT.json... OUT anchors SESSION... OUT or search FOLDER...")
	}
	if of := map[string]func(name, out string) error{"lost": lost, "anchors": anchors}[args[0]]; of != nil {
		for _, name := range args[1 : len(args)-1] {
			if err := of(name, args[len(args)-1]); err != nil {
				return err
			}
		}
		return nil
	}
	var from, to int
	if _, err := fmt.Sscanf(args[len(args)-1], "%d-%d", &from, &to); err != nil || len(args) != 4 {
		return fmt.Errorf("%s: want a source, a folder to write to, and FROM-TO", args[0])
	}
	switch args[0] {
	case "beam":
		for n := from; n <= to; n++ {
			if err := beam(filepath.Join(args[1], strconv.Itoa(n)), args[2]); err != nil {
				return err
			}
		}
		return nil
	case "locomo":
		return locomo(args[1], args[2], from, to)
	}
	return fmt.Errorf("no source %q", args[0])
}

func read(name string, v any) error {
	data, err := os.ReadFile(name) //nolint:gosec // the user names the files
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// write writes c with the evidence that is a message of it, each once.
func write(folder string, c conversation) error {
	known := map[string]bool{}
	for _, m := range c.Messages {
		known[m.ID] = true
	}
	for i := range c.Questions {
		q := &c.Questions[i]
		var ids []string
		for _, id := range q.Evidence {
			if known[id] && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		q.Evidence = ids
	}
	all := len(c.Questions)
	c.Questions = slices.DeleteFunc(c.Questions, func(q question) bool { return len(q.Evidence)+len(q.Lines) == 0 })
	_, _ = fmt.Fprintf(os.Stdout, "%s: %d messages, %d of %d questions\n", c.ID, len(c.Messages), len(c.Questions), all)
	data, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o750); err != nil { //nolint:gosec // the user names the folder
		return err
	}
	return os.WriteFile(filepath.Join(folder, filepath.Base(c.ID)+".json"), append(data, '\n'), 0o600) //nolint:gosec // a name in that folder
}

func beam(folder, out string) error {
	var batches []struct {
		Turns [][]struct {
			ID      int       `json:"id"`
			Role    core.Role `json:"role"`
			Time    string    `json:"time_anchor"`
			Content string    `json:"content"`
		} `json:"turns"`
	}
	var probing map[string][]struct {
		Question string `json:"question"`
		Source   any    `json:"source_chat_ids"` // numbers, in lists or in lists by subject
	}
	err := errors.Join(read(filepath.Join(folder, "chat.json"), &batches), read(filepath.Join(folder, "probing_questions", "probing_questions.json"), &probing))
	if err != nil {
		return err
	}
	c := conversation{ID: "beam-" + filepath.Base(folder)}
	for _, b := range batches {
		for _, turn := range b.Turns {
			for _, m := range turn {
				if strings.TrimSpace(m.Content) != "" {
					c.Messages = append(c.Messages, message{ID: strconv.Itoa(m.ID), Role: m.Role, Time: m.Time, Text: m.Content})
				}
			}
		}
	}
	for _, ability := range sorted(probing) {
		for i, q := range probing[ability] {
			c.Questions = append(c.Questions, question{ID: fmt.Sprintf("%s-%d", ability, i+1), Ability: ability, Text: q.Question, Evidence: numbers(q.Source)})
		}
	}
	return write(out, c)
}

// numbers returns all numbers in v as text.
func numbers(v any) []string {
	switch v := v.(type) {
	case float64:
		return []string{strconv.Itoa(int(v))}
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, numbers(e)...)
		}
		return out
	case map[string]any:
		var out []string
		for _, k := range sorted(v) {
			out = append(out, numbers(v[k])...)
		}
		return out
	}
	return nil
}

func sorted[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// abilities are the categories of LoCoMo's questions.
var abilities = map[int]string{1: "several turns", 2: "time", 3: "inference", 4: "one turn", 5: "adversarial"}

var dialogueID = regexp.MustCompile(`D\d+:\d+`)

func locomo(name, out string, from, to int) error {
	var samples []struct {
		ID           string                     `json:"sample_id"`
		Conversation map[string]json.RawMessage `json:"conversation"`
		Questions    []struct {
			Question string   `json:"question"`
			Evidence []string `json:"evidence"`
			Category int      `json:"category"`
		} `json:"qa"`
	}
	if err := read(name, &samples); err != nil {
		return err
	}
	if from < 1 || to > len(samples) {
		return fmt.Errorf("%s has the conversations 1 to %d", name, len(samples))
	}
	for _, s := range samples[from-1 : to] {
		c := conversation{ID: s.ID}
		text := func(key string) string {
			var v string
			_ = json.Unmarshal(s.Conversation[key], &v)
			return v
		}
		for n := 1; ; n++ {
			session := "session_" + strconv.Itoa(n)
			if s.Conversation[session+"_date_time"] == nil && s.Conversation[session] == nil {
				break
			}
			var turns []struct {
				Speaker string `json:"speaker"`
				ID      string `json:"dia_id"`
				Text    string `json:"text"`
				Caption string `json:"blip_caption"`
			}
			if raw := s.Conversation[session]; raw != nil {
				if err := json.Unmarshal(raw, &turns); err != nil {
					return fmt.Errorf("%s, %s: %w", s.ID, session, err)
				}
			}
			for _, t := range turns {
				m := message{ID: t.ID, Role: "user", Time: text(session + "_date_time"), Session: session, Text: t.Speaker + ": " + t.Text}
				if t.Speaker != text("speaker_a") {
					m.Role = "assistant"
				}
				if t.Caption != "" {
					m.Text += " (shares " + t.Caption + ")"
				}
				c.Messages = append(c.Messages, m)
			}
		}
		for i, q := range s.Questions {
			c.Questions = append(c.Questions, question{ID: strconv.Itoa(i + 1), Ability: abilities[q.Category], Text: q.Question, Evidence: dialogueID.FindAllString(strings.Join(q.Evidence, " "), -1)})
		}
		if err := write(out, c); err != nil {
			return err
		}
	}
	return nil
}

// lost writes a context of Lost in Compaction. The evidence of a fact is the first message of its session that has
// all of its keywords: a message of the assistant if the fact is the assistant's, else of the user, if there is one.
// A fact in the summary at the beginning of the context has none.
func lost(name, out string) error {
	var messages []struct {
		Role    core.Role `json:"role"`
		Content string    `json:"content"`
	}
	var meta struct {
		Facts []struct {
			ID        string   `json:"fact_id"`
			Question  string   `json:"question"`
			Type      string   `json:"question_type"`
			Keywords  []string `json:"keywords"`
			Start     int      `json:"message_start"`
			End       int      `json:"message_end"`
			Compacted bool     `json:"compacted"`
		} `json:"facts"`
	}
	base := strings.TrimSuffix(name, ".json")
	if err := errors.Join(read(name, &messages), read(base+"_meta.json", &meta)); err != nil {
		return err
	}
	c := conversation{ID: filepath.Base(base)}
	for i, m := range messages {
		if strings.TrimSpace(m.Content) != "" {
			c.Messages = append(c.Messages, message{ID: strconv.Itoa(i), Role: m.Role, Text: m.Content})
		}
	}
	for _, f := range meta.Facts {
		q := question{ID: f.ID, Ability: f.Type, Text: f.Question}
		byTeller := false
		for i := f.Start; i <= f.End && i < len(messages) && !f.Compacted && len(f.Keywords) > 0 && !byTeller; i++ {
			text := strings.ToLower(messages[i].Content)
			if slices.ContainsFunc(f.Keywords, func(k string) bool { return !strings.Contains(text, strings.ToLower(k)) }) {
				continue
			}
			byTeller = (messages[i].Role == "assistant") == strings.Contains(f.Type, "assistant")
			if q.Evidence == nil || byTeller {
				q.Evidence = []string{strconv.Itoa(i)}
			}
		}
		c.Questions = append(c.Questions, q)
	}
	return write(out, c)
}
