package remote

import (
	_ "embed"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/condensehq/condense/internal/plain"
)

// A pattern is how a vendor reports that a conversation exceeds the model's window. All
// fields that are set must match.
type pattern struct {
	Vendor  string
	Status  int            // of HTTP, or given in the body
	Code    string         // of the error, or its type
	Text    *regexp.Regexp // anywhere in the error
	Message *regexp.Regexp // in a message in the body
}

// patterns were taken from the vendors' documentation, from reports of users, and from the
// phrases that agents look for. Case does not matter.
var patterns = sync.OnceValue(func() (all []pattern) {
	if err := json.Unmarshal(patternsJSON, &all); err != nil {
		panic("remote: contextlength.json: " + err.Error()) // embedded and tested
	}
	return all
})

//go:embed contextlength.json
var patternsJSON []byte

// IsContextLength reports whether err, or an error that it wraps, means that the conversation exceeds the model's
// window. Errors of an SDK with a field StatusCode or Status and a method RawJSON, such as OpenAI's and Anthropic's,
// are read through these; for others, the text decides.
func IsContextLength(err error) bool {
	if err == nil {
		return false
	}
	f := failure{}
	f.read([]byte(err.Error()))
	for e := err; e != nil; e = errors.Unwrap(e) {
		if n := HTTPStatus(e); n != 0 && f.status == 0 {
			f.status = n
		}
		if r, ok := e.(interface{ RawJSON() string }); ok {
			f.read([]byte(r.RawJSON()))
		}
	}
	return f.contextLength()
}

// isContextLength reports whether an HTTP response says that the conversation exceeds the
// model's window. The body may be anything.
func isContextLength(status int, body []byte) bool {
	f := failure{status: status}
	f.read(body)
	return f.contextLength()
}

// A failure has the known properties of an error.
type failure struct {
	status   int      // of HTTP; 0 if unknown
	text     string   // the error and its body
	messages string   // in the body
	codes    []string // codes, types and names in the body
	statuses []int    // in the body
}

// read adds the properties in body, however deeply a gateway has wrapped it. Plain text is a message, and may begin with
// a status.
func (f *failure) read(body []byte) {
	f.text += "\n" + string(body)
	var v any
	if json.Unmarshal(body, &v) == nil {
		f.walk(v, 0)
		return
	}
	f.messages += "\n" + string(body)
	if found := statusForm().FindSubmatch(body); found != nil {
		n, _ := strconv.Atoi(string(found[1]))
		f.statuses = append(f.statuses, n)
	}
}

// statusForm matches the beginning of "Error: 400 context length exceeded".
var statusForm = plain.Pattern(`^\s*(?:\w*Error: )?(?:HTTP |[Ss]tatus(?: code)? )?([45]\d\d)\b`)

const deepest = 8 // level of a body that is read

func (f *failure) walk(v any, depth int) {
	if depth > deepest {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			f.walk(e, depth+1)
		}
	case map[string]any:
		for key, e := range v {
			f.member(key, e, depth)
		}
	}
}

func (f *failure) member(key string, value any, depth int) {
	switch v := value.(type) {
	case float64:
		if key == "status" || key == "code" {
			f.statuses = append(f.statuses, int(v))
		}
	case string:
		switch key {
		case "code", "type", "name", "status":
			f.codes = append(f.codes, v)
			if n, err := strconv.Atoi(v); err == nil && v == strconv.Itoa(n) {
				f.statuses = append(f.statuses, n)
			}
		case "message", "raw", "error", "detail":
			f.text += "\n" + v
			f.messages += "\n" + v
			var inner any
			if strings.HasPrefix(strings.TrimSpace(v), "{") && json.Unmarshal([]byte(v), &inner) == nil {
				f.walk(inner, depth+1) // a gateway that quotes the vendor
			}
		}
	case []any: // of messages
		for _, e := range v {
			if depth < deepest {
				f.member(key, e, depth+1)
			}
		}
	default:
		f.walk(v, depth+1)
	}
}

func (f *failure) contextLength() bool {
	switch f.status {
	case http.StatusRequestEntityTooLarge:
		return true
	case http.StatusTooManyRequests, http.StatusUnauthorized, http.StatusForbidden:
		return false // a rate limit or quota: a shorter conversation does not help
	}
	return slices.ContainsFunc(patterns(), f.matches)
}

func (f *failure) matches(p pattern) bool {
	return (p.Status == 0 || p.Status == f.status || slices.Contains(f.statuses, p.Status)) &&
		(p.Code == "" || slices.Contains(f.codes, p.Code)) && (p.Text == nil || p.Text.MatchString(f.text)) &&
		(p.Message == nil || p.Message.MatchString(f.messages))
}

// HTTPStatus returns the HTTP status in a field of an SDK's error, or 0.
func HTTPStatus(err error) int {
	v := reflect.ValueOf(err)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return 0
	}
	for _, name := range []string{"StatusCode", "Status", "HTTPStatusCode"} {
		switch f := v.FieldByName(name); {
		case !f.IsValid():
		case f.CanInt():
			return int(f.Int())
		case f.Kind() == reflect.String:
			digits, _, _ := strings.Cut(f.String(), " ")
			if n, err := strconv.Atoi(digits); err == nil {
				return n
			}
		}
	}
	return 0
}
