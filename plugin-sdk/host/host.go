// Package host is the other end of the SDK: it runs plugins in a program that embeds condense.
//
//	h, err := condense.Open(ctx, &condense.Options{
//		Load:    &config.Options{}, // condense.yaml, which declares the plugins
//		Plugins: host.Plugins(""),
//	})
//
// A plugin is started only if the user has approved its program, with 'condense plugin pin' or by a checksum in the file.
// Modules of WebAssembly need package host/wasm, or [ModulesBy].
package host

import (
	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/plugins"
)

// Plugins returns what runs plugins as supervised processes. Reattach names plugins that run already, in a debugger for
// instance, and are not started: the value of CONDENSE_REATTACH that a plugin prints with -debug. It is usually empty.
func Plugins(reattach string) condense.Plugins { return &plugins.Runner{Reattach: reattach} }

// ModulesBy makes an installed program condense, an absolute path, run the modules of WebAssembly of all hosts in this process. A program
// that imports package host/wasm needs none.
func ModulesBy(program string) { plugins.RunModulesBy(program) }
