package run

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Class is the kind of an error and so the exit code of the command that ends
// with it. The codes are fixed: scripts rely on them.
type Class int

// The classes, with their exit codes.
const (
	Invalid     Class = 1   // a check failed, or the input is not valid
	Misuse      Class = 2   // bad flag, bad argument, bad config
	Corrupt     Class = 3   // input corrupt or of another version
	Capability  Class = 4   // a capability or privilege is missing
	IO          Class = 5   // no space, or an I/O error
	Engine      Class = 6   // the target or engine died; what was written is readable
	Partial     Class = 7   // a rank or collector was lost, or data dropped by policy
	Interrupted Class = 130 // stopped by the user; what was written is readable
)

// Error is an error with its class.
type Error struct {
	Class Class
	err   error
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error inside.
func (e *Error) Unwrap() error { return e.err }

// Errorf returns an error of class c; %w wraps as in fmt.Errorf.
func Errorf(c Class, format string, args ...any) error {
	return &Error{c, fmt.Errorf(format, args...)}
}

// ClassOf returns the class of err: the outermost one that it carries, IO for
// file system errors, else Invalid. It is 0 for nil.
func ClassOf(err error) Class {
	if err == nil {
		return 0
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	var path *fs.PathError
	var errno syscall.Errno
	if errors.As(err, &path) || errors.As(err, &errno) {
		return IO
	}
	return Invalid
}

// ExitCode returns the exit code for err; 0 for nil.
func ExitCode(err error) int { return int(ClassOf(err)) }
