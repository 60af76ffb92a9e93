package plugincmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/plain"
)

// BuildCommand returns condense build.
func BuildCommand(a *cli.App) *cobra.Command {
	var with []string
	var out, replace string
	cmd := &cobra.Command{
		Use: "build --with PACKAGE", Short: "Build a condense with strategies of other modules in it",
		Args: cli.NoArguments("name packages with --with"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(with) == 0 {
				return cli.Usage(cmd, "name at least one package with --with, such as example.com/acme/tidy@v1 or ./tidy")
			}
			b := &building{said: a.Stderr, core: naming{Version: "v0.0.0"}, out: cmp.Or(out, "condense"+executableSuffix(targetOS()))}
			if err := b.core.require(cli.Version(), replace); err != nil {
				return cli.Usage(cmd, "%w", err)
			}
			var err error
			if b.tool, err = exec.LookPath("go"); err != nil {
				return errors.New("there is no command go in PATH: install it from https://go.dev/doc/install")
			}
			if b.dir, err = os.MkdirTemp("", "condense-build-*"); err != nil {
				return err
			}
			defer os.RemoveAll(b.dir) //nolint:errcheck // it is a temporary folder
			if err := b.build(cmd.Context(), with); err != nil {
				return err
			}
			term.Printf(a.Stderr, "wrote %s\n", b.out)
			return term.PrintText(a.Stdout, b.version)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&with, "with", nil, "Go `package` with strategies, at a version or in a folder; may be repeated")
	f.StringVarP(&out, "output", "o", "", "`file` to write to (default: condense)")
	f.StringVar(&replace, "replace", "", "`folder` of a checkout of condense to build with")
	return cmd
}

// A building is one run of build.
type building struct {
	core    naming // which condense
	tool    string // the command go
	dir     string // of the module that is built
	out     string
	version string    // the program's own version text
	said    io.Writer // receives the reports of the command go
}

// An addition is a package whose strategies are built in.
type addition struct {
	Package string
	module  string // that contains it
	dir     string // of the module, if it is a folder; else empty
	version string // as given; empty for the newest, or a folder
}

func (b *building) build(ctx context.Context, with []string) error {
	var all []*addition
	for _, w := range with {
		p, err := b.parse(ctx, w)
		if err != nil {
			return fmt.Errorf("--with %s: %w", w, err)
		}
		if slices.ContainsFunc(all, func(q *addition) bool { return q.Package == p.Package }) {
			return fmt.Errorf("--with %s: the package %s is named twice", w, p.Package)
		}
		all = append(all, p)
	}
	if err := b.writeModule(ctx, all); err != nil {
		return err
	}
	for i, p := range all {
		if p.dir == "" {
			if _, err := b.run(ctx, b.dir, "get", p.Package+"@"+cmp.Or(p.version, "latest")); err != nil {
				return fmt.Errorf("--with %s: %w", with[i], err)
			}
		}
	}
	for i, p := range all {
		if err := b.inspect(ctx, p); err != nil {
			return fmt.Errorf("--with %s: %w", with[i], err)
		}
	}
	var text bytes.Buffer
	if err := tenLines.Execute(&text, all); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.dir, "main.go"), text.Bytes(), 0o600); err != nil {
		return err
	}
	return b.link(ctx, all)
}

// parse reads a value of --with.
func (b *building) parse(ctx context.Context, with string) (*addition, error) {
	if !filepath.IsAbs(with) && !strings.HasPrefix(with, ".") {
		name, version, _ := strings.Cut(with, "@")
		if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") {
			return nil, errors.New("this is neither the path of a Go package, such as example.com/acme/tidy, nor a folder, such as ./tidy")
		}
		return &addition{Package: name, version: version}, nil
	}
	dir, err := filepath.Abs(with)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, errors.New("there is no such folder")
	}
	found, err := b.run(ctx, dir, "list", "-e", "-find", "-f", "{{.ImportPath}}\n{{with .Module}}{{.Path}}\n{{.Dir}}{{end}}", ".")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(found), "\n")
	if len(lines) != 3 { //nolint:mnd // as in the format
		return nil, errors.New("the folder is not in a Go module: 'go mod init' makes one")
	}
	return &addition{Package: lines[0], module: lines[1], dir: lines[2]}, nil
}

