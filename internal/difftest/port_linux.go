package difftest

import (
	"os"
	"strconv"
	"syscall"
)

// reserve finds a port of the loopback interface that nobody has, and keeps it
// from everybody who asks the system for any, until release is called: a
// socket is bound to it that does not listen. A server that asks for this very
// port gets it, since both allow the address to be used again (SO_REUSEADDR),
// and who connects while no server listens is refused.
func reserve() (port string, release func() error, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, os.NewSyscallError("socket", err)
	}
	release = func() error { return os.NewSyscallError("close", syscall.Close(fd)) }
	port, err = bind(fd)
	if err != nil {
		// What went wrong before says more.
		_ = release()
		return "", nil, err
	}
	return port, release, nil
}

// bind binds a socket to a port that the system chooses.
func bind(fd int) (port string, err error) {
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", os.NewSyscallError("bind", err)
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return "", os.NewSyscallError("setsockopt", err)
	}
	address, err := syscall.Getsockname(fd)
	if err != nil {
		return "", os.NewSyscallError("getsockname", err)
	}
	own, ok := address.(*syscall.SockaddrInet4)
	if !ok {
		return "", os.ErrInvalid
	}
	return strconv.Itoa(own.Port), nil
}
