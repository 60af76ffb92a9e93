// Package house_test holds the whole repository to its rules: who imports whom, the words of comments and documents, and files
// that nothing else reads.
package house_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests at the top of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
