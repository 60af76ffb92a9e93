package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/tree"
)

// A fault describes one wrong value. It has no position and no key yet.
type fault struct {
	problem, allowed, suggestion string
	// soft marks a number outside limits that a preset may lift.
	soft bool
}

// scalarValue reads n as a value of f. The result is bool, float64, int64 or string.
func (f *field) scalarValue(n *tree.Node) (any, *fault) {
	wrong := &fault{problem: "is " + n.Describe(), allowed: "must be " + f.allowed()}
	if n.Shape != tree.Scalar {
		return nil, wrong
	}
	read, ok := readers[f.kind]
	if n.Value == nil || n.Value == int64(inherit) && (!ok || f.kind == kindBool) {
		wrong.allowed += "; remove the line to inherit" // -1 inherits numbers only
		return nil, wrong
	}
	if ok {
		return read(f, n, wrong)
	}
	s, ok := n.Value.(string)
	if !ok {
		if _, isNumber := number(n.Value); f.kind == kindDuration && isNumber {
			return nil, f.checkDuration(n.Text, wrong)
		} else if isNumber && f.kind == kindAddress {
			wrong.suggestion = "127.0.0.1:" + n.Text
		} else {
			wrong.allowed += "; write it in quotes: " + strconv.Quote(n.Text)
		}
		return nil, wrong
	}
	if check, ok := textChecks[f.kind]; ok {
		if refused := check(f, s, wrong); refused != nil {
			return nil, refused
		}
	}
	return s, nil
}

// readers read the values that are not strings.
var readers = map[kind]func(f *field, n *tree.Node, wrong *fault) (any, *fault){
	kindBool:    (*field).boolValue,
	kindPercent: (*field).percentValue,
	kindTokens:  (*field).tokensValue,
	kindBytes:   (*field).tokensValue,
	kindCount:   (*field).tokensValue,
	kindAmount:  (*field).tokensValue,
	kindDollars: (*field).dollarsValue,
}

// textChecks check the values that are strings. They return wrong, or a fault of their own, for
// a value that is not allowed.
var textChecks = map[kind]func(f *field, s string, wrong *fault) *fault{
	kindEnum:     (*field).checkEnum,
	kindDuration: (*field).checkDuration,
	kindHash:     func(_ *field, s string, wrong *fault) *fault { return unless(sha256Hex().MatchString(s), wrong) },
	kindVariable: (*field).checkVariable,
	kindURL:      (*field).checkURL,
	kindAddress:  checkAddress,
	kindName:     notBlank,
	kindPath:     (*field).checkPath,
	kindText: func(f *field, s string, wrong *fault) *fault {
		if f.min == 0 {
			return nil
		}
		return notBlank(f, s, wrong)
	},
}

func unless(ok bool, wrong *fault) *fault {
	if ok {
		return nil
	}
	return wrong
}

func notBlank(_ *field, s string, wrong *fault) *fault {
	return unless(strings.TrimSpace(s) != "", wrong)
}

// isPostgres reports whether a text is the address of a PostgreSQL database.
func isPostgres(s string) bool {
	return strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://")
}

// checkPath refuses a database's address with its password: files are shared and shown.
func (f *field) checkPath(s string, wrong *fault) *fault {
	if f.database && !isPostgres(s) && strings.Contains(s, "://") {
		return &fault{problem: "is the address of something that is no store", allowed: "must be a file, postgres://user@host/database, or memory"}
	}
	if !f.database || !isPostgres(s) {
		return notBlank(f, s, wrong)
	}
	u, err := url.Parse(s)
	if err != nil {
		return &fault{problem: "is no address of a database", allowed: "must be like postgres://user@host/database"}
	}
	_, has := u.User.Password()
	if has || u.Query().Has("password") {
		return &fault{problem: "has a password", allowed: "leave it out, and set the environment variable PGPASSWORD, or PGPASSFILE with the path of a file"}
	}
	return nil
}

func (f *field) checkEnum(s string, wrong *fault) *fault {
	wrong.suggestion = suggest.Key(s, f.enum)
	return unless(slices.Contains(f.enum, s), wrong)
}

func (f *field) checkDuration(s string, wrong *fault) *fault {
	d, err := time.ParseDuration(s)
	if err == nil && d > 0 || slices.Contains(f.enum, s) {
		return nil
	}
	v, errNumber := strconv.ParseFloat(s, 64)
	switch {
	case errNumber == nil && v > 0:
		wrong.suggestion = s + "s"
	case (errNumber == nil && v == 0 || err == nil && d == 0) && len(f.enum) > 0:
		wrong.suggestion = f.enum[0] // off
	}
	return wrong
}

// checkVariable does not repeat the value in its message: it may be the key itself. A value
// that looks like one is reported as a secret already.
func (f *field) checkVariable(s string, wrong *fault) *fault {
	wrong.problem = "is not a valid name"
	return unless(variableName().MatchString(s) || looksSecret(s), wrong)
}

