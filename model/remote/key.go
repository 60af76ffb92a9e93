package remote

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// key reads the API key, at every request anew; it is empty if none is needed. An error
// says what to do and does not quote what was read.
func (c *Client) key() (string, error) {
	name, where := c.opts.KeyEnv, ""
	var text string
	switch {
	case c.opts.KeyFile != "":
		where = "the file " + c.opts.KeyFile
		read, err := readKey(c.opts.KeyFile)
		if err != nil {
			return "", fmt.Errorf("the API key: %w", err)
		}
		text = read
	case name == "" && c.opts.BaseURL != "":
		return "", nil
	default:
		if name == "" {
			name = c.vendor.KeyEnv
		}
		where = "the environment variable " + name
		text = os.Getenv(name)
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", fmt.Errorf("the API key is missing: %s is empty or not set", where)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("the API key in %s holds characters that no key has; want nothing but the key", where)
	}
	return text, nil
}

// keySource says where the key comes from, for advice.
func (c *Client) keySource() string {
	switch {
	case c.opts.KeyFile != "":
		return c.opts.KeyFile
	case c.opts.KeyEnv != "":
		return c.opts.KeyEnv
	case c.opts.BaseURL == "":
		return c.vendor.KeyEnv
	}
	return ""
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
