// Package remote is what the clients of language models have in common that are reached
// over HTTP: keys, streaming, deadlines, retries, errors and what is reported.
//
// What differs between vendors is a [Vendor]; the packages below have one each.
package remote

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/model"
)

// Options say which model is asked, where and how. Only ID is required.
type Options struct {
	// Name is what people call the model, in errors and reports; empty means ID.
	Name string
	// ID is the model's name in the vendor's API.
	ID string
	// BaseURL is where the API is, if not at its vendor's: of a local server, a gateway. A
	// path is kept, what the API has behind it is added unless it is there, and a query is
	// sent along.
	BaseURL string
	// KeyEnv names the environment variable that holds the API key, KeyFile the file; at
	// most one is set. They are read for every request, so that a key may change. If both
	// are empty, the vendor's usual variable is read, but at a BaseURL no key is sent. A key
	// goes to an https address or to this machine only: with one, a model at any other http
	// address cannot be asked.
	KeyEnv, KeyFile string
	// Window, MaxOutput, Images, Price, Tiers and Free are those of [model.Info].
	Window, MaxOutput int
	Images            bool
	Price             model.Price
	Tiers             []model.Tier
	Free              bool
	// Retry says how often and how soon a request is repeated; the zero value of a field
	// means that of [DefaultRetry].
	Retry Retry
	// Silence is how long the vendor may send nothing at all, before an answer and within
	// it. Zero means [DefaultSilence], or half of the time that the context leaves if that
	// is longer: a local model may read for minutes before it writes.
	Silence time.Duration
	// Logger is told at debug level of requests and why they are repeated, never what is
	// in them. It is warned if a server seems to have read only a part. Nil means nobody.
	Logger *slog.Logger
	// HTTPClient sends the requests; nil means one that uses [http.DefaultTransport], with
	// the proxy and the certificates that the environment names. Redirects are never
	// followed: they would carry the key and the conversation to somebody else.
	HTTPClient *http.Client
}

// Retry says how often and how soon a request is repeated that may succeed the next time.
type Retry struct {
	// Attempts is how often a request is sent at most; 1 means that nothing is repeated.
	Attempts int
	// First is the wait before the second attempt. Each further one is twice as long, up
	// to Longest. Of each, a random half is left out, so that many clients do not come
	// back at once.
	First, Longest time.Duration
	// Patience is the longest wait that a vendor may ask for. If it asks for more, or for
	// more than the context leaves, the request fails at once.
	Patience time.Duration
}

// DefaultRetry is what clients do that are not told otherwise: of the same order as the
// official clients of Anthropic and OpenAI, which repeat twice, beginning with half a
// second and up to eight, and wait a minute at a vendor's wish.
var DefaultRetry = Retry{Attempts: 4, First: 500 * time.Millisecond, Longest: 8 * time.Second, Patience: time.Minute}

// DefaultSilence is how long a vendor may send nothing.
const DefaultSilence = time.Minute

func (r Retry) orDefault() Retry {
	if r.Attempts == 0 {
		r.Attempts = DefaultRetry.Attempts
	}
	if r.First == 0 {
		r.First = DefaultRetry.First
	}
	if r.Longest == 0 {
		r.Longest = DefaultRetry.Longest
	}
	if r.Patience == 0 {
		r.Patience = DefaultRetry.Patience
	}
	return r
}

// check returns all that is wrong with o, and the URL that requests go to.
func (o *Options) check(v *Vendor) (*url.URL, error) {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.ID == "" {
		fail("the id of the model is missing")
	}
	if o.KeyEnv != "" && o.KeyFile != "" {
		fail("the key is in the environment variable %s or in the file %s, not in both", o.KeyEnv, o.KeyFile)
	}
	if o.Window < 0 || o.MaxOutput < 0 {
		fail("window %d and longest answer %d: want tokens, 0 if unknown", o.Window, o.MaxOutput)
	}
	if o.Retry.Attempts < 0 || o.Retry.First < 0 || o.Retry.Longest < 0 || o.Retry.Patience < 0 || o.Silence < 0 {
		fail("retries and silence: want numbers that are not negative")
	}
	base := o.BaseURL
	if base == "" {
		base = v.BaseURL
	}
	if v.Sign == nil || v.Body == nil || v.Event == nil || v.Whole == nil {
		fail("the vendor lacks one of Sign, Body, Event and Whole")
	}
	at, err := endpoint(base, v.Path)
	if err != nil {
		errs = append(errs, err)
	}
	return at, errors.Join(errs...)
}

// endpoint returns where an API is called: what path has beyond the end of base is added.
func endpoint(base, path string) (*url.URL, error) {
	at, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, errors.New("base URL: not a URL") // an error of package url quotes what may hold a secret
	case at.Scheme != "http" && at.Scheme != "https" || at.Host == "":
		return nil, errors.New("base URL: want one that begins with https:// or http:// and names a host")
	case at.User != nil:
		return nil, errors.New("base URL: holds a user or a password; name the key by an environment variable or a file")
	}
	had := strings.TrimRight(at.Path, "/")
	rest := path
	for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '/') {
		if strings.HasSuffix(had, path[:end]) {
			rest = path[end:]
			break
		}
	}
	at.Path, at.RawPath, at.Fragment = had+rest, "", ""
	return at, nil
}

func (o *Options) info() model.Info {
	name := o.Name
	if name == "" {
		name = o.ID
	}
	return model.Info{
		Name: name, Window: o.Window, MaxOutput: o.MaxOutput, Images: o.Images,
		Price: o.Price, Tiers: o.Tiers, Free: o.Free,
	}
}

// backoff returns how long to wait after so many attempts. A vendor that asked for a
// wait gets it, and a little more so that not everybody returns in the same moment.
func (r Retry) backoff(attempts int, asked time.Duration) time.Duration {
	d := r.First
	for range attempts - 1 {
		if d *= 2; d >= r.Longest {
			break
		}
	}
	d = min(d, r.Longest)
	half := d / 2
	if half > 0 {
		half += rand.N(half + 1) //nolint:gosec // nobody gains by guessing it
	}
	if asked > 0 {
		return asked + half/2
	}
	return half
}

// retryAfter returns the wait that a header asks for; 0 if it asks for none or is wrong.
// Beside the standard's seconds and date there are OpenAI's milliseconds.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("retry-after-ms"), 64); err == nil {
		return span(ms, time.Millisecond)
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return span(s, time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

func span(n float64, unit time.Duration) time.Duration {
	const longest = 1000 * time.Hour // nobody waits so long, and it does not overflow
	switch {
	case math.IsNaN(n) || n <= 0:
		return 0
	case n >= float64(longest/unit):
		return longest
	}
	return time.Duration(n * float64(unit))
}
