//go:build editor

// Package editortest tries the schema in the language server that editors use for YAML.
// It needs a program that is not Go, and therefore a build tag:
//
//	npm install --prefix DIR yaml-language-server@1.25.0
//	YAML_LANGUAGE_SERVER=DIR/node_modules/.bin/yaml-language-server go test -tags editor ./config/internal/editortest
package editortest_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/config"
)

// A server is a language server spoken to over its standard input and output.
type server struct {
	t    *testing.T
	in   io.Writer
	id   int
	msgs chan message
}

type message struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func start(t *testing.T) *server {
	t.Helper()
	program := cmp.Or(os.Getenv("YAML_LANGUAGE_SERVER"), "yaml-language-server")
	cmd := exec.CommandContext(t.Context(), program, "--stdio")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, in: in, msgs: make(chan message, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.msgs)
		s.receive(bufio.NewReader(out))
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		<-done
		_ = cmd.Wait() // killed
	})
	return s
}

func (s *server) receive(r *bufio.Reader) {
	for {
		header, err := textproto.NewReader(r).ReadMIMEHeader()
		if err != nil {
			return
		}
		n, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			return
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		var m message
		if json.Unmarshal(body, &m) == nil {
			s.msgs <- m
		}
	}
}

func (s *server) send(v map[string]any) {
	s.t.Helper()
	v["jsonrpc"] = "2.0"
	body, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(s.in, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		s.t.Fatal(err)
	}
}

// wait returns the first message that is wanted; requests of the server are answered.
func (s *server) wait(what string, wanted func(message) bool) message {
	s.t.Helper()
	timeout := time.After(60 * time.Second)
	for {
		select {
		case m, ok := <-s.msgs:
			if !ok {
				s.t.Fatalf("the server ended before %s", what)
			}
			if m.ID != nil && m.Method != "" {
				var result any
				if m.Method == "workspace/configuration" {
					result = []any{
						map[string]any{"validate": true, "completion": true, "hover": true, "schemaStore": map[string]any{"enable": false}},
						nil, nil, nil, nil,
					}
				}
				s.send(map[string]any{"id": *m.ID, "result": result})
				continue
			}
			if wanted(m) {
				return m
			}
		case <-timeout:
			s.t.Fatalf("no %s within a minute", what)
		}
	}
}

func (s *server) call(method string, params any) json.RawMessage {
	s.t.Helper()
	s.id++
	id := s.id
	s.send(map[string]any{"id": id, "method": method, "params": params})
	m := s.wait("answer to "+method, func(m message) bool { return m.ID != nil && *m.ID == id })
	if m.Error != nil {
		s.t.Fatalf("%s: %s", method, m.Error)
	}
	return m.Result
}

