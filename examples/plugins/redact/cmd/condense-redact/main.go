// The condense-redact command is the strategy redact as a plugin.
package main

import (
	redact "example.com/condense-redact"

	pluginsdk "github.com/condensehq/condense/plugin-sdk"
)

func main() { pluginsdk.Main(redact.Strategy()) }
