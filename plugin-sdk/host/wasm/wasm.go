// Package wasm lets a program that embeds condense run plugins that are modules of WebAssembly, with the same doors as the program
// condense: approval, checksum, limits and encryption. It links the machine, 4 MB.
//
//	func main() {
//		wasm.Init()
//		h, err := condense.Open(ctx, &condense.Options{Load: &config.Options{}, Plugins: host.Plugins("")})
//		…
//	}
package wasm

import (
	"cmp"
	"os"

	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/plugins/wasm"
)

// Init makes this program run modules. Each runs in a process of its own: this program, started again with other arguments and a small
// environment. There Init does not return. So it is the first call of main, or in a test of TestMain: the module's process does, too,
// whatever is done before it.
func Init() {
	if args := plugins.ModuleArgs(); args != nil {
		os.Exit(wasm.Run(args)) //nolint:forbidigo // this process exists for the module only
	}
	exe, _ := os.Executable() // a relative name is refused, and the error names it
	plugins.RunModulesBy(cmp.Or(exe, os.Args[0]))
}