// open shows the server a text and returns the messages of its diagnostics.
func (s *server) open(uri, text string) []string {
	s.t.Helper()
	s.send(map[string]any{"method": "textDocument/didOpen", "params": map[string]any{
		"textDocument": map[string]any{"uri": uri, "languageId": "yaml", "version": 1, "text": text},
	}})
	m := s.wait("diagnostics", func(m message) bool {
		return m.Method == "textDocument/publishDiagnostics" && strings.Contains(string(m.Params), filepath.Base(uri))
	})
	var p struct {
		Diagnostics []struct {
			Message string
			Range   struct{ Start struct{ Line, Character int } }
		}
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, d := range p.Diagnostics {
		out = append(out, fmt.Sprintf("%d:%d %s", d.Range.Start.Line+1, d.Range.Start.Character+1, d.Message))
	}
	return out
}

// complete returns the labels offered at the mark, a vertical bar.
func (s *server) complete(uri, text string) []string {
	s.t.Helper()
	before, after, _ := strings.Cut(text, "¦")
	s.open(uri, before+after)
	result := s.call("textDocument/completion", map[string]any{
		"textDocument": map[string]any{"uri": uri},
		"position": map[string]any{
			"line":      strings.Count(before, "\n"),
			"character": len(before) - 1 - strings.LastIndex(before, "\n"),
		},
	})
	var list struct{ Items []struct{ Label string } }
	if err := json.Unmarshal(result, &list); err != nil {
		s.t.Fatalf("%v: %s", err, result)
	}
	var labels []string
	for _, i := range list.Items {
		labels = append(labels, i.Label)
	}
	return labels
}

func TestEditor(t *testing.T) {
	dir := t.TempDir()
	schema, err := config.Schema([]config.StrategyDoc{
		{Name: "smart", Doc: "Passes.", Settings: []config.SettingDoc{
			{Name: "preset", Type: "string", Doc: "A set of passes.", Enum: []string{"balanced", "lossless"}},
			{Name: "keep_first", Type: "integer", Doc: "Messages that stay."},
		}},
		{Name: "native", Doc: "A model writes a summary."},
	}, config.Options{Builtin: []string{"native", "smart"}, Tokenizers: []string{"cl100k_base", "o200k_base"}})
	if err != nil {
		t.Fatal(err)
	}
	schemaFile := filepath.Join(dir, "condense.schema.json")
	if err := os.WriteFile(schemaFile, schema, 0o600); err != nil {
		t.Fatal(err)
	}
	uri := func(name string) string {
		return (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(dir, name))}).String()
	}
	s := start(t)
	s.call("initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": uri(""),
		"capabilities": map[string]any{
			"workspace":    map[string]any{"configuration": true},
			"textDocument": map[string]any{"completion": map[string]any{"completionItem": map[string]any{"snippetSupport": false}}},
		},
	})
	s.send(map[string]any{"method": "initialized", "params": map[string]any{}})

	if got := s.open(uri("init.yaml"), config.Init("condense.schema.json", config.Options{})); len(got) != 0 {
		t.Errorf("the file that init writes: %q", got)
	}
	line := "# yaml-language-server: $schema=condense.schema.json\n"
	diagnostics := []struct{ name, text, want string }{
		{"misspelt", "thresholdd: 70\n", "2:1 Property thresholdd is not allowed"},
		{"low", "threshold: 3\n", "2:12 "},
		{"profile", "profiles:\n  code: {window: 1000, treshold: 70}\n", "3:24 Property treshold is not allowed"},
		{"strategy", "providers:\n  a: {strategy: smrt}\n", "3:17 Value is not accepted"},
		{"setting", "providers:\n  a: {strategy: smart, settings: {kepe: 1}}\n", "Property kepe is not allowed"},
		{"secret", "models:\n  a: {api: openai, api_key: x}\n", "Property api_key is not allowed"},
	}
	for _, d := range diagnostics {
		got := s.open(uri(d.name+".yaml"), line+d.text)
		if !slices.ContainsFunc(got, func(m string) bool { return strings.Contains(m, d.want) }) {
			t.Errorf("%s: got %q, want one with %q", d.name, got, d.want)
		}
	}
	completions := []struct {
		name, text string
		want       []string
	}{
		{"top", "thr¦", []string{"threshold"}},
		{"chain", "chain:\n  - ¦", []string{"native", "smart", "roo_half"}},
		{"strategies", "providers:\n  tidy:\n    strategy: ¦", []string{"native", "smart"}},
		{"settings", "providers:\n  tidy:\n    strategy: smart\n    settings:\n      ¦", []string{"preset", "keep_first"}},
		{"value of a setting", "providers:\n  tidy:\n    strategy: smart\n    settings:\n      preset: ¦", []string{"balanced", "lossless"}},
		{"keys of a profile", "profiles:\n  code:\n    window: 1000\n    ¦", []string{"threshold", "chain", "extends"}},
		{"models", "profiles:\n  code:\n    model: ¦", []string{"anthropic/claude-sonnet-4-5"}},
		{"tokenizers", "tokenizer: ¦", []string{"cl100k_base", "o200k_base"}},
	}
	for i, c := range completions {
		got := s.complete(uri(fmt.Sprintf("complete%d.yaml", i)), line+c.text)
		for _, want := range c.want {
			if !slices.Contains(got, want) {
				t.Errorf("%s: %q is not offered: %.20q", c.name, want, got)
			}
		}
	}
}
