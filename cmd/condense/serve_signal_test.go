//go:build unix

package main

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// An answered is the end of an agent's request.
type answered struct {
	text string
	err  error
}

// stalling starts a gateway before a vendor that stops in the middle of its first answer until
// release is closed, and an agent that waits for it.
func stalling(t *testing.T, env ...string) (cmd *exec.Cmd, admin, base string, log *testkit.Log, release chan struct{}, end chan answered) {
	t.Helper()
	testkit.Process(t)
	release, begun := make(chan struct{}), make(chan struct{})
	var stalled atomic.Bool
	vendor := httptest.NewServer(upstream.New(upstream.Options{
		Script: []upstream.Step{{Text: "Done."}},
		Fault: func(upstream.Record) *upstream.Fault {
			if !stalled.CompareAndSwap(false, true) {
				return nil
			}
			close(begun)
			return &upstream.Fault{At: 200, Stall: release}
		},
	}))
	t.Cleanup(vendor.Close)
	cmd = exec.CommandContext(t.Context(), "condense", "serve", "--listen", "127.0.0.1:0", "--store", "memory", "--upstream", "anthropic="+vendor.URL)
	cmd.Dir = t.TempDir()
	cmd.Env = append(append(os.Environ(), "HOME="+cmd.Dir, "XDG_CONFIG_HOME="+cmd.Dir), env...)
	log = new(testkit.Log)
	cmd.Stderr = log
	lines := bufio.NewScanner(testkit.Start(t, cmd))
	for range 2 {
		if !lines.Scan() {
			t.Fatal(log)
		}
		if m := listens.FindStringSubmatch(lines.Text()); m != nil {
			admin = m[2]
		}
	}
	_, at, _ := strings.Cut(lines.Text(), "ANTHROPIC_BASE_URL=")
	at, _, _ = strings.Cut(at, " ")
	end = make(chan answered, 1)
	go func() {
		c := &upstream.Client{
			URL: at, API: upstream.Messages, Model: "claude-opus-5", Stream: true, Header: http.Header{"X-Api-Key": {"sk-dummy"}},
			HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		}
		text, err := c.Say(t.Context(), "Please wait.")
		end <- answered{text, err}
	}()
	<-begun
	return cmd, admin, at, log, release, end
}

func TestFirstSignalLetsAnswersEnd(t *testing.T) {
	cmd, admin, base, log, release, end := stalling(t, "CONDENSE_SERVE__DRAIN_DELAY=200ms")
	if got := statusOf(t, admin+"/readyz"); got != http.StatusOK {
		t.Errorf("ready: %d", got)
	}
	interrupt(t, cmd, syscall.SIGTERM)
	testkit.Eventually(t, "the gateway says that it ends", func() bool { return strings.Contains(log.String(), "ending: ") })
	// Balancers and those who look after it can ask it to the end.
	if ready, healthy := statusOf(t, admin+"/readyz"), statusOf(t, admin+"/healthz"); ready != http.StatusServiceUnavailable || healthy != http.StatusOK {
		t.Errorf("while answers end: ready %d, healthy %d", ready, healthy)
	}
	testkit.Eventually(t, "the address is closed", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(release)
	if got := <-end; got.err != nil || got.text != "Done." {
		t.Errorf("the answer in progress: %+v\n%s", got, log)
	}
	wantExit(t, cmd, 0)
	if strings.Contains(log.String(), "were cut") {
		t.Error(log)
	}
}

// In the delay after the signal, the gateway is not ready, and new requests are served, each as the last of its
// connection.
func TestDrainDelayServesNewRequests(t *testing.T) {
	cmd, admin, base, _, release, end := stalling(t, "CONDENSE_SERVE__DRAIN_DELAY=1h")
	interrupt(t, cmd, syscall.SIGTERM)
	testkit.Eventually(t, "the gateway is not ready any more", func() bool { return statusOf(t, admin+"/readyz") == http.StatusServiceUnavailable })
	c := &upstream.Client{URL: base, API: upstream.Messages, Model: "claude-opus-5", Stream: true}
	if text, err := c.Say(t.Context(), "Hello."); err != nil || text != "Done." {
		t.Errorf("a new request: %q, %v", text, err)
	}
	res, err := http.Get(base + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	if _ = res.Body.Close(); !res.Close {
		t.Error("the client may use the connection again")
	}
	close(release)
	if got := <-end; got.err != nil {
		t.Errorf("the answer in progress: %+v", got)
	}
	interrupt(t, cmd, syscall.SIGTERM)
	wantExit(t, cmd, 143)
}

func statusOf(t *testing.T, url string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestDrainCutsAnswers(t *testing.T) {
	cmd, _, _, log, release, end := stalling(t, "CONDENSE_SERVE__DRAIN=100ms")
	defer close(release)
	interrupt(t, cmd, syscall.SIGTERM)
	if got := <-end; got.err == nil {
		t.Errorf("the answer ended: %+v", got)
	}
	wantExit(t, cmd, 0)
	if !strings.Contains(log.String(), "answers in progress were cut") {
		t.Error(log)
	}
}

func TestSecondSignalCutsAnswersAtOnce(t *testing.T) {
	cmd, _, _, log, release, end := stalling(t, "CONDENSE_SERVE__DRAIN=1h")
	defer close(release)
	interrupt(t, cmd, syscall.SIGINT)
	testkit.Eventually(t, "the gateway says that it ends", func() bool { return strings.Contains(log.String(), "ending: ") })
	interrupt(t, cmd, syscall.SIGINT)
	if got := <-end; got.err == nil {
		t.Errorf("the answer ended: %+v", got)
	}
	wantExit(t, cmd, 130)
}
