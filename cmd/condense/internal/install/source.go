package install

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/plain"
)

// A Source is a release of a plugin: a folder, or an address below which its files are.
type Source struct {
	text      string // as condense.lock has it
	dir       string // of a release on this machine
	base      *url.URL
	file      string // the asset, if one is named
	repo, tag string // on GitHub
}

// String returns the source as it is written.
func (s Source) String() string { return s.text }

// fixed reports whether the release must never change: a tag, or an asset at an address. A folder, and an address of the newest, may.
func (s Source) fixed() bool { return s.repo != "" || s.file != "" && s.base != nil }

var github = plain.Pattern(`^github:([A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100})(?:@([A-Za-z0-9][A-Za-z0-9._+-]{0,99}))?$`)

// Parse returns the source that a text means, spelled as condense.lock has it: one way for each release. Paths are relative to
// the folder from.
func (in *Installer) Parse(text, from string) (Source, error) {
	switch {
	case strings.HasPrefix(text, "github:"):
		m := github().FindStringSubmatch(text)
		if m == nil || strings.HasPrefix(path.Base(m[1]), ".") {
			return Source{}, fmt.Errorf("%q: want github:OWNER/REPO or github:OWNER/REPO@TAG", text)
		}
		s := Source{repo: strings.ToLower(m[1]), tag: m[2]} // GitHub takes both cases
		if s.text = "github:" + s.repo; s.tag != "" {
			s.text += "@" + s.tag
		}
		var err error
		s.base, err = url.Parse(cmp.Or(in.GitHub, "https://github.com") + "/" + s.repo + "/releases/download/" + s.tag + "/")
		return s, err
	case strings.Contains(text, "://"):
		u, err := url.Parse(text)
		switch {
		case err != nil:
			return Source{}, fmt.Errorf("%q is not an address", text)
		case u.Scheme != "https" || u.Host == "":
			return Source{}, fmt.Errorf("%s: only https:// addresses are fetched", u.Redacted())
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			return Source{}, fmt.Errorf("%s://%s%s: an address with a user, ? or # is not accepted: condense.lock is shared", u.Scheme, u.Host, u.Path)
		}
		u.Path = cmp.Or(u.Path, "/")
		u.Host = strings.TrimSuffix(strings.ToLower(u.Host), ":443")
		u = u.JoinPath()
		s := Source{text: u.String(), base: u}
		if name := path.Base(u.Path); !strings.HasSuffix(u.Path, "/") {
			s.base, s.file = u.JoinPath(".."), name
			s.base.Path = strings.TrimSuffix(s.base.Path, "/") + "/"
		}
		if s.file == sumsFile {
			s.text, s.file = s.base.String(), ""
		}
		return s, nil
	}
	relative := !filepath.IsAbs(text)
	if relative {
		text = filepath.Join(from, text)
	}
	text = filepath.Clean(text)
	info, err := os.Stat(text)
	if err != nil {
		return Source{}, err
	}
	s := Source{text: text, dir: text}
	if !info.IsDir() {
		s.dir, s.file = filepath.Dir(text), filepath.Base(text)
	}
	if rel, err := filepath.Rel(in.Dir, text); err == nil {
		switch {
		case filepath.IsLocal(rel):
			s.text = "./" + filepath.ToSlash(rel)
		case relative: // the same place for others who check the project out
			s.text = filepath.ToSlash(rel)
		}
	}
	return s, nil
}

// resolve returns src with the tag of the newest release, if it names none.
func (in *Installer) resolve(ctx context.Context, src Source) (Source, error) {
	if src.repo == "" || src.tag != "" {
		return src, nil
	}
	return in.Newest(ctx, src)
}

