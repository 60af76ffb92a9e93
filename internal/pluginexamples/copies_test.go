package pluginexamples_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"

	"github.com/condensehq/condense/internal/wire/condensepb"
)

var update = flag.Bool("update", false, "write the copies of the SDKs and what is generated for them")

// Paths from this package.
const (
	root      = "../.."
	protocol  = root + "/plugin-sdk/proto/condense/v1/condense.proto"
	templates = root + "/cmd/condense/templates"
	examples  = root + "/examples/plugins"
)

// TestCopies keeps what is there more than once the same: the SDKs, which an author has as
// a folder beside his plugin, and the protocol in them.
func TestCopies(t *testing.T) {
	must := func(data []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	same(t, templates+"/node/condense/condense.proto", must(os.ReadFile(protocol)))
	same(t, templates+"/python/condense/condense_pb2.py", must(stubs()))
	sameTree(t, templates+"/node/condense", examples+"/dedupe/condense")
	sameTree(t, templates+"/python/condense", examples+"/headtail/condense")
	lock := must(os.ReadFile(filepath.Join(examples, "dedupe", "package-lock.json")))
	lock = bytes.ReplaceAll(lock, []byte("condense-dedupe"), []byte("{{.Program}}"))
	same(t, templates+"/node/package-lock.json.tmpl", lock)
}

// same fails t if the file at path is not want; with -update it writes it.
func same(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err == nil && bytes.Equal(got, want) {
		return
	}
	if !*update {
		t.Errorf("%s is out of date: run go test ./internal/pluginexamples -run TestCopies -update", path)
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// sameTree fails t if the files below the two folders differ.
func sameTree(t *testing.T, original, copied string) {
	t.Helper()
	want := files(t, original)
	for name, data := range want {
		same(t, filepath.Join(copied, name), data)
	}
	for name := range files(t, copied) {
		if _, ok := want[name]; !ok {
			t.Errorf("%s has no original in %s", filepath.Join(copied, name), original)
		}
	}
}

func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		found[path], err = os.ReadFile(filepath.Join(dir, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// stubs returns the messages of the protocol as a module of Python. It holds the descriptor
// and nothing that depends on the version of protobuf, so that it works with that of
// Debian 12 (3.21) and with those that came since.
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
