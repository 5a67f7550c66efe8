//go:build unix && !linux

package main

import "syscall"

// dieWithParent has no way to do so here.
func dieWithParent(*syscall.SysProcAttr) {}
