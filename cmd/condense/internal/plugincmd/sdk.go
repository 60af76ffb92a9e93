package plugincmd

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	pluginsdk "github.com/condensehq/condense/plugin-sdk"
)

// sdkRecord names the copied files of the SDK in a plugin's folder and what they were, as sha256sum writes it: a copy that its author has
// changed is not replaced.
const sdkRecord = "condense-sdk.sum"

var errSDK = errors.New("the SDK in this folder is not that of this condense: 'condense plugin sdk update' brings it up to date")

func pluginSDKCommand(a *cli.App) *cobra.Command {
	var check, force bool
	update := &cobra.Command{
		Use: "update [FOLDER]", Short: "Bring the copied SDK of a plugin to that of this program",
		Args: cli.Arguments(0, 1, "want the folder of one plugin; got %d"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := append(args, ".")[0]
			changes, err := updateSDK(dir, check, force)
			for _, line := range changes {
				term.Printf(a.Stdout, "%s\n", line)
			}
			switch {
			case err != nil:
				return err
			case len(changes) == 0:
				term.Printf(a.Stdout, "up to date\n")
			case check:
				return errSDK
			}
			return nil
		},
	}
	update.Flags().BoolVar(&check, "check", false, "change nothing; exit code 1 if there is something to update")
	update.Flags().BoolVar(&force, "force", false, "overwrite files of the SDK that were edited")
	return cli.Group("sdk", "Update the copied SDK of a plugin", update)
}

// sdkFiles returns the SDK of a language and the protocol, by their names in a plugin's folder.
func sdkFiles(l templateLang) (map[string][]byte, error) {
	files := map[string][]byte{}
	var err error
	if l.sdk != "" {
		var sdk fs.FS
		if sdk, err = fs.Sub(pluginsdk.Files, l.sdk); err == nil {
			err = addTree(files, sdk)
		}
	}
	if l.protocol != "" && err == nil {
		files[l.protocol], err = pluginsdk.Files.ReadFile("proto/condense/v1/condense.proto")
	}
	return files, err
}

// sdkSums returns the record of files.
func sdkSums(files map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return b.Bytes()
}

// updateSDK makes the copies of an SDK in a folder those of this program, unless check is set, and returns what differs.
func updateSDK(dir string, check, force bool) (changes []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // each file was closed
	want := map[string][]byte{}
	// A plugin in another language may have a copy of the protocol alone.
	alone := []templateLang{{protocol: "condense.proto"}, {protocol: "condense/v1/condense.proto"}}
	for _, l := range slices.AppendSeq(alone, maps.Values(templateLangs)) {
		files, err := sdkFiles(l)
		if err != nil {
			return nil, err
		}
		for name := range files {
			if _, err := root.Stat(name); err == nil {
				maps.Copy(want, files)
				break
			}
		}
	}
	if len(want) == 0 {
		return nil, fmt.Errorf("%s has no copy of an SDK; plugins in Go have its version in go.mod", dir)
	}
	record, err := root.ReadFile(sdkRecord)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := slices.Collect(maps.Keys(want))
	for line := range strings.Lines(string(record)) { // of files that an SDK no longer has
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && want[name] == nil && fs.ValidPath(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var edited []string
	for _, name := range names {
		is, err := root.ReadFile(name)
		missing := errors.Is(err, fs.ErrNotExist)
		switch {
		case err != nil && !missing:
			return nil, err
		case missing && want[name] == nil, !missing && want[name] != nil && bytes.Equal(is, want[name]):
			continue
		case !missing && !bytes.Contains(record, sdkSums(map[string][]byte{name: is})):
			edited = append(edited, name)
		}
		gone, added := changedLines(string(is), string(want[name]))
		changes = append(changes, fmt.Sprintf("%s  +%d -%d", name, len(added), len(gone)))
	}
	switch {
	case check:
		return changes, nil
	case len(edited) > 0 && !force:
		return nil, fmt.Errorf("not as they were copied: %s; keep your changes elsewhere, --force overwrites them", strings.Join(edited, ", "))
	}
	want[sdkRecord] = sdkSums(want)
	for _, name := range append(names, sdkRecord) {
		if want[name] != nil {
			err = root.WriteFile(name, want[name], 0o644)
		} else if err = root.Remove(name); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// changedLines returns the lines of one text that the other lacks, and the other way round.
func changedLines(before, after string) (gone, added []string) {
	minus := func(text, other string) (left []string) {
		count := map[string]int{}
		for line := range strings.Lines(other) {
			count[strings.TrimSuffix(line, "\n")]++
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if count[line]--; count[line] < 0 {
				left = append(left, line)
			}
		}
		return left
	}
	return minus(before, after), minus(after, before)
}
