//go:build !unix

package hook_test

import "errors"

func makePipe(string) error { return errors.New("there are no named pipes here") }
