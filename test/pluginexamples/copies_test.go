package pluginexamples_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"

	"github.com/condensehq/condense/internal/wire/condensepb"
)

var update = flag.Bool("update", false, "rewrite what is generated for plugins in other languages")

// Paths from this package.
const (
	root      = "../.."
	sdks      = root + "/plugin-sdk"
	protocol  = sdks + "/proto/condense/v1/condense.proto"
	templates = root + "/cmd/condense/internal/plugincmd/templates"
	examples  = root + "/examples/plugins"
)

// TestCopies checks what is generated from the protocol, and that the template for Node and the example need the same packages.
func TestCopies(t *testing.T) {
	code, err := stubs()
	if err != nil {
		t.Fatal(err)
	}
	same(t, sdks+"/python/condense/condense_pb2.py", code)
	lock, err := os.ReadFile(filepath.Join(examples, "dedupe", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, templates+"/node/package-lock.json.tmpl", bytes.ReplaceAll(lock, []byte("condense-dedupe"), []byte("{{.Program}}")))
}

// same fails t if the file at path is not want; with -update it writes it.
func same(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	if !*update {
		t.Errorf("%s is out of date: run go test ./test/pluginexamples -run TestCopies -update", path)
		return
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// stubs returns the messages of the protocol as a Python module. The module holds the descriptor and nothing that depends on the
// version of protobuf, so that it works with that of Debian 12 (3.21) and with later ones.
func stubs() ([]byte, error) {
	file := condensepb.File_condense_v1_condense_proto
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(protodesc.ToFileDescriptorProto(file))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(`"""The messages of condense.proto. Generated; do not edit."""

import base64

from google.protobuf import descriptor_pool, message_factory

`)
	for i := range file.Messages().Len() {
		fmt.Fprintf(&b, "%s = None\n", file.Messages().Get(i).Name())
	}
	b.WriteString(`
_POOL = descriptor_pool.Default()
_POOL.AddSerializedFile(
    base64.b64decode(
`)
	for code := base64.StdEncoding.EncodeToString(data); code != ""; {
		n := min(100, len(code))
		fmt.Fprintf(&b, "        %q\n", code[:n])
		code = code[n:]
	}
	fmt.Fprintf(&b, `    )
)
for _message in _POOL.FindFileByName(%q).message_types_by_name.values():
    if hasattr(message_factory, "GetMessageClass"):
        globals()[_message.name] = message_factory.GetMessageClass(_message)
    else:  # protobuf before 4.22
        globals()[_message.name] = message_factory.MessageFactory(_POOL).GetPrototype(_message)
`, file.Path())
	return b.Bytes(), nil
}
