// The protogen command compiles .proto files and runs protoc's plugins for Go on them, like protoc
// but without a C++ compiler to install:
//
//	protogen -I DIR -out DIR [-opt k=v,…] -plugin "command" [-plugin …] FILE.proto …
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("protogen", flag.ExitOnError)
	root := flags.String("I", ".", "folder that imports are looked up in")
	out := flags.String("out", ".", "folder to write to")
	opt := flags.String("opt", "", "options for the plugins")
	var plugins []string
	flags.Func("plugin", "a plugin of protoc, with arguments; may be repeated", func(s string) error {
		plugins = append(plugins, s)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 || len(plugins) == 0 {
		return errors.New("want at least one -plugin and one file")
	}
	req, err := request(ctx, *root, *opt, flags.Args())
	if err != nil {
		return err
	}
	for _, p := range plugins {
		if err := generate(ctx, strings.Fields(p), req, *out); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// request compiles the files.
func request(ctx context.Context, root, opt string, files []string) ([]byte, error) {
	c := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard, // for the comments
	}
	compiled, err := c.Compile(ctx, files...)
	if err != nil {
		return nil, err
	}
	req := &pluginpb.CodeGeneratorRequest{FileToGenerate: files, Parameter: &opt}
	seen := map[string]bool{}
	var add func(f protoreflect.FileDescriptor) // imports first, as protoc sends them
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		req.ProtoFile = append(req.ProtoFile, protoutil.ProtoFromFileDescriptor(f))
	}
	for _, f := range compiled {
		add(f)
	}
	return proto.Marshal(req)
}

// generate runs one plugin and writes its files.
func generate(ctx context.Context, command []string, req []byte, out string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // running them is its purpose
	cmd.Stdin, cmd.Stderr = bytes.NewReader(req), os.Stderr
	data, err := cmd.Output()
	if err != nil {
		return err
	}
	res := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(data, res); err != nil {
		return err
	}
	if res.Error != nil {
		return errors.New(res.GetError())
	}
	for _, f := range res.GetFile() {
		path := filepath.Join(out, filepath.FromSlash(f.GetName()))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // source code
			return err
		}
		if err := os.WriteFile(path, []byte(f.GetContent()), 0o644); err != nil { //nolint:gosec // source code
			return err
		}
	}
	return nil
}