func (f *field) checkURL(s string, wrong *fault) *fault {
	if f.spoken {
		said := spoken().FindString(s)
		if said == "" && !f.usual {
			wrong.problem = "does not say what is spoken there"
			return wrong
		}
		s = s[len(said):]
	}
	u, err := url.Parse(s)
	if err == nil && u.User != nil {
		wrong.problem, wrong.allowed = "contains a user or password", "must be "+f.allowed()+" without them"
		if !f.secure {
			wrong.allowed += "; use api_key_env"
		}
		return wrong
	}
	ok := err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
	if ok && f.secure && u.Scheme == "http" && !loopback(u.Hostname()) {
		wrong.problem = "would send keys and conversations unencrypted"
		return wrong
	}
	return unless(ok, wrong)
}

// spoken matches the API that an upstream speaks, before its address.
var spoken = plain.Pattern(spokenPattern)

// loopback reports whether a host name or address means the machine itself.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func checkAddress(_ *field, s string, wrong *fault) *fault {
	host, port, err := net.SplitHostPort(s)
	n, errPort := strconv.ParseUint(port, 10, 16)
	if err == nil && errPort == nil && host == "" {
		wrong.problem, wrong.suggestion = "names no host", "127.0.0.1:"+strconv.FormatUint(n, 10)
	}
	return unless(err == nil && errPort == nil && hostName().MatchString(host), wrong)
}

func (f *field) boolValue(n *tree.Node, wrong *fault) (any, *fault) {
	v, ok := n.Value.(bool)
	if !ok {
		text, _ := n.Value.(string)
		wrong.suggestion = truths[strings.ToLower(text)]
		return nil, wrong
	}
	return v, nil
}

// truths are words that are true and false in older YAML and in other tools, but texts here.
var truths = map[string]string{
	"yes": "true", "y": "true", "on": "true", "true": "true", "no": "false", "n": "false", "off": "false", "false": "false",
}

func (f *field) dollarsValue(n *tree.Node, wrong *fault) (any, *fault) {
	v, ok := number(n.Value)
	if !ok || v < 0 || v > maxTokens {
		return nil, wrong
	}
	return v, nil
}

var (
	sha256Hex    = plain.Pattern(`^[0-9a-fA-F]{64}$`)
	hostName     = plain.Pattern(`^[0-9A-Za-z._:%-]+$`)
	variableName = plain.Pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)
	grouped      = plain.Pattern(`^[0-9]{1,3}\.[0-9]{3}$`) // as many people write thousands
	percentText  = plain.Pattern(`^([0-9]+(?:\.[0-9]+)?)\s*%$`)
)

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	return 0, false
}

func (f *field) percentValue(n *tree.Node, wrong *fault) (any, *fault) {
	v, ok := number(n.Value)
	if s, isText := n.Value.(string); isText {
		if m := percentText().FindStringSubmatch(s); m != nil {
			v, _ = strconv.ParseFloat(m[1], 64)
			ok = true
		} else if size.HasUnit(s) && f.key == "threshold" {
			wrong.allowed += "; for a number of tokens set max_context_tokens: " + s
			return nil, wrong
		}
	} else if ok && f.fraction && v > 0 && v < 1 {
		v = math.Round(v*1e11) / 1e9 // 0.07*100 is not 7 in binary
	}
	if !ok {
		return nil, wrong
	}
	if f.inherits && v == inherit {
		return v, nil
	}
	if v < f.min || v > f.max {
		wrong := f.outside(n)
		if share := math.Round(v * 100); v > 0 && v < 1 && share >= f.min {
			wrong.suggestion = strconv.FormatFloat(share, 'f', -1, 64)
		} else if v >= 1000 && f.key == "threshold" { // no typing error of a percentage
			wrong.allowed += "; for a number of tokens set max_context_tokens: " + n.Text
		}
		return v, wrong
	}
	return v, nil
}

func (f *field) tokensValue(n *tree.Node, wrong *fault) (any, *fault) {
	v, ok := number(n.Value)
	if s, isText := n.Value.(string); isText {
		if m := percentText().FindStringSubmatch(s); m != nil && f.kind == kindAmount {
			p, _ := strconv.ParseFloat(m[1], 64)
			if p > 100 {
				return nil, f.outside(n)
			}
			return strconv.FormatFloat(p, 'f', -1, 64) + "%", nil
		}
		if whole, isSize := size.Parse(s); isSize {
			v, ok = float64(whole), true
		}
	}
	if grouped().MatchString(n.Text) && v < maxTokens/1000 {
		wrong.problem, wrong.suggestion = "is "+n.Text+", which YAML reads as "+size.Group(int(v)), strings.ReplaceAll(n.Text, ".", "")
		return nil, wrong
	}
	if !ok || v != math.Trunc(v) || math.Abs(v) > maxTokens {
		return nil, wrong
	}
	if f.inherits && v == inherit {
		return int64(v), nil
	}
	if v < f.min || f.max > 0 && v > f.max {
		return int64(v), f.outside(n)
	}
	return int64(v), nil
}

