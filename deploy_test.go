package condense_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/condensehq/condense/config"
)

// TestKubernetes: the configuration of the example is valid as the program's own file, and its pods open what it listens on.
func TestKubernetes(t *testing.T) {
	text, err := os.ReadFile("deploy/kubernetes/condense.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type doc struct {
		Kind string
		Data map[string]string
		Spec struct {
			Template struct {
				Spec struct {
					Grace      float64 `yaml:"terminationGracePeriodSeconds"`
					Containers []struct {
						Ports []struct {
							Port int `yaml:"containerPort"`
						}
					}
				}
			}
		}
	}
	docs := map[string]doc{}
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var d doc
		if err := dec.Decode(&d); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		docs[d.Kind] = d
	}
	home := t.TempDir()
	path := filepath.Join(home, "condense", "condense.yaml")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(docs["ConfigMap"].Data["condense.yaml"]), 0o600)); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Dir: t.TempDir(), Env: []string{"XDG_CONFIG_HOME=" + home}})
	if err != nil {
		t.Fatal(err)
	}
	s, pod := c.Serve(), docs["Deployment"].Spec.Template.Spec
	for i, address := range []string{s.Listen, s.Admin.Listen} {
		if _, port, err := net.SplitHostPort(address); err != nil || port != strconv.Itoa(pod.Containers[0].Ports[i].Port) {
			t.Errorf("the pod opens %v, condense listens on %s: %v", pod.Containers[0].Ports, address, err)
		}
	}
	if time.Duration(s.Drain+s.DrainDelay).Seconds() >= pod.Grace {
		t.Errorf("a pod is killed after %v seconds, and may drain for %v", pod.Grace, time.Duration(s.DrainDelay+s.Drain))
	}
}
