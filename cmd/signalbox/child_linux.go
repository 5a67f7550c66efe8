package main

import "syscall"

// dieWithParent has the kernel kill the child when the thread that started it dies, so that it cannot outlive a
// signalbox that was killed, and with it the lease. It does not reach the child's own children, and the kernel forgets
// it when the child runs a program with more rights (setuid).
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