// Newest returns the newest release of a source on GitHub or at an address; other sources are their own newest release.
func (in *Installer) Newest(ctx context.Context, src Source) (Source, error) {
	switch {
	case src.base == nil:
		return src, nil
	case src.repo == "":
		return in.newestAt(ctx, src)
	}
	address := cmp.Or(in.GitHub, "https://github.com") + "/" + src.repo + "/releases/latest"
	client := *in.client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := request(ctx, &client, address)
	if err != nil {
		return src, err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	to, err := res.Location()
	if err != nil {
		return src, fmt.Errorf("github:%s has no release", src.repo)
	}
	repo, tag, ok := strings.Cut(strings.TrimPrefix(to.Path, "/"), "/releases/tag/")
	if !ok || !strings.EqualFold(repo, src.repo) {
		return src, fmt.Errorf("github:%s has no release", src.repo)
	}
	return in.Parse("github:"+src.repo+"@"+tag, "")
}

func (in *Installer) client() *http.Client {
	if in.Client != nil {
		return in.Client
	}
	t, _ := http.DefaultTransport.(*http.Transport)
	t = t.Clone()
	t.ResponseHeaderTimeout = 30 * time.Second
	return &http.Client{Transport: t, Timeout: 15 * time.Minute}
}

func request(ctx context.Context, client *http.Client, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	// The checksum is of the file as it is stored.
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "condense")
	res, err := client.Do(req)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // its address may be signed, as GitHub's are
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return res, nil
}

// get opens a file of a release and returns its size; -1 if it is unknown. One that does not exist is [fs.ErrNotExist].
func (in *Installer) get(ctx context.Context, src Source, name string) (io.ReadCloser, int64, error) {
	if src.base == nil {
		info, err := os.Stat(filepath.Join(src.dir, name))
		if err == nil && !info.Mode().IsRegular() { // to open a pipe would block
			err = fmt.Errorf("%s is not a file", name)
		}
		if err != nil {
			return nil, 0, err
		}
		f, err := os.OpenInRoot(src.dir, name)
		if err != nil {
			return nil, 0, err
		}
		return f, info.Size(), nil
	}
	client := *in.client()
	client.CheckRedirect = src.follow
	address := src.base.JoinPath(name).String()
	res, err := request(ctx, &client, address)
	switch {
	case err != nil:
		return nil, 0, err
	case res.StatusCode == http.StatusOK:
		return res.Body, res.ContentLength, nil
	}
	_ = res.Body.Close()
	err = fmt.Errorf("%s: %s", address, res.Status)
	if res.StatusCode == http.StatusNotFound {
		err = fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	}
	return nil, 0, err
}

// follow decides about a redirection: to the same host, and from GitHub to where it keeps assets; always encrypted.
func (s Source) follow(to *http.Request, via []*http.Request) error {
	host := to.URL.Hostname()
	switch {
	case len(via) > 5:
		return errors.New("more than five redirections")
	case to.URL.Scheme != "https":
		return fmt.Errorf("redirected to %s://%s: only https:// is followed", to.URL.Scheme, to.URL.Host)
	case to.URL.Host == s.base.Host, s.repo != "" && strings.HasSuffix(host, ".githubusercontent.com"):
		return nil
	}
	return fmt.Errorf("redirected to another host, %s: name that address yourself if it is right", to.URL.Host)
}

// fetch writes a file of a release to a writer and returns its SHA-256 and its size.
func (in *Installer) fetch(ctx context.Context, src Source, name string, most int64, to io.Writer) (sum string, n int64, err error) {
	from, size, err := in.get(ctx, src, name)
	if err != nil {
		return "", 0, err
	}
	defer from.Close() //nolint:errcheck // only read
	h := sha256.New()
	if size <= most {
		if n, err = io.Copy(io.MultiWriter(to, h), io.LimitReader(from, most+1)); err != nil {
			return "", n, fmt.Errorf("%s: after %d bytes: %w", name, n, err)
		}
	}
	if size > most || n > most {
		return "", n, fmt.Errorf("%s is larger than %d MiB", name, most>>20)
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}

// sumsFile has the checksums of a release, as sha256sum writes them.
const sumsFile = "SHA256SUMS"

var sumLine = plain.Pattern(`^([0-9A-Fa-f]{64}) [ *]([^/\\\s][^/\\]*)$`)

// sums returns the checksums of a release by the names of its files, and the checksum of the file that has them. That is empty for a file
// without a release around it, whose checksum is empty, too, unless the installer has one.
func (in *Installer) sums(ctx context.Context, src Source) (sums map[string]string, sum string, err error) {
	var b strings.Builder
	sum, _, err = in.fetch(ctx, src, sumsFile, maxSums, &b)
	switch {
	case errors.Is(err, fs.ErrNotExist) && src.file != "":
		return map[string]string{src.file: in.SHA256}, "", nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("%w; a release has the file %s, as the workflow of 'condense plugin new --ci' makes it", err, sumsFile)
	case err != nil:
		return nil, "", err
	case in.SHA256 != "" && sum != in.SHA256:
		return nil, "", damaged(sumsFile, sum, in.SHA256)
	}
	sums = map[string]string{}
	for i, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		m := sumLine().FindStringSubmatch(strings.TrimSuffix(line, "\r"))
		if m == nil || sums[m[2]] != "" {
			return nil, "", fmt.Errorf("%s:%d: %q is not a checksum and a name as sha256sum writes them, each name once", sumsFile, i+1, plain.Line(line))
		}
		sums[m[2]] = strings.ToLower(m[1])
	}
	if src.file != "" && sums[src.file] == "" {
		return nil, "", fmt.Errorf("%s of the same release does not list %s", sumsFile, src.file)
	}
	return sums, sum, nil
}

