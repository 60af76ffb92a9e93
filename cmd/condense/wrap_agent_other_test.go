//go:build !unix

package main

import "os"

var watched = []os.Signal{os.Interrupt}

func name(s os.Signal) string { return s.String() }

func stopItself() {}
