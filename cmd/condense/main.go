// Command condense shortens recorded conversations between people, language models and
// their tools, and shows what it did and why.
package main

import "github.com/condensehq/condense/cmd/condense/cli"

func main() { cli.Main() }