func (f *field) outside(n *tree.Node) *fault {
	return &fault{problem: "is " + n.Text, allowed: "must be " + f.allowed(), soft: f.soft}
}

// allowed describes the values of f, to follow "must be".
func (f *field) allowed() string {
	limits := func(unit string) string {
		lo, hi := strconv.FormatFloat(f.min, 'f', -1, 64), strconv.FormatFloat(f.max, 'f', -1, 64)
		if f.max == 0 || f.max == maxTokens {
			return unit + " of " + lo + " or more"
		}
		return unit + " from " + lo + " to " + hi
	}
	var s string
	switch f.kind {
	case kindPercent:
		s = limits("a percentage")
	case kindTokens:
		s = limits("a number of tokens")
	case kindBytes:
		s = limits("a number of bytes")
	case kindCount:
		s = limits("a number")
	case kindAmount:
		s = limits("a number of tokens") + `, or a share of the window as in "2%"`
	case kindText, kindName:
		s = "a string"
		if f.refers != "" {
			s = "the name of a " + string(f.refers)
		}
	case kindEnum:
		s = "one of " + strings.Join(f.enum, ", ")
	case kindNames:
		s = "a list of names of " + string(f.refers) + "s, as in " + f.example
	case kindVariables:
		s = "a list of names of environment variables, as in " + f.example
	case kindVariable:
		s = "the name of an environment variable, as in " + f.example
	case kindObject:
		s = "a mapping with the keys " + strings.Join(keysAt(f.of), ", ")
	case kindSection:
		of := string(f.of[strings.LastIndexByte(string(f.of), '.')+1:])
		s = "a mapping of names to " + strings.TrimSuffix(of, "s") + "s"
	case kindObjects:
		s = "a list of mappings with the keys " + strings.Join(keysAt(f.of), ", ")
	case kindPath:
		s = strings.Join(append([]string{"a path"}, f.enum...), ", or ")
		if f.database {
			s += ", or a postgres:// address without a password"
		}
	case kindURL:
		s = "an http or https address"
		if f.secure {
			s = "an https address, or an http address of this machine"
		}
		if f.spoken {
			s = "anthropic+, openai+, both+ or pass+ and " + s + ", as in " + f.example
		}
	case kindDuration:
		s = strings.Join(append([]string{allowedTexts[f.kind]}, f.enum...), ", or ")
	case kindBool, kindDollars, kindHash, kindAddress, kindFree:
		s = allowedTexts[f.kind]
	}
	if f.inherits {
		s += ", or -1 to inherit"
	}
	return s
}

// allowedTexts describe the kinds that are the same for every field.
var allowedTexts = map[kind]string{
	kindBool:     "true or false",
	kindDollars:  "a number of US dollars, 0 or more",
	kindDuration: "a duration above 0 with its unit, as in 45s or 2m",
	kindHash:     "a SHA-256 checksum: 64 hexadecimal digits",
	kindAddress:  "a host and a port, as in 127.0.0.1:8765",
	kindFree:     "a mapping of settings",
}

// layer checks v by itself.
func (v Values) layer(opts *Options) (*checker, Errors) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, Errors{{Origin: Origin{Kind: FromProgram}, Problem: err.Error()}}
	}
	root, syntax := tree.ParseJSON(text)
	if syntax != nil {
		return nil, Errors{{Origin: Origin{Kind: FromProgram}, Problem: syntax.Problem}}
	}
	c := newChecker(opts, opts.Dir, func(tree.Position) Origin { return Origin{Kind: FromProgram} })
	c.check(root, atTop)
	return c, c.errs
}

// An Amount is a number of tokens, or a percentage of the window if Percent is not 0.
type Amount struct {
	Tokens  int
	Percent float64
}

// of returns the amount in tokens for a window of that size, rounded up.
func (a Amount) of(window int) int {
	if a.Percent == 0 {
		return a.Tokens
	}
	return ceil(a.Percent * float64(window) / 100)
}

// String returns a in the form of a file: "4000", "2%".
func (a Amount) String() string {
	if a.Percent != 0 {
		return strconv.FormatFloat(a.Percent, 'f', -1, 64) + "%"
	}
	return strconv.Itoa(a.Tokens)
}

// MarshalJSON writes a number, or a string with a percent sign.
func (a Amount) MarshalJSON() ([]byte, error) {
	if a.Percent != 0 {
		return json.Marshal(a.String())
	}
	return json.Marshal(a.Tokens)
}

// UnmarshalJSON reads the output of MarshalJSON.
func (a *Amount) UnmarshalJSON(text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case float64:
		*a = Amount{Tokens: int(v)}
		return nil
	case string:
		if p, err := strconv.ParseFloat(strings.TrimSuffix(v, "%"), 64); err == nil && strings.HasSuffix(v, "%") {
			*a = Amount{Percent: p}
			return nil
		}
	}
	return fmt.Errorf("%s is neither a number of tokens nor a percentage", text)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ceil rounds up to a whole number of tokens, with a tolerance for binary fractions.
func ceil(v float64) int { return int(math.Ceil(v - 1e-9)) }