// writeModule writes the go.mod of the program.
func (b *building) writeModule(ctx context.Context, all []*addition) error {
	said, err := b.run(ctx, b.dir, "env", "GOVERSION")
	if err != nil {
		return err
	}
	version := "1.26"
	if v := numbered().FindStringSubmatch(said); v != nil {
		version = v[1]
	}
	var m strings.Builder
	fmt.Fprintf(&m, "module condense\n\ngo %s\n\nrequire github.com/condensehq/condense %s\n", version, b.core.Version)
	if b.core.Replace != "" {
		fmt.Fprintf(&m, "replace github.com/condensehq/condense => %s\n", b.core.Replace)
	}
	done := map[string]bool{}
	for _, p := range all {
		if p.dir != "" && !done[p.module] {
			done[p.module] = true
			fmt.Fprintf(&m, "require %s v0.0.0\nreplace %s => %s\n", p.module, p.module, quoteModule(p.dir))
		}
	}
	return os.WriteFile(filepath.Join(b.dir, "go.mod"), []byte(m.String()), 0o600)
}

var numbered = plain.Pattern(`^go(\d+\.\d+(?:\.\d+)?)`)

// inspect finds the function of a package that returns its strategies.
func (b *building) inspect(ctx context.Context, p *addition) error {
	found, err := b.run(ctx, b.dir, "list", "-mod=mod", "-find", "-f", "{{.Name}}\n{{.Dir}}\n{{join .GoFiles \"\\n\"}}", p.Package)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(found), "\n")
	if lines[0] == "main" {
		return fmt.Errorf("%s is a program; its strategy must be in a package of its own, with %s", p.Package, convention)
	}
	for _, name := range lines[2:] {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(lines[1], name), nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Package, err)
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "Strategy" && d.Type.Params.NumFields() == 0 && d.Type.Results.NumFields() == 1 {
				return nil
			}
		}
	}
	return fmt.Errorf("%s has no strategy to build in: it needs %s", p.Package, convention)
}

// convention is how a package offers its strategy.
const convention = "'func Strategy() registry.Strategy'"

var tenLines = template.Must(template.New("main.go").Parse(`package main

import (
	"github.com/condensehq/condense/cmd/condense/cli"
{{range $i, $p := .}}	p{{$i}} {{printf "%q" .Package}}
{{end}})

func main() {
	cli.Main({{range $i, $p := .}}{{if $i}}, {{end}}p{{$i}}.Strategy(){{end}})
}
`))

// link builds the program, tries it if it is for this system, and gives it its name.
func (b *building) link(ctx context.Context, all []*addition) error {
	out, err := filepath.Abs(b.out)
	if err != nil {
		return err
	}
	if info, err := os.Stat(out); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder: name a file with -o", b.out)
	}
	var built []string
	for _, p := range all {
		version, err := b.run(ctx, b.dir, "list", "-mod=mod", "-find", "-f", "{{with .Module}}{{if .Replace}}(devel){{else}}{{.Version}}{{end}}{{end}}", p.Package)
		if err != nil {
			return err
		}
		built = append(built, p.Package+"@"+strings.TrimSpace(version))
	}
	// In the same folder, so that it is moved at once.
	temp := filepath.Join(filepath.Dir(out), ".condense-build-"+filepath.Base(b.dir)+executableSuffix(targetOS()))
	defer os.Remove(temp) //nolint:errcheck // it has been moved, or is of no use
	const variable = "github.com/condensehq/condense/cmd/condense/internal/cli.with="
	if _, err := b.run(ctx, b.dir, "build", "-mod=mod", "-ldflags", "-X "+variable+strings.Join(built, ","), "-o", temp, "."); err != nil {
		return err
	}
	b.version = "built for another system, and not tried\n"
	if targetOS() == runtime.GOOS && cmp.Or(os.Getenv("GOARCH"), runtime.GOARCH) == runtime.GOARCH {
		// A name that is not valid, or taken, is reported by the registry.
		said, err := exec.CommandContext(ctx, temp, "version").CombinedOutput() //nolint:gosec // the program just built
		if err != nil {
			return fmt.Errorf("the program was built, but does not start: %s", strings.TrimSpace(string(said)))
		}
		b.version = string(said)
	}
	return os.Rename(temp, out)
}

// run runs the command go in a folder and returns its output. It prints the report of a failure.
func (b *building) run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, b.tool, args...) //nolint:gosec // the command go, for the packages that the user named
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		term.Printf(b.said, "%s\n", term.Indented{Text: strings.TrimSpace(stderr.String()), By: ""})
		return "", fmt.Errorf("go %s failed (%w): see above", args[0], err)
	}
	return stdout.String(), nil
}

func targetOS() string { return cmp.Or(os.Getenv("GOOS"), runtime.GOOS) }

func executableSuffix(system string) string {
	if system == "windows" {
		return ".exe"
	}
	return ""
}
