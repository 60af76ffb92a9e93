package editor_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/testkit"
)

// A server is a language server with an editor's end of its standard input and output. It
// has no network and reads only files.
type server struct {
	t        *testing.T
	dir      string
	in       io.Writer
	id       int
	messages chan message
}

// A message is a request, an answer or a notification, of JSON-RPC.
type message struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// start starts the server with a folder open.
func start(t *testing.T, dir string) *server {
	t.Helper()
	testkit.Process(t)
	command := languageServer(t)
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	const nowhere = "http://127.0.0.1:9"
	cmd.Env = append(os.Environ(), "HTTP_PROXY="+nowhere, "HTTPS_PROXY="+nowhere, "http_proxy="+nowhere, "https_proxy="+nowhere)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := testkit.Start(t, cmd)
	s := &server{t: t, dir: dir, in: in, messages: make(chan message, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.messages)
		receive(bufio.NewReader(out), s.messages)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		<-done
		_ = cmd.Wait() // killed
	})
	s.call("initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": s.uri(""),
		"capabilities": map[string]any{"workspace": map[string]any{"configuration": true}},
	})
	s.send(map[string]any{"method": "initialized", "params": map[string]any{}})
	return s
}

func receive(r *bufio.Reader, to chan<- message) {
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
			to <- m
		}
	}
}

func (s *server) uri(file string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(s.dir, file))}).String()
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

// wait returns the first message that is wanted. Requests of the server are answered.
func (s *server) wait(what string, wanted func(message) bool) message {
	s.t.Helper()
	timeout := time.After(testkit.Patience(s.t))
	for {
		select {
		case m, ok := <-s.messages:
			switch {
			case !ok:
				s.t.Fatalf("the server ended before %s", what)
			case m.ID != nil && m.Method != "":
				s.answer(m)
			case wanted(m):
				return m
			}
		case <-timeout:
			s.t.Fatalf("no %s", what)
		}
	}
}

// answer sends the server the default settings of editors, without the store of schemas, which
// needs the network.
func (s *server) answer(m message) {
	s.t.Helper()
	var result any
	if m.Method == "workspace/configuration" {
		var p struct {
			Items []struct{ Section string }
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			s.t.Fatal(err)
		}
		list := make([]any, len(p.Items))
		for i, item := range p.Items {
			if item.Section == "yaml" {
				list[i] = map[string]any{"validate": true, "completion": true, "hover": true, "schemaStore": map[string]any{"enable": false}}
			}
		}
		result = list
	}
	s.send(map[string]any{"id": *m.ID, "result": result})
}

// request makes a request and decodes the result, unless into is nil.
func (s *server) request(method string, params, into any) {
	s.t.Helper()
	s.id++
	id := s.id
	s.send(map[string]any{"id": id, "method": method, "params": params})
	m := s.wait("answer to "+method, func(m message) bool { return m.ID != nil && *m.ID == id })
	if m.Error != nil {
		s.t.Fatalf("%s: %s", method, m.Error)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(m.Result, into); err != nil {
		s.t.Fatalf("%s: %v: %s", method, err, m.Result)
	}
}

// call makes a request and ignores the result.
func (s *server) call(method string, params any) { s.t.Helper(); s.request(method, params, nil) }

// open opens a text in the editor and returns its diagnostics, "line:column message".
func (s *server) open(file, text string) []string {
	s.t.Helper()
	s.send(map[string]any{"method": "textDocument/didOpen", "params": map[string]any{
		"textDocument": map[string]any{"uri": s.uri(file), "languageId": "yaml", "version": 1, "text": text},
	}})
	var p struct {
		URI         string
		Diagnostics []struct {
			Message string
			Range   struct{ Start struct{ Line, Character int } }
		}
	}
	s.wait("diagnostics", func(m message) bool {
		return m.Method == "textDocument/publishDiagnostics" && json.Unmarshal(m.Params, &p) == nil && p.URI == s.uri(file)
	})
	out := []string{}
	for _, d := range p.Diagnostics {
		out = append(out, fmt.Sprintf("%d:%d %s", d.Range.Start.Line+1, d.Range.Start.Character+1, d.Message))
	}
	return out
}

// at is the position of the cursor, a broken bar, in a text; whole is the text without it.
func (s *server) at(file, text string) (position map[string]any, whole string) {
	before, after, ok := strings.Cut(text, "¦")
	if !ok {
		s.t.Fatalf("no cursor in %q", text)
	}
	return map[string]any{
		"textDocument": map[string]any{"uri": s.uri(file)},
		"position": map[string]any{
			"line":      strings.Count(before, "\n"),
			"character": len(before) - 1 - strings.LastIndex(before, "\n"),
		},
	}, before + after
}

// complete returns the completions at the cursor.
func (s *server) complete(file, text string) []string {
	s.t.Helper()
	position, whole := s.at(file, text)
	s.open(file, whole)
	var list struct{ Items []struct{ Label string } }
	s.request("textDocument/completion", position, &list)
	var labels []string
	for _, i := range list.Items {
		labels = append(labels, i.Label)
	}
	return labels
}

// hover returns the hover text at the cursor.
func (s *server) hover(file, text string) string {
	s.t.Helper()
	position, whole := s.at(file, text)
	s.open(file, whole)
	var shown struct{ Contents struct{ Value string } }
	s.request("textDocument/hover", position, &shown)
	return shown.Contents.Value
}
