package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
)

// manCommand writes the help of each command as a man page.
func manCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write the man pages into a folder",
		Example: "  condense man ~/.local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // everyone may read man pages
				return err
			}
			return writeMan(root, args[0])
		},
	}
}

func writeMan(cmd *cobra.Command, folder string) error {
	page := func(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }
	var below []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			below = append(below, page(c)+"(1)  "+c.Short)
			if err := writeMan(c, folder); err != nil {
				return err
			}
		}
	}
	var b strings.Builder
	b.WriteString(".TH " + strings.ToUpper(page(cmd)) + " 1\n")
	sections := [][2]string{
		{"NAME", page(cmd) + " - " + cmd.Short},
		{"SYNOPSIS", cmd.UseLine()},
		{"DESCRIPTION", cmd.Long},
		{"EXAMPLES", cmd.Example},
		{"OPTIONS", cmd.LocalFlags().FlagUsages() + cmd.InheritedFlags().FlagUsages()},
		{"SEE ALSO", strings.Join(below, "\n")},
	}
	escape := strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", "\n"+`\&`) // \& because a line may begin with a dot
	for _, s := range sections {
		if body := strings.TrimRight(s[1], "\n "); body != "" {
			b.WriteString(".SH " + s[0] + "\n.nf\n" + `\&`)
			for _, r := range escape.Replace(body) {
				if r < utf8.RuneSelf {
					b.WriteRune(r)
				} else { // not every man reads UTF-8
					fmt.Fprintf(&b, `\[u%04X]`, r)
				}
			}
			b.WriteString("\n.fi\n")
		}
	}
	return cli.WriteFile(filepath.Join(folder, page(cmd)+".1"), []byte(b.String()), cli.NewMode)
}
