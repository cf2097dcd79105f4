// Package run is the result of an observation or a benchmark: a directory that
// explains itself. It owns the layout of the directory, the manifest that
// finishes it, the clock, the validity notes, and the classes of errors.
package run

// Version is tierscope's version.
const Version = "0.1.0"
