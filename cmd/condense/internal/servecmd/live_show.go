package servecmd

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/size"
)

func (l *liveFlags) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show [ID]", Short: "Print the view of a conversation, with the hidden messages", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.withOne(cmd, args, func(d controller, c *control.Conversation) error {
				v, err := d.Show(cmd.Context(), c, "")
				if err != nil {
					return err
				}
				if l.output == "json" {
					return term.PrintJSON(l.app.Stdout, v)
				}
				printShown(l.app.Stdout, v)
				return nil
			})
		},
	}
}

func printShown(w io.Writer, v *control.View) {
	if v.Whole {
		term.Printf(w, "nothing is hidden: the model has all %s as the client has them%s\n", size.Plural(v.Rest, "message"), shortened(v))
		return
	}
	for _, m := range v.Messages {
		number, note := "", ""
		if m.Number > 0 {
			number = strconv.Itoa(m.Number)
		}
		switch {
		case m.Hidden:
			note = "hidden: "
		case m.Condensed:
			note = "condensed: "
		}
		if m.Protected {
			note = "protected: " + note
		}
		const most = 100
		text := strings.Join(strings.Fields(m.Text), " ")
		if len(text) > most {
			text = strings.ToValidUTF8(text[:most], "") + "…"
		}
		term.Printf(w, "%5s %-9s %s%s\n", number, m.Role, note, text)
	}
	if v.Unknown > 0 {
		term.Printf(w, "the above is sent in place of messages 1 to %d; %s of them are not stored, because the agent cannot recall them\n", v.Hidden, size.Group(v.Unknown))
	}
	term.Printf(w, "messages %d to %d follow as the client has them%s\n", v.Hidden+1, v.Hidden+v.Rest, shortened(v))
}

func shortened(v *control.View) string {
	if v.Shortened == 0 {
		return ""
	}
	return fmt.Sprintf(", %s shortened before they were first sent", size.Plural(v.Shortened, "result"))
}
