// Package remote is the common part of clients for language models over HTTP: keys,
// streaming, deadlines, retries, errors and usage.
//
// Vendors differ in their [Vendor]; the packages below have one each.
package remote

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/model"
)

// Options describe a model and how to call it. Only ID is required.
type Options struct {
	// Name is the model's name in errors and reports; empty means ID.
	Name string
	// ID is the model's name in the vendor's API.
	ID string
	// BaseURL is the address of the API if it is not the vendor's own, such as a local server
	// or a gateway. Its path is kept and completed with the API's, and its query is sent.
	BaseURL string
	// KeyEnv names the environment variable that holds the API key, KeyFile the file; at
	// most one is set. They are read for every request, so that a key may change. If both
	// are empty, the vendor's usual variable is read, but no key is sent to a BaseURL. A key
	// is sent only to an https address or to this machine: with a key, a model at another
	// http address cannot be called.
	KeyEnv, KeyFile string
	// Window, MaxOutput, Images, Price, Tiers and Free are the fields of [model.Info].
	Window, MaxOutput int
	Images            bool
	Price             model.Price
	Tiers             []model.Tier
	Free              bool
	// Retry says how often and how soon a request is repeated. A zero field means 4 attempts,
	// waits of half a second to 8 seconds, and a patience of a minute.
	Retry Retry
	// Silence is how long the vendor may send nothing, before and within an answer. Zero
	// means a minute, or half of the remaining time of the context if that is longer:
	// a local model may read for minutes before it writes.
	Silence time.Duration
	// Logger receives requests and the reasons of retries at debug level, never content, and
	// a warning if a server seems to have read only a part. Nil discards them.
	Logger *slog.Logger
	// HTTPClient sends the requests; nil means one that uses [http.DefaultTransport], with
	// the proxy and the certificates that the environment names. Redirects are never
	// followed: they would send the key and the conversation elsewhere.
	HTTPClient *http.Client
}

// Retry says how often and how soon a request is repeated that may succeed the next time.
type Retry struct {
	// Attempts is how often a request is sent at most; 1 means that nothing is repeated.
	Attempts int
	// First is the wait before the second attempt. Each further one is twice as long, up to
	// Longest. Up to half of each is left out at random, so that clients do not retry at the
	// same time.
	First, Longest time.Duration
	// Patience is the longest wait that a vendor may ask for. If it asks for more, or for
	// more than the context leaves, the request fails at once.
	Patience time.Duration
}

// defaultRetry is similar to the official clients of Anthropic and OpenAI, which repeat twice,
// after half a second to eight, and wait up to a minute if the vendor asks for it.
var defaultRetry = Retry{Attempts: 4, First: 500 * time.Millisecond, Longest: 8 * time.Second, Patience: time.Minute}

// defaultSilence is how long a vendor may send nothing.
const defaultSilence = time.Minute

func (r Retry) orDefault() Retry {
	r.Attempts = cmp.Or(r.Attempts, defaultRetry.Attempts)
	r.First = cmp.Or(r.First, defaultRetry.First)
	r.Longest = cmp.Or(r.Longest, defaultRetry.Longest)
	r.Patience = cmp.Or(r.Patience, defaultRetry.Patience)
	return r
}

// check returns all faults of o, and the URL of requests.
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
	if v.Sign == nil || v.Body == nil || v.Event == nil || v.Whole == nil {
		fail("the vendor lacks one of Sign, Body, Event and Whole")
	}
	at, err := endpoint(cmp.Or(o.BaseURL, v.BaseURL), v.Path)
	if err != nil {
		errs = append(errs, err)
	}
	return at, errors.Join(errs...)
}

// endpoint returns the URL of an API: base, completed with the part of path that it lacks.
func endpoint(base, path string) (*url.URL, error) {
	at, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, errors.New("base URL: not a URL") // an error of package url quotes its input, which may be a secret
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
	return model.Info{Name: cmp.Or(o.Name, o.ID), Window: o.Window, MaxOutput: o.MaxOutput, Images: o.Images, Price: o.Price, Tiers: o.Tiers, Free: o.Free}
}

// backoff returns how long to wait after the given number of attempts. A wait that the vendor
// asked for is kept, plus a little so that clients do not retry at the same time.
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
		half += rand.N(half + 1) //nolint:gosec // not a secret
	}
	if asked > 0 {
		return asked + half/2
	}
	return half
}

// retryAfter returns the wait that a header asks for; 0 if it is missing or invalid. In
// addition to the standard's seconds and date there are OpenAI's milliseconds.
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
	const longest = 1000 * time.Hour // long enough, and it does not overflow
	switch {
	case math.IsNaN(n) || n <= 0:
		return 0
	case n >= float64(longest/unit):
		return longest
	}
	return time.Duration(n * float64(unit))
}

// A Vendor describes the differences between the vendors' APIs. All fields except Optional,
// Compaction, Embedding and Clean are required.
type Vendor struct {
	// BaseURL is where the vendor's own service is, KeyEnv the environment variable in
	// which its key usually is.
	BaseURL, KeyEnv string
	// Path is appended to the base URL.
	Path string
	// Sign adds the key and the API's other headers. Key is empty if none is needed.
	Sign func(header http.Header, key string)
	// Body returns the request for p, which asks for a stream.
	Body func(p *model.Prompt, o *Options, refused Refused) ([]byte, error)
	// Optional are parameters of the request that some servers refuse. When one is refused,
	// the request is sent again, and Body omits it from then on.
	Optional []string
	// Event adds the content of an event of the stream to a reply; its name may be empty. An error means that data
	// violates the API's format, unless it is one of [Reported].
	Event func(r *Reply, name string, data []byte) error
	// Whole adds an answer from a server that does not stream.
	Whole func(r *Reply, data []byte) error
	// Compaction, if the vendor can compact, is the request for it: the text of its reply is the JSON array that the
	// vendor returned. Compacts is the API whose requests accept the array.
	Compaction *Vendor
	Compacts   string
	// Embedding, if the vendor has it, is the request for vectors of the messages of a prompt, one text each: the text of its reply is a JSON
	// array of arrays of numbers.
	Embedding *Vendor
	// Clean removes text that is not part of the answer.
	Clean func(text string) string
}

