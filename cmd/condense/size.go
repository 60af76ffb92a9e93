package main

import (
	"errors"

	"github.com/spf13/pflag"

	units "github.com/condensehq/condense/internal/size"
)

// A size is a flag for a number of tokens or bytes, as the configuration takes it: 64000,
// 64k or 64Ki.
type size int

var _ pflag.Value = (*size)(nil)

var errNoSize = errors.New("want a number above 0, as in " + units.Units)

func (s *size) Set(text string) error {
	n, ok := units.Parse(text)
	if !ok || n <= 0 {
		return errNoSize
	}
	*s = size(n)
	return nil
}

func (s *size) String() string {
	if *s == 0 {
		return "" // the flag's help shows no default then
	}
	return thousands(int(*s))
}

// Type is what --help calls the value.
func (s *size) Type() string { return "size" }
