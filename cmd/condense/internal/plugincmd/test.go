package plugincmd

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/plugins"
)

// errPluginTest ends a test that has reported faults.
var errPluginTest = errors.New("the plugin has faults: see above")

const ingestUsage = "ask it to shorten each round of new results, as the key ingest of a configuration does"

// A pluginTest has the flags and arguments of the command.
type pluginTest struct {
	path, folder, settings string
	env, traces            []string
	format                 string
	verbose, json, ingest  bool
}

func pluginTestCommand(a *cli.App) *cobra.Command {
	var t pluginTest
	cmd := &cobra.Command{
		Use: "test PATH", Short: "Test whether a plugin meets the requirements",
		Args: cli.Arguments(1, 1, "want the path of one program; got %d"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.path = args[0]
			trial, err := t.trial(a, cmd)
			if err != nil {
				return err
			}
			return testPlugin(cmd.Context(), a, trial, &t)
		},
	}
	f := cmd.Flags()
	t.flags(f)
	f.StringArrayVar(&t.traces, "trace", nil, "`file` with a conversation of your own to condense; may be given again")
	f.BoolVarP(&t.verbose, "verbose", "v", false, "print what the plugin logs, and every case")
	f.BoolVar(&t.json, "json", false, "print JSON")
	a.InputFlags(cmd, &t.format, nil)
	return cmd
}

const folderUsage = "the `folder` of a plugin of many files; it holds PATH (default: that of PATH, if the SDK is in it)"

// flags adds the flags that the commands test and judge share.
func (t *pluginTest) flags(f *pflag.FlagSet) {
	f.StringVar(&t.settings, "settings", "", "its settings: a `JSON` object, or a file with one")
	f.StringVar(&t.folder, "folder", "", folderUsage)
	f.StringSliceVar(&t.env, "env", nil, "`names` of environment variables that it may see")
	f.BoolVar(&t.ingest, "ingest", false, ingestUsage)
}

// trial returns how the program is run.
func (t *pluginTest) trial(a *cli.App, cmd *cobra.Command) (*plugins.Trial, error) {
	p := config.Provider{Name: strings.TrimSuffix(filepath.Base(t.path), filepath.Ext(t.path)), Env: t.env}
	var err error
	if p.Plugin, err = filepath.Abs(t.path); err != nil {
		return nil, err
	}
	if p.Folder, err = folderOf(t.folder, p.Plugin); err != nil {
		return nil, err
	}
	if info, err := os.Stat(p.Plugin); err == nil && info.IsDir() {
		return nil, cli.Usage(cmd, "%s is a folder; name the program in it, and the folder with --folder", t.path)
	}
	switch text := strings.TrimSpace(t.settings); {
	case text == "":
	case text[0] == '{':
		p.Settings = json.RawMessage(text)
	default:
		if p.Settings, err = os.ReadFile(text); err != nil {
			return nil, cli.Usage(cmd, "--settings: neither a JSON object nor a file: %w", err)
		}
	}
	if len(p.Settings) > 0 && !json.Valid(p.Settings) {
		return nil, cli.Usage(cmd, "--settings: %s is not JSON", t.settings)
	}
	return t.trialOf(a, p), nil
}

// folderOf returns the folder of a plugin of many files: the one that was named, or that of a program beside which is a copy of the SDK.
func folderOf(named, program string) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	dir := filepath.Dir(program)
	if _, err := os.Stat(filepath.Join(dir, sdkRecord)); err == nil {
		return dir, nil
	}
	return "", nil
}

func (t *pluginTest) trialOf(a *cli.App, p config.Provider) *plugins.Trial {
	trial := &plugins.Trial{Plugin: p, Persistent: true}
	if t.verbose {
		trial.Output, trial.Calls = authorLogs(a.Stderr)
	}
	return trial
}
