// Command condense shortens recorded conversations between people, language models and their tools, and explains
// every change.
package main

import "github.com/condensehq/condense/cmd/condense/cli"

func main() { cli.Main() }
