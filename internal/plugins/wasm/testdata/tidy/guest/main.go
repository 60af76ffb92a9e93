// Command guest is the strategy tidy as a module of WebAssembly.
package main

import (
	"github.com/condensehq/condense/internal/plugins/wasm/testdata/tidy"
	pluginsdk "github.com/condensehq/condense/plugin-sdk"
)

func main() { pluginsdk.Main(tidy.Strategy()) }
