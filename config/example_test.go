package config_test

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/condensehq/condense/config"
)

// A program can set the values itself, without a file.
func ExampleNew() {
	c, err := config.New(config.Values{
		Tuning: config.Tuning{Threshold: new(70.0)},
		Profiles: map[string]config.ProfileValues{
			"local": {Window: new(32_768), Tuning: config.Tuning{Threshold: new(-1.0)}},
		},
		Modes: map[string]config.ModeValues{"ask": {Profile: "local"}},
	}, config.Options{})
	if err != nil {
		slog.Error("configuration", "error", err)
		return
	}
	r, err := c.Resolve("", "ask")
	if err != nil {
		slog.Error("configuration", "error", err)
		return
	}
	fmt.Println(r.Profile, r.Window, r.Threshold, r.Origin("threshold"))
	// Output: local 32768 70 program
}

func ExampleLoad() {
	file := "testdata/init.golden.yaml"
	c, err := config.Load(config.Options{
		Path: file, Env: []string{},
		Flags: map[string]string{"modes.architect.threshold": "60"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // every fault, with file, line and column
		return
	}
	for _, mode := range []string{"code", "architect"} {
		r, err := c.Resolve("", mode)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		fmt.Printf("%s: at %v %% (%s)", mode, r.Threshold, r.Origin("threshold"))
		for _, p := range r.Chain {
			fmt.Printf(" %s", p.Name)
		}
		fmt.Println()
	}
	// Output:
	// code: at 80 % (testdata/init.golden.yaml:8:12) tidy
	// architect: at 60 % (flag modes.architect.threshold) lossless summary
}
