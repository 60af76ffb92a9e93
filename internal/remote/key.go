package remote

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

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
