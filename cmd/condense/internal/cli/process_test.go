package cli_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/internal/testkit"
)

// asWriter makes the test binary a process that writes the file in this variable.
const asWriter = "CONDENSE_TEST_DISK_WRITER"

const size = 1 << 20

func TestMain(m *testing.M) {
	path := os.Getenv(asWriter)
	if path == "" {
		os.Exit(m.Run())
	}
	for i := byte(0); ; i++ {
		o, err := cli.OpenFile(path, 0o600)
		if err == nil {
			err = o.Write(bytes.Repeat([]byte{'a' + i%26}, size))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("written")
	}
}

// A program that is killed while it writes leaves the old file or the new one, whole.
func TestKilledWriterLeavesAWholeFile(t *testing.T) {
	t.Parallel()
	testkit.Process(t)
	path := filepath.Join(t.TempDir(), "file")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for kill := range 12 {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(os.Environ(), asWriter+"="+path)
		cmd.Stderr = os.Stderr
		out := testkit.Start(t, cmd)
		lines := bufio.NewScanner(out)
		for range 1 + kill%4 {
			if !lines.Scan() {
				t.Fatal("the writer ended by itself")
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) != size || !bytes.Equal(data, bytes.Repeat(data[:1], size)) {
			t.Fatalf("kill %d: the file has %d bytes, not all of one writing", kill, len(data))
		}
	}
}
