package history_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/testkit"
)

// asWriter makes the test binary a process that writes to the journal that it names.
const asWriter = "CONDENSE_TEST_WRITER"

func TestMain(m *testing.M) {
	testkit.Covered()
	path := os.Getenv(asWriter)
	if path == "" {
		os.Exit(m.Run())
	}
	if err := write(path, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write opens the journal times over and writes a few records each time, waiting for its
// turn. It says each record on standard output once it was accepted.
func write(path, name, times string) error {
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	for k := 0; n < 0 || k < n; {
		f, _, err := history.Open(path)
		if errors.Is(err, history.ErrInUse) {
			continue
		}
		if err != nil {
			return err
		}
		id := fmt.Sprintf("%s-%d-%d", name, os.Getpid(), k)
		steps := []string{
			"append " + id + "a " + id + "b",
			"condense " + id + "X hide " + id + "a; insert " + id + "S after " + id + "a",
			"undo " + id + "X",
			"rewind " + id + "a",
			"undo-rewind",
			"append " + id + "c",
			"rewind " + id + "b",
		}
		for _, step := range steps {
			if err := do(&testing.T{}, f.Journal, step); err != nil {
				return fmt.Errorf("%s: %w", step, err)
			}
			fmt.Println(step)
		}
		if err := f.Close(); err != nil {
			return err
		}
		k++
	}
	return nil
}

func writer(t *testing.T, path, name string, times int) *exec.Cmd {
	t.Helper()
	testkit.Process(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, name, strconv.Itoa(times))
	cmd.Env = append(os.Environ(), asWriter+"="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// acknowledged checks that the journal holds every one of the steps, each as often as it
// was acknowledged, and that they had their effect.
func acknowledged(t *testing.T, path string, steps []string) {
	t.Helper()
	j, _, err := history.Decode(strings.NewReader(content(t, path)))
	if err != nil {
		t.Fatalf("the journal cannot be read: %v", err)
	}
	dropped := map[string]bool{} // so that they must be reachable, but not in the conversation
	for _, step := range steps {
		if id, ok := strings.CutSuffix(step, "b"); ok && strings.HasPrefix(id, "rewind ") {
			dropped[strings.TrimPrefix(id, "rewind ")+"c"] = true
		}
	}
	aside := map[string]bool{}
	for _, e := range j.Dropped() {
		aside[e.Original.ID] = true
	}
	active := map[string]bool{}
	for _, c := range j.Condensations() {
		active[c.ID] = true
	}
	for _, step := range steps {
		verb, rest, _ := strings.Cut(step, " ")
		switch verb {
		case "append":
			for id := range strings.FieldsSeq(rest) {
				if _, there := j.Message(id); there == aside[id] || there && dropped[id] {
					t.Errorf("message %s: in the conversation: %v, dropped: %v", id, there, aside[id])
				}
			}
		case "undo":
			if active[rest] {
				t.Errorf("the undo of %s was lost", rest)
			}
		}
	}
}

func TestTwoWritersAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	f, path := create(t)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	const times = 40
	one, two := writer(t, path, "one", times), writer(t, path, "two", times)
	var out [2]strings.Builder
	one.Stdout, two.Stdout = &out[0], &out[1]
	if err := errors.Join(one.Start(), two.Start()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(one.Wait(), two.Wait()); err != nil {
		t.Fatal(err)
	}
	var steps []string
	for i := range out {
		lines := strings.Split(strings.TrimSpace(out[i].String()), "\n")
		if len(lines) != 7*times {
			t.Fatalf("writer %d: got %d acknowledgements, want %d", i, len(lines), 7*times)
		}
		steps = append(steps, lines...)
	}
	acknowledged(t, path, steps)
}

// A writer is killed at any moment, also in the middle of an undo or a rewind. What it had
// acknowledged is there, and the next one can write at once.
func TestKilledWriterLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	f, path := create(t)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var steps []string
	for kill := range 25 {
		cmd := writer(t, path, strconv.Itoa(kill), -1)
		out := testkit.Start(t, cmd)
		lines := bufio.NewScanner(out)
		for range 1 + random.IntN(40) {
			if !lines.Scan() {
				t.Fatal("the writer ended by itself")
			}
			steps = append(steps, lines.Text())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it said before it died
			if strings.Count(lines.Text(), " ") > 0 {
				steps = append(steps, lines.Text())
			}
		}
		_ = cmd.Wait() // it was killed
		acknowledged(t, path, steps)
	}
	again, recovery := open(t, path) // the lock went with the process
	t.Logf("%d steps acknowledged, recovery %v", len(steps), recovery)
	run(t, again.Journal, "append end")
}
