//go:build unix

package pluginexamples_test

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/condensehq/condense/internal/wire/condensepb"
)

// protocol1 returns the protocol as the SDK of version 1 has it.
func protocol1(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	text, err := fs.ReadFile(version1(), "python/condense/condense_pb2.py")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^ +"([A-Za-z0-9+/=]+)"$`).FindAllStringSubmatch(string(text), -1) {
		code.WriteString(m[1])
	}
	data, err := base64.StdEncoding.DecodeString(code.String())
	if err != nil {
		t.Fatal(err)
	}
	var d descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	file, err := protodesc.NewFile(&d, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestVersions: the protocol grows by addition only. Everything that version 1 began with is there, with its number and type; what
// was added is listed in the page about the protocol.
func TestVersions(t *testing.T) {
	t.Parallel()
	old, now := describeFile(protocol1(t)), describeFile(condensepb.File_condense_v1_condense_proto)
	for name, want := range old {
		if got, ok := now[name]; !ok || got != want {
			t.Errorf("%s was %s and is %q: an incompatible change needs condense.v2", name, want, got)
		}
	}
	page, err := os.ReadFile(root + "/docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, versions, _ := strings.Cut(string(page), "## 8. Versions")
	versions, _, _ = strings.Cut(versions, "\n## ")
	for name := range now {
		message, _, _ := strings.Cut(name, ".")
		if _, ok := old[name]; !ok && !strings.Contains(versions, "`"+name+"`") && !strings.Contains(versions, "`"+message+"`") {
			t.Errorf("docs/protocol.md, 8. Versions, does not list `%s`", name)
		}
	}
	if len(old) < 150 {
		t.Errorf("version 1 has only %d fields, values and methods", len(old))
	}
}

// describeFile returns the form of every field, enum value and method, by its name without the package.
func describeFile(file protoreflect.FileDescriptor) map[string]string {
	all := map[string]string{}
	var add func(protoreflect.MessageDescriptors)
	add = func(messages protoreflect.MessageDescriptors) {
		for i := range messages.Len() {
			m := messages.Get(i)
			for j := range m.Fields().Len() {
				f := m.Fields().Get(j)
				of, in := "", ""
				if f.Message() != nil {
					of = string(f.Message().FullName())
				}
				if f.ContainingOneof() != nil {
					in = string(f.ContainingOneof().Name())
				}
				all[string(m.Name())+"."+string(f.Name())] = fmt.Sprint(f.Number(), f.Cardinality(), f.Kind(), of, in, f.HasPresence())
			}
			for j := range m.Enums().Len() {
				for k := range m.Enums().Get(j).Values().Len() {
					v := m.Enums().Get(j).Values().Get(k)
					all[string(m.Enums().Get(j).Name())+"."+string(v.Name())] = fmt.Sprint(v.Number())
				}
			}
			add(m.Messages())
		}
	}
	add(file.Messages())
	methods := file.Services().Get(0).Methods()
	for i := range methods.Len() {
		m := methods.Get(i)
		all[string(m.Parent().Name())+"."+string(m.Name())] = fmt.Sprint(m.Input().FullName(), m.Output().FullName(), m.IsStreamingClient(), m.IsStreamingServer())
	}
	return all
}
