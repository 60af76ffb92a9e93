// The condense-openhands command is a strategy of package peers as a plugin.
package main

import (
	peers "example.com/condense-peers"

	pluginsdk "github.com/condensehq/condense/plugin-sdk"
)

func main() { pluginsdk.Main(peers.OpenHands()) }
