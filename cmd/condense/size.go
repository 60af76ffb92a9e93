package main

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/condensehq/condense/internal/size"
)

// A sizeFlag is a flag for a number of tokens or bytes, as the configuration takes it: 64000,
// 64k or 64Ki.
type sizeFlag int

var _ pflag.Value = (*sizeFlag)(nil)

var errNoSize = errors.New("want a number above 0, as in " + size.Units)

func (s *sizeFlag) Set(text string) error {
	n, ok := size.Parse(text)
	if !ok || n <= 0 {
		return errNoSize
	}
	*s = sizeFlag(n)
	return nil
}

func (s *sizeFlag) String() string {
	if *s == 0 {
		return "" // the flag's help shows no default then
	}
	return thousands(int(*s))
}

// Type is what --help calls the value.
func (s *sizeFlag) Type() string { return "size" }
