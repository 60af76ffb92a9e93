package live_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// alone runs a gateway until it is killed: this program as another process.
func alone(vendor, store string) {
	err := func() error {
		h, err := condense.Open(context.Background(), ingestOf(os.Getenv("CONDENSE_LIVE_INGEST")))
		if err != nil {
			return err
		}
		o := &live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": vendor, "openai": vendor}}, Store: live.Store{Path: store}}
		if os.Getenv("CONDENSE_LIVE_TOOL") != "" {
			withTool(o)
			o.Epoch = live.EpochOptions{Risk: 100, Target: 14, MinSize: 3500} // conversations of tests are short
		}
		g, err := live.New(h, o)
		if err != nil {
			return err
		}
		fmt.Println(httptest.NewServer(g).URL)
		select {}
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// startAlone starts the process and returns the gateway's address and what kills it.
func startAlone(t *testing.T, vendor, store string, env ...string) (url string, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(append(os.Environ(), "CONDENSE_LIVE_VENDOR="+vendor, "CONDENSE_LIVE_STORE="+store), env...)
	cmd.Stderr = os.Stderr
	line, err := bufio.NewReader(testkit.Start(t, cmd)).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// The process is killed after it has sent a condensed view and before the answer. The client sends its
// request again, and the next process sends the same bytes: it was on disk before.
func TestKilledBetweenEpochAndAnswer(t *testing.T) {
	testkit.Process(t)
	var last atomic.Int64
	epoch, hold := make(chan struct{}), make(chan struct{})
	var killed atomic.Bool
	vendor := upstream.New(upstream.Options{Window: window, Script: agentLoop, Fault: func(r upstream.Record) *upstream.Fault {
		if before := last.Swap(int64(r.Tokens)); int64(r.Tokens) < before/2 && killed.CompareAndSwap(false, true) {
			close(epoch)
			return &upstream.Fault{Hold: hold}
		}
		return nil
	}})
	v := httptest.NewServer(vendor)
	defer v.Close()
	defer close(hold)
	store := filepath.Join(t.TempDir(), "live.db")
	url, kill := startAlone(t, v.URL, store)
	first := kill
	c := claude("s")
	c.URL, c.HTTP = url, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		<-epoch
		first()
	}()
	if _, err := c.Say(t.Context(), task); err == nil {
		t.Fatal("the loop ended without an epoch")
	}
	url, kill = startAlone(t, v.URL, store)
	defer kill()
	c.URL = url
	seen := len(vendor.Records())
	for calls := true; calls; {
		var err error
		if _, calls, err = c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	records := vendor.Records()
	if before, after := messagesOf(t, records[seen-1].Body), messagesOf(t, records[seen].Body); len(before) != len(after) || !bytes.Equal(before[0], after[0]) || !bytes.Equal(before[len(before)/2], after[len(after)/2]) {
		t.Error("after the restart another view was sent")
	}
	for _, r := range vendor.Refusals() {
		t.Errorf("refused: %s: %s", r.Rule, r.Error)
	}
	epochs := 0
	for i := 1; i < len(records); i++ {
		if records[i].Tokens < records[i-1].Tokens/2 {
			epochs++
		}
	}
	if got := vendor.Breaks(); len(got) > epochs {
		t.Errorf("%d breaks of the prefix in %d epochs: %v", len(got), epochs, got)
	}
}
