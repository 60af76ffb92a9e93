package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
)

// fakeAgent is a program that wrap runs in tests. It reports the signals that reach it, and does what
// its standard input says: "ask" sends a request as an SDK does, "exit N", "stop" stops the process.
// Anything else is repeated.
func fakeAgent() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, watched...)
	go func() {
		for s := range signals {
			fmt.Println("got " + name(s))
		}
	}()
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		switch verb {
		case "ask":
			fmt.Println(ask(os.Getenv("ANTHROPIC_BASE_URL"), rest))
		case "exit":
			code, err := strconv.Atoi(rest)
			if err != nil {
				panic(err)
			}
			os.Exit(code)
		case "stop":
			stopItself()
			fmt.Println("continued")
		default:
			fmt.Println("repeated " + lines.Text())
		}
	}
}

func ask(base, text string) string {
	body := `{"model": "claude-sonnet-4-5", "max_tokens": 100, "tools": [{"name": "Bash", "input_schema": {"type": "object"}}], "messages": [{"role": "user", "content": "` + text + `"}]}`
	r, err := http.NewRequest(http.MethodPost, base+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.Header.Set("X-Api-Key", "sk-ant-test")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return answer.Status + " " + string(got)
}
