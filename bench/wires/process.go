//go:build unix

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/condensehq/condense/internal/testkit"
)

// A process is a program that runs, with all that it starts.
type process struct {
	cmd *exec.Cmd
	log *testkit.Log
	url string // of condense serve
}

// last returns the end of a process's output, in one line.
func (p *process) last() string {
	const most = 300
	s := strings.Join(strings.Fields(p.log.String()), " ")
	return strings.ReplaceAll(s[max(0, len(s)-most):], "|", "¦")
}

func start(ctx context.Context, dir string, env []string, program string, args ...string) (*process, error) {
	p := &process{log: &testkit.Log{}}
	p.cmd = exec.CommandContext(ctx, program, args...) //nolint:gosec // the programs that are tried
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = dir, env, p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
	p.cmd.WaitDelay = 5 * time.Second // for its children that hold our pipe
	return p, p.cmd.Start()
}

// stop ends a process and its children.
func (p *process) stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait() // it may have been waited for
}

var listens = regexp.MustCompile(`condense listens on (http://\S+) \(`)

// serve starts condense serve before a vendor.
func (b *bench) serve(ctx context.Context, dir, vendor string, s scenario) (*process, error) {
	program, err := filepath.Abs(b.condense)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(dir, "gateway")
	config := fmt.Sprintf("profiles: {small: {window: %d}}\nserve: {bedrock: {sign: %t}, observe: %t}\n", s.window, !s.observe, s.observe)
	if err := write(filepath.Join(home, ".config", "condense", "condense.yaml"), config); err != nil {
		return nil, err
	}
	args := []string{"serve", "--listen", "127.0.0.1:0", "--store", filepath.Join(home, "serve.db")}
	if s.recall {
		args = append(args, "--recall", "tool")
	}
	for _, name := range []string{"anthropic", "openai", "gemini", "vertex", "azure", "bedrock"} {
		args = append(args, "--upstream", name+"="+vendor)
	}
	p, err := start(ctx, home, []string{"HOME=" + home, keyID, secret, region}, program, args...)
	if err != nil {
		return nil, err
	}
	for range 600 {
		if m := listens.FindStringSubmatch(p.log.String()); m != nil {
			p.url = m[1]
			return p, nil
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // it waits for a process
	}
	defer p.stop()
	return nil, fmt.Errorf("condense serve does not listen: %s", p.last()) //nolint:err113 // for a person
}

// epochs is how often the gateway condensed.
func (p *process) epochs() int { return strings.Count(p.log.String(), "msg=epoch ") }
