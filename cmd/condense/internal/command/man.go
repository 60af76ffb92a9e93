package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/internal/plain"
)

var beyondASCII = plain.Pattern(`[^\x00-\x7F]`)

// manCommand writes the help of each command as a man page.
func manCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the man pages into a folder", Args: cobra.ExactArgs(1),
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
			// Not every man reads UTF-8.
			body = beyondASCII().ReplaceAllStringFunc(escape.Replace(body), func(c string) string { return fmt.Sprintf(`\[u%04X]`, []rune(c)[0]) })
			b.WriteString(".SH " + s[0] + "\n.nf\n" + `\&` + body + "\n.fi\n")
		}
	}
	return cli.WriteFile(filepath.Join(folder, page(cmd)+".1"), []byte(b.String()), cli.NewMode)
}
