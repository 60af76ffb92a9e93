package servecmd

import (
	"embed"
	"encoding/json"
	"errors"
	"sync"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/tree"
)

// A Point describes how to point an agent at the gateway. In its texts, {base} stands for the gateway's address;
// {openai}, {anthropic/v1} and {vertex/v1} for the addresses of clients that expect /v1 at the end; {foundry} for the
// address of Anthropic's API in Microsoft Foundry; and {file} for the path of File.
type Point struct {
	// Skills is the user's folder of skills, with a folder for each; nil if none is known.
	Skills   *Settings
	Env      map[string]string // variables
	Args     []string          // arguments before the user's
	Without  []string          // first arguments of the user, with which there is no conversation: no Args then
	Merge    string            // a variable with a configuration in JSON: Keys are set in the user's value
	Override string            // a flag for settings in JSON that win over files: Keys of a file that wins over Env
	Status   []Key             // with Override: the status line, whose command is {status}
	FileName string            // a file for one run, outside of the user's folders, with the text File
	File     string
	Provider *Provider
	Recall   *Recall // nil: the agent cannot be given a server of MCP for one run
	Meter    *Meter  // nil: the agent has no plugins that show a line
	Own      *Own    // nil: it does not say what it knows about its models

	Need      *Need             // nil: the agent can be wrapped as it is
	Settings  []Settings        // the files that set addresses, in the order in which they win; Install writes the last
	Elsewhere map[string]string // variables that make the agent use other APIs, and which
}

// A Need is a condition for wrapping an agent.
type Need struct {
	Any  []string // one of these variables is set; nil: the agent cannot be wrapped
	Text string   // for people: why, and what to do
}

// A Settings file can set addresses.
type Settings struct {
	Path   string // ~ is the home folder; relative: of the project
	Dir    string // the variable that replaces the folder of Path, and perhaps a folder in it
	Inside string // the variable that has the path
	Upward bool   // also in the folders above the working directory
	Format string // of package settings
	Keys   []Key
	Recall []Key  // entry for the gateway's MCP server, if its address has a recall secret; empty: not possible in this file
	Wins   bool   // over Env
	Text   string // the whole text of a file of condense's own
}

// A Recall configures an agent for the gateway's MCP server. In its texts {mcp} is the address, {secret} the recall
// secret for it, and {mcpfile} the path of a file with the text File. Args contain no secret: other users of the
// machine can read arguments.
type Recall struct {
	Args []string
	Env  map[string]string
	Keys []Key // in Merge
	File string
	Add  string // the command that adds the server to the agent's settings, where [Settings] cannot
}

// A Meter is a plugin that shows the status line inside the agent. It runs the program in CONDENSE_STATUSLINE, a JSON array. In its texts
// {plugin} is the path of the first of Files, and {hook} the quoted command of a hook that prints the line, for an agent without plugins.
type Meter struct {
	Plugin   string // its text, in the table the name of the file that has it
	Args     []string
	Variable string // has the path of a settings file, the last of Files
	// Files are condense's own, in the user's folders or, for one run, together elsewhere. One without Text has Plugin.
	Files []Settings
}

// A Key of a settings file has an address.
type Key struct {
	API    string      // the API of the address
	Path   []string    // names
	Value  string      // for the gateway
	Number json.Number // in place of Value, in JSON
	Within bool        // only where the object is there that is to have it
}

// A Provider is a choice in a settings file that makes the agent use another address in the same file. Args point
// that address at the gateway; {provider} is its name.
type Provider struct {
	Choice  string // the key with the name
	Builtin string // the name for which Point is right
	Table   string // with the providers
	Address string // the key of a provider with its address
	API     string
	Args    []string
}

var (
	//go:embed points.yaml
	pointsYAML []byte
	//go:embed meter
	meters embed.FS
)

// points are how agents are pointed, by name.
var points = sync.OnceValue(func() (all map[string]Point) {
	err := tree.Decode(pointsYAML, &all)
	for _, p := range all {
		if p.Meter != nil && p.Meter.Plugin != "" {
			plugin, missing := meters.ReadFile(p.Meter.Plugin)
			p.Meter.Plugin, err = string(plugin), errors.Join(err, missing)
		}
	}
	if err != nil {
		panic("points.yaml: " + err.Error()) // embedded and tested
	}
	return all
})

// pluginOf is the text of an agent's plugin; empty if it has none.
func pluginOf(a *agents.Agent) string {
	if m := pointOf(a).Meter; m != nil {
		return m.Plugin
	}
	return ""
}

// pointOf returns how an agent is pointed at the gateway.
func pointOf(a *agents.Agent) Point { return points()[a.Name] }
