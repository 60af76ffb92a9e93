package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// Complete makes the shell offer values for a flag.
func Complete(cmd *cobra.Command, flag string, values []string) {
	CompleteNames(cmd, flag, func() []string { return values })
}

// CompleteNames makes the shell offer names that are looked up on completion.
func CompleteNames(cmd *cobra.Command, flag string, names func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return beginning(begun, names()), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag does not exist: a bug
	}
}

// CompleteArgument makes the shell offer names for the only argument of a command.
func CompleteArgument(cmd *cobra.Command, names func() []string) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(begun, names()), cobra.ShellCompDirectiveNoFileComp
	}
}

func beginning(begun string, names []string) []string {
	return plain.Only(names, func(name string) bool { return strings.HasPrefix(name, begun) && plain.Line(name) == name })
}

// A SizeFlag is a flag for a number of tokens or bytes, in the form that the configuration
// accepts: 64000, 64k or 64Ki.
type SizeFlag int

var _ pflag.Value = (*SizeFlag)(nil)

var errNoSize = errors.New("want a number above 0, as in " + size.Units)

// Set implements [pflag.Value].
func (s *SizeFlag) Set(text string) error {
	n, ok := size.Parse(text)
	if !ok || n <= 0 {
		return errNoSize
	}
	*s = SizeFlag(n)
	return nil
}

// String implements [pflag.Value].
func (s *SizeFlag) String() string {
	if *s == 0 {
		return "" // so that --help shows no default
	}
	return size.Group(int(*s))
}

// Type implements [pflag.Value]: the value's name in --help.
func (s *SizeFlag) Type() string { return "size" }
