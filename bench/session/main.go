// Command session writes the conversation of the benchmarks to standard output, as a JSON array of
// Anthropic's Messages API, for the programs in bench/peers.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/condensehq/condense/internal/testkit/benchdata"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(os.Stderr, "session: %v\n", err)
		}
		os.Exit(2) //nolint:forbidigo // it is main
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("session", flag.ContinueOnError)
	flags.SetOutput(stderr)
	n := flags.Int("messages", 10_000, "how many `messages` to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *n < 0 || flags.NArg() > 0 {
		return fmt.Errorf("want -messages N, not negative, and nothing else; got %q", args)
	}
	return benchdata.WriteAnthropic(stdout, *n)
}
