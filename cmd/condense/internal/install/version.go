package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

var versionForm = plain.Pattern(`^v(\d{1,9})\.(\d{1,9})\.(\d{1,9})$`)

// ParseVersion returns the numbers of a released version, such as v1.2.0, for [slices.Compare].
func ParseVersion(v string) (numbers []int, ok bool) {
	m := versionForm().FindStringSubmatch(v)
	if m == nil {
		return nil, false
	}
	for _, digits := range m[1:] {
		n, _ := strconv.Atoi(digits) // by the pattern
		numbers = append(numbers, n)
	}
	return numbers, true
}

// supports returns an error if the plugin requires a newer condense.
func (in *Installer) supports(s *Staged) error {
	if s.About == nil || s.About.Requires == "" {
		return nil
	}
	need, ok := ParseVersion(s.About.Requires)
	have, released := ParseVersion(in.Version)
	if ok && (!released || slices.Compare(have, need) >= 0) {
		return nil
	}
	return fmt.Errorf("it requires condense %s or later, and this is %s: update condense, or name an older release of the plugin",
		plain.First(s.About.Requires, 40), in.Version)
}

// versionsFile, beside the files of a release at an address, has the addresses of all releases by version, such as
// {"v1.0.0": "../v1.0.0/", "v1.1.0": "../v1.1.0/"}. Nothing checks it: it only says where to look, on the same host.
const versionsFile = "versions.json"

// newestAt returns the newest release that the versions of a release at an address name.
func (in *Installer) newestAt(ctx context.Context, src Source) (Source, error) {
	var b strings.Builder
	_, _, err := in.fetch(ctx, src, versionsFile, maxSums, &b)
	if errors.Is(err, fs.ErrNotExist) {
		return src, nil
	}
	addresses, newest, at := map[string]string{}, []int{}, ""
	if err == nil {
		err = json.Unmarshal([]byte(b.String()), &addresses)
	}
	for v, address := range addresses {
		if numbers, ok := ParseVersion(v); ok && slices.Compare(numbers, newest) > 0 {
			newest, at = numbers, address
		}
	}
	to := src.base
	if err == nil {
		to, err = src.base.Parse(at)
	}
	if err == nil && to.Host != src.base.Host {
		err = fmt.Errorf("%s is not on the same host", to)
	}
	if err != nil {
		return src, fmt.Errorf("%s: %w", versionsFile, err)
	}
	return in.Parse(strings.TrimSuffix(to.String(), "/")+"/"+src.file, "")
}
