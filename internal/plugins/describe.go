package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/wire/caller"
)

// A Description is a plugin's description of itself.
type Description = caller.Description

// Describe starts a configured plugin with its settings, requests its description, and stops it. If the plugin
// refuses its settings, it returns the description and a [*caller.SettingsError].
//
// The description of a plugin with a pin is stored for [Known].
func Describe(ctx context.Context, p config.Provider, pin string) (_ *caller.Description, err error) {
	process, err := open(spec(p, pin), &supervise.Options{Client: caller.Options{Host: host()}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, process.Close()) }()
	d, err := process.Describe(ctx)
	if bad, refused := errors.AsType[*caller.SettingsError](err); refused {
		d = bad.About
	}
	if d != nil {
		Remember(pin, d)
	}
	return d, err
}

// Known returns the stored description of the program or folder with this checksum, from its last start. It starts
// nothing. The description does not apply to other checksums, and it is not an approval.
func Known(pin string) (*caller.Description, bool) {
	file, ok := descriptionFile(pin)
	if !ok {
		return nil, false
	}
	text, err := disk.ReadFile(file, maxDescription)
	var d caller.Description
	if err != nil || json.Unmarshal(text, &d) != nil || d.Name == "" {
		return nil, false // as if it had never been started
	}
	return &d, true
}

// About returns the description of an approved plugin: the stored one or, without one, the answer to a start with its
// settings, which may be wrong.
func About(ctx context.Context, p Plugin) (*caller.Description, error) {
	if p.Pin == "" {
		return nil, notPinned(p.Provider)
	}
	if d, known := Known(p.Pin); known {
		return d, nil
	}
	d, err := Describe(ctx, p.Provider, p.Pin)
	if errors.As(err, new(*caller.SettingsError)) && d != nil {
		err = nil
	}
	return d, err
}

// descriptionForm ends the name of a file with a description. It changes when descriptions get fields that older files lack.
const descriptionForm = ".3.json"

// maxDescription is the most bytes of a description that is kept.
const maxDescription = 4 << 20

// Remember keeps a description for [Known]. It is worth a start of the plugin, so no error is reported.
func Remember(pin string, d *caller.Description) {
	file, ok := descriptionFile(pin)
	if !ok {
		return
	}
	text, err := json.Marshal(d)
	if err != nil || len(text) > maxDescription {
		return
	}
	dir := filepath.Dir(file)
	if os.MkdirAll(dir, 0o700) == nil {
		_ = disk.Put(file, dir, text)
	}
}

var checksum = plain.Pattern(`^[0-9a-f]{64}$`)

// descriptionFile returns the path for the description of the program with this checksum. False means that it cannot
// be stored: there is no checksum or no home folder.
func descriptionFile(pin string) (string, bool) {
	dir, err := os.UserCacheDir()
	if err != nil || !checksum().MatchString(pin) {
		return "", false
	}
	return filepath.Join(dir, "condense", "plugins", pin+descriptionForm), true
}
