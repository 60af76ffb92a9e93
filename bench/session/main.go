// Command session writes the conversation of the benchmarks to standard output, as a JSON array of
// Anthropic's Messages API, for the programs in bench/peers.
package main

import (
	"fmt"
	"os"

	"github.com/condensehq/condense/internal/testkit/benchdata"
)

func main() {
	if err := benchdata.WriteAnthropic(os.Stdout, 10_000); err != nil {
		fmt.Fprintln(os.Stderr, "session:", err)
		os.Exit(1) //nolint:forbidigo // it is main
	}
}