// Refused says whether the server has refused a parameter of [Vendor.Optional].
type Refused func(parameter string) bool

// A Reply is the part of an answer that was read so far.
type Reply struct {
	Text strings.Builder
	// Ended means that the model has reported why it stopped, Done that nothing follows. A
	// stream that ends before both was interrupted.
	Ended, Done bool
	Truncated   bool
	// Silence says why there is no text, or why it is ignored: "it called the tool
	// read_file", "it refused". Refused means that text is ignored.
	Silence string
	Refused bool
	// Usage is the vendor's report, without Calls and costs. Metered means that it has reported anything.
	Usage   core.Usage
	Metered bool
	// Written are the tokens of Usage.InputTokens that were written to a cache, for which
	// some vendors charge more.
	Written int

	sent int // bytes of the request
}

// CheckKey implements [model.Checker]: it returns an error with the reason and the remedy if a request would lack its
// API key, or nil. No error quotes the key.
func (c *Client) CheckKey() error {
	_, err := c.key()
	return err
}

// key reads the API key, for every request again; it is empty if none is needed.
func (c *Client) key() (string, error) {
	file, variable := c.opts.keyPlace(c.vendor)
	if file+variable != "" && c.at.Scheme == "http" && !local(c.at.Hostname()) {
		return "", fmt.Errorf("the API key would cross the network unencrypted to %s: base_url begins with http://; want https://, or name no key", c.at.Host)
	}
	var text, where string
	switch {
	case file != "":
		where = "the file " + file
		read, err := readKey(file)
		if err != nil {
			return "", fmt.Errorf("the file of the API key: %w", err)
		}
		if text = strings.TrimSpace(read); text == "" {
			return "", errors.New(where + " is empty; it should hold the API key")
		}
	case variable != "":
		where = "the environment variable " + variable
		if text = strings.TrimSpace(os.Getenv(variable)); text == "" {
			return "", errors.New(where + " is not set; it should hold the API key")
		}
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("the API key in %s holds characters that no key has; want nothing but the key", where)
	}
	return text, nil
}

// keyPlace returns the file or environment variable of the key; neither if none is needed, as
// for a local server.
func (o *Options) keyPlace(v *Vendor) (file, variable string) {
	switch {
	case o.KeyFile != "":
		return o.KeyFile, ""
	case o.KeyEnv != "" || o.BaseURL != "":
		return "", o.KeyEnv
	}
	return "", v.KeyEnv
}

// readKey reads a file that holds a key, which is short.
func readKey(name string) (string, error) {
	const longest = 64 << 10
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, longest+1))
	if err != nil {
		return "", err
	}
	if len(text) > longest {
		return "", errors.New(name + " is too large to be one")
	}
	return string(text), nil
}

// Input returns p for the encoders of package apimessage. Reasoning is left out unless p is
// cached: only then was it certainly signed by the vendor that is asked.
func Input(p *model.Prompt) *apimessage.Input {
	in := &apimessage.Input{System: p.System, Foreign: !p.Cached, Messages: make([]core.Message, len(p.Messages))}
	for i, m := range p.Messages {
		in.Messages[i] = core.Message{ID: strconv.Itoa(i + 1), Role: m.Role, Parts: m.Parts}
	}
	return in
}

// HasCalls reports whether a message of p holds a tool call.
func HasCalls(p *model.Prompt) bool {
	return slices.ContainsFunc(p.Messages, func(m core.Message) bool {
		return slices.ContainsFunc(m.Parts, func(part core.Part) bool {
			_, ok := part.(core.ToolCall)
			return ok
		})
	})
}

// A Tool is the definition of a tool, whose form depends on the vendor.
type Tool struct {
	Form              string // "anthropic", "openai", or "" for a tool that a vendor provides
	Name, Description string
	Schema            json.RawMessage // of the arguments
	Raw               json.RawMessage // the definition, verbatim
}

// ParseTools reads definitions in the form of either vendor; see [model.Prompt].
func ParseTools(definitions string) ([]Tool, error) {
	if strings.TrimSpace(definitions) == "" {
		return nil, nil
	}
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(definitions), &all); err != nil {
		return nil, fmt.Errorf("definitions of tools: %w", err)
	}
	tools := make([]Tool, 0, len(all))
	for i, raw := range all {
		var d struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
			Function    *struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		}
		if err := json.Unmarshal(raw, &d); err != nil {
			return nil, fmt.Errorf("definitions of tools: number %d: %w", i+1, err)
		}
		t := Tool{Name: d.Name, Description: d.Description, Schema: d.InputSchema, Raw: raw}
		switch f := d.Function; {
		case f != nil:
			t.Form, t.Name, t.Description, t.Schema = "openai", f.Name, f.Description, f.Parameters
			if t.Schema == nil {
				t.Schema = AnySchema
			}
		case t.Schema != nil:
			t.Form = "anthropic"
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// AnySchema is the schema of unknown arguments.
var AnySchema = json.RawMessage(`{"type":"object"}`)
