package wasm_test

import (
	"context"
	"log"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/plugin-sdk/host"
	"github.com/condensehq/condense/plugin-sdk/host/wasm"
)

// This is main of a program whose configuration may name plugins that are modules.
func Example() {
	wasm.Init() // in the process of a module it does not return
	h, err := condense.Open(context.Background(), &condense.Options{
		Load: &config.Options{Path: "testdata/condense.yaml"}, Plugins: host.Plugins(""),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	// Output:
}