// An asset is a file of a release with a plugin in it: condense-NAME-OS-ARCH, or condense-NAME for all platforms.
type asset struct{ file, plugin, os, arch, suffix string }

func (a *asset) archive() bool { return a.suffix != "" && a.suffix != ".exe" && a.suffix != ".wasm" }

var (
	assetName = plain.Pattern(
		`^condense-([a-z0-9]+(?:[-_][a-z0-9]+)*?)(?:-(linux|darwin|windows|freebsd|netbsd|openbsd)-([a-z0-9]+))?(\.exe|\.wasm|\.tar\.gz|\.tgz|\.zip)?$`)
	pluginName = plain.Pattern(`^[a-z0-9]+(?:[-_][a-z0-9]+)*$`)
)

func parseAsset(file string) (asset, bool) {
	m := assetName().FindStringSubmatch(file)
	if m == nil {
		return asset{}, false
	}
	return asset{m[0], m[1], m[2], m[3], m[4]}, true
}

// choose returns the asset for this platform.
func (in *Installer) choose(src Source, sums map[string]string) (asset, error) {
	var found []asset
	var platforms, plugins []string
	for _, file := range slices.Sorted(maps.Keys(sums)) {
		a, ok := parseAsset(file)
		if !ok || src.file != "" && file != src.file {
			continue
		}
		if !slices.Contains(plugins, a.plugin) {
			plugins = append(plugins, a.plugin)
		}
		if a.os == "" || a.os == in.platform() && a.arch == in.arch() {
			found = append(found, a)
		} else {
			platforms = append(platforms, a.os+"/"+a.arch)
		}
	}
	// One for this platform comes before one for all.
	slices.SortStableFunc(found, func(a, b asset) int { return cmp.Compare(b.os, a.os) })
	switch {
	case len(plugins) == 0:
		return asset{}, errors.New("no file is named like a plugin: condense-NAME-OS-ARCH, or condense-NAME for all platforms, with .tar.gz or .zip if it has several files")
	case len(plugins) > 1:
		return asset{}, fmt.Errorf("there are several plugins, %s: name the asset of one", strings.Join(plugins, ", "))
	case len(found) == 0:
		return asset{}, fmt.Errorf("there is no asset for %s/%s, only for %s", in.platform(), in.arch(), strings.Join(platforms, ", "))
	case len(found) > 1 && found[0].os == found[1].os:
		return asset{}, fmt.Errorf("there are several assets for this platform, %s and %s: name one", found[0].file, found[1].file)
	}
	return found[0], nil
}

// assetsOf returns the checksums of a plugin for all platforms, and of its manifest.
func assetsOf(sums map[string]string, plugin string) map[string]string {
	all := maps.Clone(sums)
	maps.DeleteFunc(all, func(file, _ string) bool {
		a, ok := parseAsset(file)
		return file != ManifestFile && (!ok || a.plugin != plugin)
	})
	return all
}
