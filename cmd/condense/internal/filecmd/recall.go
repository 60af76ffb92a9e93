package filecmd

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/sessions"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/transcript"
)

func recallCommand(a *cli.App) *cobra.Command {
	var (
		r              recalling
		format, lines  string
		hidden, asJSON bool
	)
	cmd := &cobra.Command{
		Use: "recall FILE|- [NUMBER|HANDLE|MESSAGE|part-N]...", Short: "Show content that was condensed away",
		Args: cli.Arguments(1, -1, "no file; name a transcript, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if r.lines, err = recall.ParseLines(lines); err != nil {
				return cli.Usage(cmd, "--lines: %w", err)
			}
			lost := hidden || cmd.Flags().Changed("condensation")
			switch all := lost || r.file.Name != ""; {
			case all && len(args) > 1:
				return cli.Usage(cmd, "--hidden, --condensation and --file select the content; name none")
			case !all && len(args) == 1:
				return cli.Usage(cmd, "nothing to recall; name a number, a handle, a message or a --file, or list what is hidden with --hidden")
			}
			if err := r.read(cmd.Context(), a, args[0], format); err != nil {
				return err
			}
			found, err := r.pieces(args[1:], lost)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			switch {
			case asJSON:
				return term.PrintJSON(a.Stdout, pieceListings(found, !hidden))
			case hidden:
				printLost(a, found, &r)
				return nil
			default:
				return printPieces(a, found, r.lines)
			}
		},
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveDefault // files
		}
		return completeHandles(cmd.Context(), a, args[0], format), cobra.ShellCompDirectiveNoFileComp
	}
	a.InputFlags(cmd, &format, nil)
	f := cmd.Flags()
	f.BoolVar(&hidden, "hidden", false, "list everything that is hidden or rewritten, with handles")
	f.StringVar(&r.condensation, "condensation", "", "only what the condensation with this `ID` hid or rewrote")
	f.StringVar(&lines, "lines", "", "only these lines, such as `10-40`, 10- or -40")
	f.StringVar(&r.file.Name, "file", "", "the text of the file with this `path`, or end of a path, as it is known")
	f.StringVar(&r.file.At, "at", "", "with --file, as of the message with this `number`")
	f.BoolVar(&r.file.Changes, "changes", false, "with --file, the calls that changed it")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// completeHandles returns the handles of the hidden content of a file, with descriptions.
func completeHandles(ctx context.Context, a *cli.App, path, format string) []string {
	quiet := *a
	quiet.Stderr = io.Discard
	if path == "-" {
		return nil
	}
	var r recalling
	if r.read(ctx, &quiet, path, format) != nil {
		return nil
	}
	pieces, err := r.lost()
	if err != nil {
		return nil
	}
	var handles []string
	for i := range pieces {
		p := &pieces[i]
		handles = append(handles, cobra.CompletionWithDesc(p.Handle, plain.Line(p.Places[0].Message.ID+" "+p.What)+": "+excerpt(p.Text())))
	}
	return handles
}

// read reads a transcript, a file of originals, or the whole conversation of the copy with an ID in an agent's store.
func (r *recalling) read(ctx context.Context, a *cli.App, path, format string) error {
	path = sessions.Named(path)
	opts := a.ReadOptions(path, format)
	d, err := cli.Input(ctx, a, path, func(r io.Reader) (*transcript.Document, error) {
		data, err := transcript.ReadAll(r, opts.MaxBytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", opts.Name, err)
		}
		if format != "" || !history.IsOriginals(data) {
			return transcript.Read(bytes.NewReader(data), opts)
		}
		d, err := originals(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", opts.Name, err)
		}
		return d, nil
	})
	if err != nil {
		return err
	}
	a.Warn(opts.Name, d.Warnings)
	w, err := wholeOf(path, d.Journal)
	if err != nil {
		return err
	}
	if r.path, r.format = path, d.Format; w.ids != nil {
		r.format = "condense"
	}
	r.conversation = recall.New(w.journal)
	r.conversation.Own.Hidden = d.Format == formatOriginals
	return nil
}

// formatOriginals is the format of documents made from files of originals.
const formatOriginals = "originals"

func originals(data []byte) (*transcript.Document, error) {
	messages, err := history.DecodeOriginals(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	d := &transcript.Document{Format: formatOriginals, Journal: history.New()}
	return d, d.Journal.Append(messages...)
}
